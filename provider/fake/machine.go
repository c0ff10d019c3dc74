package fake

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Machine is a machine of a cloud.
type Machine struct {
	ID      string // of its instance
	Request provider.CreateRequest
	Boots   int    // how often it has begun to boot
	Address string // where its workload is reached

	cloud   *Cloud
	ref     string
	state   provider.State
	why     string
	hidden  time.Time // not listed before
	booted  time.Time // when the present boot is or will be done
	bootID  string
	gone    bool
	console []byte // the end of what it has printed
}

// Down is why a boot ended.
type Down struct {
	By     Call          // Stop, Restart or Delete; "": the machine fell or vanished
	Within time.Duration // what runs is to end in this time, if By is Stop
}

func (d *Down) Error() string {
	if d.By == "" {
		return "machine fell"
	}
	return "machine goes down by " + string(d.By)
}

func (m *Machine) shard() string { return m.Request.Bootstrap.Shard }

// Zone is where it is.
func (m *Machine) Zone() string { return m.Request.Zone }

// Group is the group of its instance.
func (m *Machine) Group() string { return m.Request.Bootstrap.Group }

// BootID names its present boot.
func (m *Machine) BootID() string { return m.bootID }

// State is its state now.
func (m *Machine) State() provider.State {
	if m.state == provider.StateRunning && m.cloud.now().Before(m.booted) {
		return provider.StateStarting
	}
	return m.state
}

// Running reports whether it exists and runs.
func (m *Machine) Running() bool { return !m.gone && m.State() == provider.StateRunning }

// seen is the machine as a List shows it.
func (m *Machine) seen() provider.Machine {
	s := provider.Machine{
		Instance: m.ID, Shard: m.shard(), Group: m.Group(), Ref: m.ref, State: m.State(), Why: m.why,
		Zone: m.Zone(), BootID: m.bootID, Address: m.Address,
	}
	if m.cloud.world.Address != nil {
		s.Address = m.cloud.world.Address(m.ID)
	}
	return s
}

func (m *Machine) beginBoot() {
	m.Boots++
	m.bootID = fmt.Sprintf("%s.%d", m.ID, m.Boots)
	m.booted = m.cloud.now().Add(m.cloud.cfg.Boot)
	m.state, m.why = provider.StateRunning, ""
}

func (c *Cloud) boot(m *Machine) {
	m.beginBoot()
	if c.world.Boots != nil {
		c.world.Boots(m)
	}
}

// end ends the machine's boot.
func (c *Cloud) end(m *Machine, state provider.State, why string, how Down) {
	if m.gone || m.state.Down() {
		return
	}
	m.state, m.why = state, why
	if c.world.Ends != nil && c.world.Ends(m, how) && how.By == CallStop {
		m.state, m.why = provider.StateStopping, ""
		return
	}
	m.tellEnd()
}

func (m *Machine) tellEnd() {
	switch m.state {
	case provider.StateStopped:
		m.cloud.observe(Stopped, m)
	case provider.StateCrashed, provider.StateFailed:
		m.cloud.observe(Crashed, m)
	default: // it boots at once
	}
}

// Ended tells that what ran in a machine that is stopping has ended, or was left behind.
func (m *Machine) Ended() {
	if !m.gone && m.state == provider.StateStopping {
		m.state, m.why = provider.StateStopped, ""
		m.tellEnd()
	}
}

// Crash ends it without warning: it stays, and is listed as crashed. It reports whether it was up.
func (m *Machine) Crash(why string) bool { return m.fall(provider.StateCrashed, why) }

// Exit ends it in order, by itself. It reports whether it was up.
func (m *Machine) Exit(why string) bool { return m.fall(provider.StateStopped, why) }

func (m *Machine) fall(state provider.State, why string) bool {
	if m.gone || m.state.Down() {
		return false
	}
	m.cloud.end(m, state, why, Down{})
	return true
}
