package plan

import "github.com/leasehold/leasehold/store"

// What uses max_unavailable is counted by what is so (REC-18): what is down counts from the first
// evidence on, long before that evidence is enough to destroy anything.

// up reports whether it has fully booted and nothing says that it is down.
func (d *draft) up(m *member) bool { return d.booted(m) && !m.seemsDown() }

// crashed reports whether its workload has ended, by the word of its agent, and is expected to run.
// Starting it again takes nothing down.
func (m *member) crashed() bool {
	return m.Alive.Present() && ended(m.Instance) && !endedWell(m.Instance)
}

// seemsDown reports whether the provider's newest word is that the machine runs no more, also while
// that is not confirmed yet because its stream seems open (DET-4). A List does not count that its
// agent has outlived, or that tells of another boot.
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
