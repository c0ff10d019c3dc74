package judge

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// condemned: no workload is stopped, and no machine removed, unless a record at or past deleting,
// or a gone note, condemned the instance (SAFE-14). That a record was lost, with its group, its
// shard or all of etcd's data, condemns no instance.
//
// Tolerated: what a trouble did to the machine itself; a restart or a drain that a record ordered
// shortly before; and a group whose agents fence themselves.
func (in *inquiry) condemned() {
	words := in.deathWords()
	for _, e := range in.events {
		if e.Machine == nil || e.Machine.What != history.WorkloadEnded {
			continue
		}
		id := e.Machine.Instance
		if in.wasKilled(id, e.At) || words.before(id, e.At.Add(in.terms.Slack)) || in.restarted(id, e.At) ||
			in.fencesItself(id, e.At) {
			continue
		}
		in.violation("SAFE-14", e.At, fmt.Sprintf("the workload of %s was stopped, and no record condemned it", id),
			append(append(in.past(id, e.At), in.lastSaid(id)...), e)...)
	}
	in.strangers(words)
}

// strangers: a machine without a record is removed by a record that is made for that alone (REC-8).
// It is no ground by itself: the machine must have been deleted on purpose before, or be silent.
// One that is well is not silent.
func (in *inquiry) strangers(words deathWords) {
	in.walk(in.steps, func(w *world, s *step) {
		for _, t := range s.transitions {
			if s.found || s.byHand || t.old != nil || t.next == nil || !going(t.next.Phase) ||
				!in.truth.well(t.id, s.at) || words.before(t.id, s.at-1) {
				continue
			}
			if slices.ContainsFunc(s.obeyed,
				func(r store.Request) bool { return r.Instance == t.id && asksToGo(r.Kind) }) {
				continue
			}
			in.violation("SAFE-14", s.at,
				fmt.Sprintf("%s had no record, was well, and had not been deleted on purpose, and it was taken to be removed%s",
					t.id, s.because(t.id)),
				in.evidence(s, t.id)...)
		}
	})
}

// deathWords returns when each instance was first condemned: by a record at deleting, or by a gone
// note.
type deathWords map[string]history.Time

func (d deathWords) before(id string, at history.Time) bool {
	from, there := d[id]
	return there && from <= at
}

func (in *inquiry) deathWords() deathWords {
	words := deathWords{}
	add := func(id string, at history.Time) {
		if from, there := words[id]; !there || at < from {
			words[id] = at
		}
	}
	for id, all := range in.said {
		for _, r := range all {
			if r.phase == store.Deleting {
				add(id, r.by)
			}
		}
	}
	for _, e := range in.events {
		if id, is := in.goneNote(e); is {
			add(id, e.At)
		}
	}
	return words
}

// goneNote returns the instance that an event notes as deleted on purpose.
func (in *inquiry) goneNote(e history.Event) (id string, is bool) {
	if e.Change == nil || e.Change.Deleted {
		return "", false
	}
	kind, name, ok := in.keys.Split(e.Change.Key)
	if !ok || kind != store.KindGone {
		return "", false
	}
	kind, id, ok = in.keys.Split(in.keys.OfGone(name))
	return id, ok && kind == store.KindInstances
}

// wasKilled reports whether a fault killed something of a machine shortly before.
func (in *inquiry) wasKilled(id string, at history.Time) bool {
	f := in.truth.fates[id]
	return f != nil && slices.ContainsFunc(f.harms, func(h harm) bool {
		return (h.kind == history.Exited || h.kind == history.Crashed) && h.from <= at && at <= h.from.Add(late)
	})
}

// restarted reports whether a record orders a restart or a drain of an instance, or did so shortly
// before.
func (in *inquiry) restarted(id string, at history.Time) bool {
	all := in.said[id]
	for i, r := range all {
		if r.phase != store.Stopping && r.phase != store.Draining || r.by > at.Add(in.terms.Slack) {
			continue
		}
		if i+1 == len(all) || all[i+1].event.At >= at.Add(-in.terms.recovery()) {
			return true
		}
	}
	return false
}

// fencesItself reports whether the agent of an instance may stop its workload by itself when its
// lease cannot be renewed (SAFE-9).
func (in *inquiry) fencesItself(id string, at history.Time) bool {
	for _, s := range slices.Backward(in.steps) {
		if s.at > at {
			continue
		}
		for _, t := range s.transitions {
			if t.id == id && t.next != nil {
				return t.next.Spec.Report.OnLeaseLost.Fences()
			}
		}
	}
	return false
}
