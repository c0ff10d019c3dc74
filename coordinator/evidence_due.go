package coordinator

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// takeDirty hands over the groups that are to be planned on a picture of this revision. Those of which our own last write is not
// in the picture yet stay behind.
func (e *evidence) takeDirty(rev store.Revision, now time.Time) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, at := range e.due {
		if !at.After(now) {
			e.dirty[name] = true
		}
	}
	var out []string
	for _, name := range sorted(e.dirty) {
		if e.written[name] > rev {
			continue
		}
		delete(e.dirty, name)
		delete(e.written, name)
		delete(e.due, name)
		out = append(out, name)
	}
	return out
}

// wrote notes a write of ours that concerns a group.
func (e *evidence) wrote(group string, rev store.Revision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.written[group] = max(e.written[group], rev)
}

// lookAgain notes when a group is to be planned even if nothing happens.
func (e *evidence) lookAgain(group string, at time.Time) {
	if at.IsZero() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, ok := e.due[group]; !ok || at.Before(old) {
		e.due[group] = at
	}
}

// nextDue is the earliest time noted; zero if there is none.
func (e *evidence) nextDue() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	var next time.Time
	for _, at := range e.due {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

func (e *evidence) markDirty(groups ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range groups {
		e.dirty[g] = true
	}
}
