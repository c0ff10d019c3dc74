package sim

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// machine is one machine at a provider.
type machine struct {
	cloud    *cloud
	id       string
	group    string
	zone     string
	spec     store.InstanceSpec // what it was made from
	template string             // hash of it
	state    provider.State
	why      string
	boots    int
	bootName string        // ID of the present boot
	hidden   time.Duration // not listed before
	gone     bool
	mute     bool // its agent never says a word
}

func (m *machine) running() bool { return m.state == provider.StateRunning && !m.gone }

func (m *machine) bootID() string { return m.bootName }

// seen is the machine as its provider lists it.
func (m *machine) seen() provider.Machine {
	return provider.Machine{
		Instance: m.id, Shard: "imagined", Group: m.group, Ref: "ref-" + m.id, State: m.state, Why: m.why, Zone: m.zone,
		Address: m.id + ":80", BootID: m.bootID(),
	}
}

// boot has the machine come up; its agent speaks a while later, if ever.
func (m *machine) boot() {
	w := m.cloud.w
	m.boots++
	m.bootName = fmt.Sprintf("%s.%d", m.id, m.boots)
	m.state, m.why = provider.StateRunning, ""
	w.stir(m.id)
	if m.boots == 1 {
		m.mute = w.chance.happens(m.cloud.cfg.NeverBoots)
		w.agents[m.id] = newAgent(w, m)
	}
	a, boot := w.agents[m.id], m.boots
	if a == nil || m.mute || w.bad[m.template].mute {
		return
	}
	w.after(w.chance.within(m.cloud.cfg.Boot), func() {
		if m.running() && m.boots == boot {
			a.start()
		}
	})
}

// reboot ends what runs and boots again.
func (m *machine) reboot() {
	m.end(provider.StateStopping, "")
	m.boot()
	m.cloud.w.tellMachine(MachineRestarted, m)
}

// stopTakes is how long the machine needs to end in order.
func (m *machine) stopTakes(timeout time.Duration) time.Duration {
	if !m.running() {
		return 0
	}
	return m.cloud.w.chance.upTo(min(timeout, 3*time.Second))
}

// end ends the machine.
func (m *machine) end(state provider.State, why string) {
	if m.gone || m.state.Down() {
		return
	}
	w := m.cloud.w
	m.state, m.why = state, why
	if a := w.agents[m.id]; a != nil {
		a.ended()
	}
	switch state {
	case provider.StateStopped:
		w.tellMachine(MachineStopped, m)
	case provider.StateCrashed, provider.StateFailed:
		w.tellMachine(MachineCrashed, m)
	default: // it boots at once
	}
}
