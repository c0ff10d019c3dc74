package evidence

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// GraceEnd returns until when no instance is judged lost.
func (e *Evidence) GraceEnd() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.graceEnd
}

// CountMachines returns how many machines have no record, and how many records have no machine in
// the List that should have one. It looks at every instance.
func (e *Evidence) CountMachines() (orphans, missing int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.instances {
		switch w.phase {
		case store.Pending, store.Creating, store.Deleting, store.Finished: // there need be none
		default:
			if !w.sighting.Begun.IsZero() && !w.sighting.Listed {
				missing++
			}
		}
	}
	return len(e.extras), missing
}
