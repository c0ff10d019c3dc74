package ec2test

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// The states of a machine, as EC2 numbers them.
const (
	pending      = 0
	running      = 16
	shuttingDown = 32
	terminated   = 48
	stopping     = 64
	stopped      = 80
)

var stateNames = map[int]string{
	pending: "pending", running: "running", shuttingDown: "shutting-down", terminated: "terminated", stopping: "stopping",
	stopped: "stopped",
}

// machine is a machine of the account. Its server's lock guards it.
type machine struct {
	s                               *Server
	id, typ, image, subnet, address string
	token                           string
	spot                            bool
	endsByShutdown                  bool // it is terminated when it shuts itself down
	keepsVolume                     bool
	tags, volumeTags                map[string]string
	userData                        []byte

	made, launched, since time.Time
	state                 int
	reason, message       string
	console               []byte
	boots                 int
	timer                 *time.Timer
	end                   context.CancelFunc // of what it does
	ended                 chan struct{}
}

// after changes the machine later, unless it is changed otherwise before.
func (m *machine) after(d time.Duration, change func()) {
	if m.timer != nil {
		m.timer.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		m.s.mu.Lock()
		defer m.s.mu.Unlock()
		if m.timer == timer && !m.s.closed {
			change()
		}
	})
	m.timer = timer
}

func (m *machine) enter(state int, reason, message string) {
	m.state, m.since, m.reason, m.message = state, time.Now(), reason, message
}

// boot brings the machine up.
func (m *machine) boot() {
	m.launched = time.Now()
	m.enter(pending, "", "")
	m.after(m.s.config.BootTime, func() {
		m.enter(running, "", "")
		m.work()
	})
}

// work begins what the machine does in a boot.
func (m *machine) work() {
	m.boots++
	if m.s.config.Run == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	before, ended := m.ended, make(chan struct{})
	m.end, m.ended = cancel, ended
	b := Boot{ID: m.id, Number: m.boots, UserData: m.userData, Print: func(text string) {
		m.s.mu.Lock()
		defer m.s.mu.Unlock()
		m.print(text)
	}}
	m.s.running.Go(func() {
		defer close(ended)
		if before != nil {
			<-before // one boot at a time
		}
		m.s.config.Run(ctx, b)
		if ctx.Err() == nil {
			m.s.mu.Lock()
			defer m.s.mu.Unlock()
			m.shutDown()
		}
	})
}

// halt ends what the machine does.
func (m *machine) halt() {
	if m.timer != nil {
		m.timer.Stop()
		m.timer = nil
	}
	if m.end != nil {
		m.end()
		m.end = nil
	}
}

const consoleSize = 64 << 10

func (m *machine) print(text string) {
	m.console = append(m.console, text...)
	m.console = append([]byte(nil), m.console[max(0, len(m.console)-consoleSize):]...)
}

// shutDown is the machine's own doing.
func (m *machine) shutDown() {
	const reason, message = "Client.InstanceInitiatedShutdown",
		"Client.InstanceInitiatedShutdown: Instance initiated shutdown"
	switch {
	case m.state != running:
	case m.endsByShutdown:
		m.remove(reason, message)
	default:
		m.stop(reason, message)
	}
}

func (m *machine) stop(reason, message string) {
	m.halt()
	m.enter(stopping, reason, message)
	m.after(m.s.config.StopTime, func() { m.enter(stopped, reason, message) })
}

// remove terminates the machine for good.
func (m *machine) remove(reason, message string) {
	if m.state == terminated || m.state == shuttingDown {
		return
	}
	m.halt()
	m.enter(shuttingDown, reason, message)
	m.after(m.s.config.StopTime, func() {
		m.enter(terminated, reason, message)
		m.s.used[m.subnet]--
		if !m.keepsVolume {
			m.volumeTags = nil
		}
	})
}

// Kill ends a machine from within, as a crash that powers it off does.
func (s *Server) Kill(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[id]
	if m == nil || m.state != running {
		return fmt.Errorf("machine %s does not run", id)
	}
	m.shutDown()
	return nil
}

// Interrupt takes a Spot machine away.
func (s *Server) Interrupt(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[id]
	if m == nil || m.state != running || !m.spot {
		return fmt.Errorf("machine %s is no Spot machine that runs", id)
	}
	m.remove("Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination")
	return nil
}

// Terminate has a user terminate a machine, who is not Leasehold.
func (s *Server) Terminate(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[id]
	if m == nil {
		return fmt.Errorf("there is no machine %s", id)
	}
	m.remove(userReason, userReason+": User initiated shutdown")
	return nil
}

// Print writes to a machine's console.
func (s *Server) Print(id, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[id]
	if m == nil {
		return fmt.Errorf("there is no machine %s", id)
	}
	m.print(text)
	return nil
}

// Copy makes another machine with the tags of one, as "launch more like this" does.
func (s *Server) Copy(id string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[id]
	if m == nil {
		return "", fmt.Errorf("there is no machine %s", id)
	}
	c := s.newMachine(m.subnet)
	c.typ, c.image, c.tags, c.volumeTags, c.userData = m.typ, m.image, m.tags, m.tags, m.userData
	c.boot()
	return c.id, nil
}

// Untag takes a tag from a machine.
func (s *Server) Untag(id, tag string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[id]
	if m == nil {
		return fmt.Errorf("there is no machine %s", id)
	}
	m.tags = maps.Clone(m.tags)
	delete(m.tags, tag)
	return nil
}

// Remains is what is there of a machine, or "".
func (s *Server) Remains(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[id]
	switch {
	case m == nil:
		return ""
	case m.state != terminated:
		return "machine " + stateNames[m.state]
	case m.volumeTags != nil:
		return "its volume"
	}
	return ""
}

// Tags returns the tags of a machine and of its volume.
func (s *Server) Tags(id string) (ofMachine, ofVolume map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.machines[id]; m != nil {
		return m.tags, m.volumeTags
	}
	return nil, nil
}

// Placed is a machine's type and subnet.
func (s *Server) Placed(id string) (typ, subnet string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.machines[id]; m != nil {
		return m.typ, m.subnet
	}
	return "", ""
}
