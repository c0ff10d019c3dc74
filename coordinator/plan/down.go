package plan

import "github.com/leasehold/leasehold/store"

// What uses max_unavailable is counted by what is so (REC-18): what is down counts from the first
// evidence on, long before that evidence is enough to destroy anything.

// up reports whether a member has fully booted and there is no evidence that it is down.
func (d *draft) up(m *member) bool { return d.booted(m) && !m.seemsDown() }

// crashed reports whether its workload has ended, by the word of its agent, and is expected to run.
// Starting it again takes nothing down.
func (m *member) crashed() bool {
	return m.Alive.Present() && ended(m.Instance) && !endedWell(m.Instance)
}

// seemsDown reports whether the provider's newest List says that the machine is down, confirmed or
// not (DET-4). A List does not count if the agent was heard after it, or if it describes another
// boot.
func (m *member) seemsDown() bool {
	see := &m.Sighting
	if !see.Listed || !see.Down || upSince(m.Instance, see.Begun) {
		return false
	}
	if m.Alive.Present() && m.Alive.Record.State == store.StreamOpen {
		return !see.Begun.Before(m.StreamSince) && (see.BootID == "" || see.BootID == m.Alive.Record.BootID)
	}
	return true
}
