package plan

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// GoneNote is the proof that an action deletes a record on purpose (SAFE-15).
type GoneNote struct {
	Key  string // of the note
	Note store.Gone
}

// GoneWrites are the notes of actions that share a transaction. They go before all other writes of
// it, so that a watcher sees the note before the deletion.
func GoneWrites(together []*Action, lease store.LeaseID) []store.Write {
	var out []store.Write
	for _, a := range together {
		for _, g := range a.Gone {
			out = append(out, store.PutLeased(g.Key, store.Encode(g.Note), lease))
		}
	}
	return out
}

// Deletes reports whether a transaction of these actions needs the lease that notes are written on.
func Deletes(together []*Action) bool {
	return slices.ContainsFunc(together, func(a *Action) bool { return len(a.Gone) > 0 })
}

// noteDeletions adds to each action the notes of the records that it deletes. That is done here for
// all of them, so that no decider can forget one.
func noteDeletions(s *Snapshot, actions []Action, now time.Time) {
	for i := range actions {
		a := &actions[i]
		for _, w := range a.Writes {
			if !w.Delete || !noted(s.Keys, w.Key) {
				continue
			}
			a.Gone = append(a.Gone, GoneNote{Key: s.Keys.Gone(w.Key), Note: store.Gone{
				Schema: store.Schema, Revision: revisionOf(a, w.Key), Rule: a.Rule, Why: a.Why,
				Group: a.Group, Instance: a.Instance, Slot: a.Slot, At: now.UTC(),
			}})
		}
	}
}

// noted reports whether the deletion of a key leaves a note.
func noted(keys store.Keys, key string) bool {
	switch kind, _, _ := keys.Split(key); kind {
	case store.KindInstances, store.KindSlots, store.KindStatus, store.KindGroups, store.KindStatic:
		return true
	default:
		return false
	}
}

// revisionOf is the revision at which an action compares a key.
func revisionOf(a *Action, key string) store.Revision {
	for _, c := range a.Conditions {
		if c.Key == key && c.Modified != 0 {
			return c.Modified
		}
	}
	return 0
}
