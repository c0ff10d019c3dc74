package cloud

import (
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"

	"github.com/leasehold/leasehold/provider"
)

// Zone is the zone of all machines of a bench.
const Zone = "local"

// gone is the state of a deleted machine, between cloud and provider.
const gone provider.State = "gone"

// Cloud is a list of simulated machines. The reader of Made and Deleted starts and removes their
// agents.
type Cloud struct {
	// Made receives machines that were created, Deleted those that were deleted. Both must be read.
	Made, Deleted chan string

	listener net.Listener
	over     chan struct{}
	serving  sync.WaitGroup

	mu      sync.Mutex
	state   map[string]provider.State
	changes []string // instances, in the order of their changes
	conns   map[net.Conn]bool
}

// Changes are machines that changed, in their present state.
type Changes struct {
	Machines []provider.Machine
	Seen     int // number of changes up to this answer
}

// Open serves the machines at a socket. Close ends it.
func Open(socket string, instances []string) (*Cloud, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("serve machines: %w", err)
	}
	c := &Cloud{
		Made: make(chan string, 1024), Deleted: make(chan string, 1024), listener: listener, over: make(chan struct{}),
		state: make(map[string]provider.State, len(instances)), conns: map[net.Conn]bool{},
	}
	for _, id := range instances {
		c.set(id, provider.StateRunning)
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Cloud", &cloudCalls{c}); err != nil {
		return nil, errors.Join(fmt.Errorf("serve machines: %w", err), listener.Close())
	}
	c.serving.Go(func() { c.serve(server) })
	return c, nil
}

func (c *Cloud) serve(server *rpc.Server) {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return // the listener was closed
		}
		c.mu.Lock()
		c.conns[conn] = true
		c.mu.Unlock()
		c.serving.Go(func() {
			server.ServeConn(conn)
			c.mu.Lock()
			delete(c.conns, conn)
			c.mu.Unlock()
		})
	}
}

// Close ends the service. Calls that wait for their result to be read fail.
func (c *Cloud) Close() {
	close(c.over)
	_ = c.listener.Close()
	c.mu.Lock()
	for conn := range c.conns {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.serving.Wait()
}

// Count returns how many machines there are, and how many were ever created by a call.
func (c *Cloud) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.state)
}

// set requires mu, unless the cloud is not shared yet.
func (c *Cloud) set(instance string, state provider.State) {
	if state == gone {
		delete(c.state, instance)
	} else {
		c.state[instance] = state
	}
	c.changes = append(c.changes, instance)
}

func (c *Cloud) machine(instance string) provider.Machine {
	state, there := c.state[instance]
	if !there {
		state = gone
	}
	return provider.Machine{Instance: instance, Ref: "bench:" + instance, State: state, Zone: Zone}
}

// cloudCalls are the calls that a provider makes.
type cloudCalls struct{ c *Cloud }

// Create creates a machine. It may be repeated.
func (v *cloudCalls) Create(instance string, made *provider.Machine) error {
	c := v.c
	c.mu.Lock()
	_, there := c.state[instance]
	if !there {
		c.set(instance, provider.StateRunning)
	}
	*made = c.machine(instance)
	c.mu.Unlock()
	if there {
		return nil
	}
	return c.tell(c.Made, instance)
}

// Stop stops a machine. It is no error if the machine is gone.
func (v *cloudCalls) Stop(instance string, _ *bool) error {
	c := v.c
	c.mu.Lock()
	running := c.state[instance] == provider.StateRunning
	if running {
		c.set(instance, provider.StateStopped)
	}
	c.mu.Unlock()
	if !running {
		return nil
	}
	return c.tell(c.Deleted, instance)
}

// Delete removes a machine.
func (v *cloudCalls) Delete(instance string, _ *bool) error {
	if err := v.Stop(instance, nil); err != nil {
		return err
	}
	c := v.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.state[instance]; there {
		c.set(instance, gone)
	}
	return nil
}

// Changed returns the machines that changed after the given number of changes.
func (v *cloudCalls) Changed(from int, news *Changes) error {
	c := v.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if from < 0 || from > len(c.changes) {
		return fmt.Errorf("%d changes were seen, of %d", from, len(c.changes))
	}
	told := map[string]bool{}
	for _, id := range c.changes[from:] {
		if !told[id] {
			told[id] = true
			news.Machines = append(news.Machines, c.machine(id))
		}
	}
	news.Seen = len(c.changes)
	return nil
}

func (c *Cloud) tell(to chan<- string, instance string) error {
	select {
	case to <- instance:
		return nil
	case <-c.over:
		return errors.New("the bench is over")
	}
}
