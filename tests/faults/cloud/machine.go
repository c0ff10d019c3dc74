package cloud

import (
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// machine is a machine that exists or existed. Its fields are guarded by the cloud's lock; act is
// held while its processes are started, stopped or resumed, and is taken first.
type machine struct {
	id, zone, address, dir string

	act sync.Mutex

	boot    fake.Boot     // the last boot
	up      bool          // a boot has begun, and processes of it may run
	booted  bool          // its agent was started
	removed bool          // it is deleted being deleted
	over    bool          // it is deleted
	gone    chan struct{} // closed when deleted
	hurry   chan struct{} // closed to end a boot at once; new for each
	ended   chan struct{} // closed when no process of a boot runs any more; new for each
	agent   *agent        // that runs, or last ran in this boot
	thawed  chan struct{} // closed when it is resumed; nil: not frozen
	exited  bool          // its agent or workload was killed, and has not been restarted
	idle    bool          // it was the workload, which no agent restarts in this boot
	clock   time.Duration // offset of its wall clock
}

func (c *Cloud) note(m *machine, what history.Step, why string) {
	c.cfg.Log.Add(history.Event{Machine: &history.Machine{
		Instance: m.id, What: what, Boot: m.boot.Number, Zone: m.zone,
		Why: why,
	}})
}

// hear is called when a machine is created, and when it is being deleted.
func (c *Cloud) hear(e fake.Event, instance, zone string) {
	if e == fake.Made {
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
	if e != fake.Removed {
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

// bury removes a machine without processes. The cloud's lock is held.
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

// begin starts a boot, unless the machine is being deleted.
func (c *Cloud) begin(boot fake.Boot) *machine {
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

// finish ends a boot without processes.
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

// leaving returns the machines of a shard that are being deleted: until no process of them runs, List
// shows them.
func (c *Cloud) leaving(shard string) (out []provider.Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.machines {
		if b := m.boot.Bootstrap; m.removed && !m.over && b.Shard == shard {
			out = append(out, provider.Machine{
				Instance: m.id, Shard: shard, Group: b.Group, Ref: "ref-" + m.id, State: provider.StateStopping,
				Zone: m.zone, BootID: m.boot.ID, Address: net.JoinHostPort(m.address, "80"),
			})
		}
	}
	return out
}
