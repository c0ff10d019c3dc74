package cloud

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/provider/fake/socket"
)

// Zone is the zone of all machines of a bench.
const Zone = "local"

// Cloud is a fake cloud of a bench. The reader of Made and Deleted starts and removes the machines'
// agents.
type Cloud struct {
	// Made receives machines that were created, Deleted those that were stopped or deleted. Both must
	// be read.
	Made, Deleted chan string

	machines *fake.Provider
	server   *socket.Server
	over     context.Context //nolint:containedctx // of all calls, and of unread news
	end      context.CancelFunc

	mu      sync.Mutex
	changes []string // instances, in the order of their changes
}

// Changes are machines that changed, in their present state. Those that are gone have none.
type Changes struct {
	Machines []provider.Machine
	Seen     int // number of changes up to this answer
}

// Failure is none: an answer without an error is complete.
func (Changes) Failure() error { return nil }

// Open serves a shard's machines at a socket. Close ends it.
func Open(ctx context.Context, path, shard string, instances []string) (*Cloud, error) {
	c := &Cloud{Made: make(chan string, 1024), Deleted: make(chan string, 1024)}
	c.over, c.end = context.WithCancel(context.WithoutCancel(ctx))
	c.machines = fake.NewProvider(fake.Config{Zones: fake.Zones(Zone)}, fake.Inside{Observe: c.hear})
	c.changes = slices.Sorted(slices.Values(instances))
	for _, id := range c.changes {
		c.machines.Plant(provider.CreateRequest{
			Zone: Zone, Bootstrap: provider.Bootstrap{Instance: id, Shard: shard},
		})
	}
	of := func(string) provider.Provider { return c.machines }
	var err error
	c.server, err = socket.Listen(ctx, path, map[string]any{"Machines": socket.NewMachines(c.over, of), "Feed": &Feed{c}})
	if err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// Close ends the service. Calls that wait for their result to be read fail.
func (c *Cloud) Close() {
	c.end()
	c.server.Close()
	c.machines.Close()
}

func (c *Cloud) hear(e fake.Event, instance, _ string) {
	c.mu.Lock()
	c.changes = append(c.changes, instance)
	c.mu.Unlock()
	switch e {
	case fake.Made:
		c.tell(c.Made, instance)
	case fake.Stopped:
		c.tell(c.Deleted, instance)
	default:
	}
}

func (c *Cloud) tell(to chan<- string, instance string) {
	select {
	case to <- instance:
	case <-c.over.Done():
	}
}

// Feed is the service that sends replicas what has changed.
type Feed struct{ c *Cloud }

// Changed returns the machines that changed after the given number of changes.
func (f *Feed) Changed(from int, news *Changes) error {
	c := f.c
	c.mu.Lock()
	news.Seen = len(c.changes)
	if from < 0 || from > news.Seen {
		c.mu.Unlock()
		return fmt.Errorf("%d changes were seen, of %d", from, news.Seen)
	}
	changed := slices.Clone(c.changes[from:])
	c.mu.Unlock()
	slices.Sort(changed)
	for _, id := range slices.Compact(changed) {
		m, there := c.machines.Machine(id)
		if !there {
			m = provider.Machine{Instance: id}
		}
		news.Machines = append(news.Machines, m)
	}
	return nil
}
