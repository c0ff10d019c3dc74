package cloud

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/memprovider"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// machine is one that there is or was. Its fields are read and written with the cloud's lock held;
// act is held by whoever starts, stops or continues its processes, and is taken first.
type machine struct {
	id, zone, address, dir string

	act sync.Mutex

	boot    memprovider.Boot // the last that was begun
	up      bool             // a boot was begun, and something of it may run
	booted  bool             // its agent was started
	removed bool             // it is to be gone
	over    bool             // it is
	gone    chan struct{}    // closed then
	hurry   chan struct{}    // closed when a boot is to end at once; made with each
	ended   chan struct{}    // closed when nothing of a boot runs any more; made with each
	agent   *agent           // that runs, or has run last in this boot
	thawed  chan struct{}    // closed when it stands still no more; nil: it does not
	exited  bool             // its agent or workload was killed, and is not back
	idle    bool             // it was the workload, which no agent starts again in this boot
	clock   time.Duration    // so far is its wall clock wrong
}

func (c *Cloud) note(m *machine, what history.Step, why string) {
	c.cfg.Log.Add(history.Event{Machine: &history.Machine{
		Instance: m.id, What: what, Boot: m.boot.Number, Zone: m.zone,
		Why: why,
	}})
}

// exists is told when a machine comes to be, and when it is to be no more.
func (c *Cloud) exists(instance, zone string, exists bool) {
	if exists {
		m := &machine{
			id: instance, zone: zone, address: c.cfg.Source(instance),
			dir: filepath.Join(c.cfg.Dir, instance), gone: make(chan struct{}),
		}
		c.mu.Lock()
		c.machines[instance] = m
		c.note(m, history.Made, "")
		c.mu.Unlock()
		if c.cfg.Made != nil {
			c.cfg.Made(instance)
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.machines[instance]
	m.removed = true
	if !m.up {
		c.bury(m)
		return
	}
	m.inHurry()
}

// bury ends a machine of which nothing runs. The cloud's lock is held.
func (c *Cloud) bury(m *machine) {
	m.over = true
	c.note(m, history.Removed, "")
	close(m.gone)
}

func (m *machine) inHurry() {
	select {
	case <-m.hurry:
	default:
		close(m.hurry)
	}
}

// begin begins a boot, unless there is nothing to be begun any more.
func (c *Cloud) begin(boot memprovider.Boot) *machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.machines[boot.Bootstrap.Instance]
	if m.removed {
		return nil
	}
	m.boot, m.up, m.booted, m.agent = boot, true, false, nil
	m.hurry, m.ended = make(chan struct{}), make(chan struct{})
	return m
}

// finish ends a boot of which nothing runs any more.
func (c *Cloud) finish(m *machine, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.booted {
		c.note(m, history.Ended, why)
	}
	m.up, m.booted, m.agent = false, false, nil
	if m.thawed != nil {
		close(m.thawed)
		m.thawed = nil
		c.NoteHarm(m.id, history.Frozen, true)
	}
	close(m.ended)
	if m.removed {
		c.bury(m)
	}
}

// leaving are the machines of a shard that are to be gone, and are not.
func (c *Cloud) leaving(shard string) (out []provider.Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.machines {
		if b := m.boot.Bootstrap; m.removed && !m.over && b.Shard == shard {
			out = append(out, provider.Machine{
				Instance: m.id, Shard: shard, Group: b.Group, Ref: "mem-" + m.id, State: provider.StateStopping,
				Zone: m.zone, BootID: m.boot.ID,
			})
		}
	}
	return out
}
