package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// machines: each machine has a record before it is made and as long as it is there, only one is
// ever made of each ID, calls for one ID do not overlap, and a slot has no more than one and its
// replacement.
func (in *inquiry) machines() {
	in.doubles()
	in.intents()
	in.overlaps()
	in.crowds()
	in.leaks()
}

// doubles: an ID is never used again.
func (in *inquiry) doubles() {
	for _, id := range slices.Sorted(maps.Keys(in.truth.fates)) {
		var made, removed *history.Event
		for _, e := range in.truth.fates[id].told {
			switch {
			case e.Machine == nil:
			case e.Machine.What == history.Removed:
				removed = &e
			case e.Machine.What != history.Made:
			case removed != nil:
				in.violation("SAFE-8", e.At,
					fmt.Sprintf("a machine was made for %s after its machine had been removed: an ID is never used again", id),
					*removed, e)
			case made != nil:
				in.violation("SAFE-8", e.At, fmt.Sprintf("a second machine was made for %s", id), *made, e)
				made = &e
			default:
				made = &e
			}
		}
	}
}

// intents: what a provider is asked for was recorded before.
//
// Tolerated: a late call of a leader that was deposed after it had recorded the call, as long as
// the record still exists: that is why a record that is deleting stays for as long as such a call
// may take. And calls soon after etcd's history started over: the records went with it.
func (in *inquiry) intents() {
	for _, e := range in.events {
		c := e.Call
		if c == nil || c.Ended || c.Method == history.List || in.truth.renewed(e.At, late) {
			continue
		}
		var recorded bool
		var want string
		switch c.Method {
		case history.Create:
			want = "that it is to be made"
			recorded = in.everSaid(c.Instance, e.At, func(r said) bool { return r.called || r.phase == store.Creating })
			if end, gone := in.gone(c.Instance, e.At); gone {
				in.violation("SAFE-8", e.At, fmt.Sprintf("replica %s asked for a machine for %s, whose record was gone",
					c.Replica, c.Instance), append(in.past(c.Instance, e.At), end, e)...)
				continue
			}
		case history.Stop, history.Delete:
			want = "that it is to go"
			recorded = in.everSaid(c.Instance, e.At, func(r said) bool { return r.phase == store.Deleting })
		case history.Restart:
			want = "that it is restarted"
			recorded = in.everSaid(c.Instance, e.At, func(r said) bool { return r.phase == store.Stopping })
		default:
			continue
		}
		if !recorded {
			in.violation("SAFE-8", e.At, fmt.Sprintf("replica %s called %s for %s, and nothing in etcd said %s",
				c.Replica, c.Method, c.Instance, want), append(in.past(c.Instance, e.At), e)...)
		}
	}
}

// overlaps: a replica makes one call for an ID at a time.
//
// Tolerated: where the first call was lost on purpose, or lasted longer than its caller may wait:
// the caller has given it up. And where the replica was started again, or won another election, in
// between: a new leader knows nothing of abandoned calls.
func (in *inquiry) overlaps() {
	type caller struct{ replica, instance string }
	open, lies, term := map[caller]history.Event{}, map[uint64]bool{}, map[uint64]string{}
	terms := map[string]string{} // by replica: its process and fence
	for _, e := range in.events {
		if c := e.Call; c != nil && c.Ended && c.Lie != "" && c.Lie != history.Slow {
			lies[c.ID] = true
		}
	}
	for _, e := range in.events {
		if c := e.Commit; c != nil {
			if c.Fence.Key != "" {
				terms[c.Replica] = fmt.Sprint(c.Process, c.Fence.Key, c.Fence.Created)
			}
			continue
		}
		c := e.Call
		if c == nil || c.Method == history.List {
			continue
		}
		who := caller{c.Replica, c.Instance}
		first, busy := open[who]
		if c.Ended {
			if busy && first.Call.ID == c.ID {
				delete(open, who)
			}
			continue
		}
		term[c.ID] = terms[c.Replica]
		if busy && !lies[first.Call.ID] && term[first.Call.ID] == term[c.ID] &&
			e.At.Sub(first.At) < in.terms.CallTimeout && in.ends(first.Call.ID) {
			in.violation("SAFE-8", e.At, fmt.Sprintf("replica %s called %s for %s while its %s for it was under way",
				c.Replica, c.Method, c.Instance, first.Call.Method), first, e)
		}
		open[who] = e
	}
}

// ends reports whether a call is known to have ended. One without an end was left by a replica that
// was killed.
func (in *inquiry) ends(call uint64) bool {
	return slices.ContainsFunc(in.events,
		func(e history.Event) bool { return e.Call != nil && e.Call.Ended && e.Call.ID == call })
}

// crowds: a slot has one instance, and one that is to replace it. Those that are on their way out
// are no longer in it.
func (in *inquiry) crowds() {
	in.walk(in.steps, func(w *world, s *step) {
		if s.found || s.byHand {
			return
		}
		for _, t := range s.transitions {
			if !t.begins() || !t.next.Managed || !t.next.Phase.Fills() {
				continue
			}
			var others []*store.Instance
			for _, m := range w.inGroupAfter(t.next.Group, s) {
				if m.ID != t.id && m.Slot == t.next.Slot && m.Phase.Fills() {
					others = append(others, m)
				}
			}
			switch {
			case len(others) > 1:
				in.violation("HEAL-13", s.at, fmt.Sprintf("%s was requested for slot %d of %s, in which %s and %s are",
					t.id, t.next.Slot, t.next.Group, others[0].ID, others[1].ID),
					append(in.evidence(s, t.id), w.raw[in.keys.Instance(others[0].ID)],
						w.raw[in.keys.Instance(others[1].ID)])...)
			case len(others) == 1 && t.next.Replaces == "":
				in.violation("SAFE-8", s.at,
					fmt.Sprintf("%s was requested for slot %d of %s, in which %s is, and replaces none", t.id,
						t.next.Slot, t.next.Group, others[0].ID),
					append(in.evidence(s, t.id), w.raw[in.keys.Instance(others[0].ID)])...)
			}
		}
	})
}

// leaks: when all is quiet, every machine has a record and every record a machine.
//
// Tolerated: a machine that was made before etcd's history started over and that the new history
// does not have. An operator may have made it: it waits for orphan_grace, or an operator (REC-8,
// SAFE-12).
// And a record that is deleting, for as long as late calls for it may come.
func (in *inquiry) leaks() {
	quiet, there := in.mark(history.Quiet)
	if !there {
		return
	}
	w := in.worldAt(quiet.At)
	for _, id := range slices.Sorted(slices.Values(quiet.Mark.Machines)) {
		if w.instances[id] == nil && !in.older(id, w.line) {
			in.violation("REC-8", quiet.At,
				fmt.Sprintf("all is quiet, and there is a machine %s of which there is no record", id),
				append(in.past(id, quiet.At), in.lastSaid(id)...)...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		rec := w.instances[id]
		if slices.Contains(quiet.Mark.Machines, id) || rec.Phase == store.Finished {
			continue
		}
		since := w.raw[in.keys.Instance(id)].At
		if f := w.inForce(rec.Group); f.there && f.spec.Paused || w.shard != nil && w.shard.Hold != nil {
			continue // nothing is done about it for now, as ordered
		}
		if rec.Phase == store.Deleting && quiet.At.Sub(since) < in.terms.CallTimeout+in.terms.recovery() {
			continue
		}
		in.violation("SAFE-8", quiet.At,
			fmt.Sprintf("all is quiet, and there is no machine for the record of %s, which is %s", id, rec.Phase),
			append(in.past(id, quiet.At), in.lastSaid(id)...)...)
	}
}

// older reports whether a machine was created before the present line of etcd's history began.
func (in *inquiry) older(id string, line int) bool {
	f := in.truth.fates[id]
	if f == nil || len(f.exists) == 0 {
		return false
	}
	if len(in.truth.lines) == 0 {
		return false
	}
	return f.exists[0].from < in.truth.lines[len(in.truth.lines)-1]
}

func (in *inquiry) lastSaid(id string) []history.Event {
	if all := in.said[id]; len(all) > 0 {
		return []history.Event{all[len(all)-1].event}
	}
	return nil
}

// worldAt returns the content of etcd at a moment.
func (in *inquiry) worldAt(at history.Time) *world {
	n := 0
	for n < len(in.steps) && in.steps[n].at <= at {
		n++
	}
	return in.walk(in.steps[:n], func(*world, *step) {})
}
