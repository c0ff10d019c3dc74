package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// hold: while the shard is on hold, or a group is paused, nothing is made and nothing taken down
// (SAFE-12, REC-13). And the shard puts itself on hold when etcd was restored, before anything is
// decided on what is in it.
func (in *inquiry) hold() {
	stands := map[string][]stand{} // of each group; "" is the shard
	in.walk(in.steps, func(w *world, s *step) {
		for _, t := range s.transitions {
			if !s.found && !s.byHand {
				in.movesInStandstill(w, s, t)
			}
		}
		in.follow(stands, w, s)
	})
	in.callsInStandstill(stands)
	in.restored()
}

// moves reports whether a step creates or removes a machine, or requests that. A step that only
// records that a machine exists or is gone is allowed.
func (t transition) moves() bool {
	switch {
	case t.next == nil:
		return false
	case t.old == nil:
		return t.next.Phase != store.Booting
	case t.next.Phase == store.Creating:
		return t.old.Phase != store.Creating || t.next.Last.Revision != t.old.Last.Revision
	default:
		return t.leaves() || t.next.Phase == store.Deleting && t.old.Phase != store.Deleting
	}
}

func (in *inquiry) movesInStandstill(w *world, s *step, t transition) {
	if !t.moves() {
		return
	}
	from := store.Phase("nothing")
	if t.old != nil {
		from = t.old.Phase
	}
	evidence := func(key string) []history.Event {
		return append([]history.Event{w.raw[key]}, in.evidence(s, t.id)...)
	}
	if w.shard != nil && w.shard.Hold != nil {
		in.violation("SAFE-12", s.at, fmt.Sprintf("%s went from %s to %s while the shard was on hold%s", t.id, from,
			t.next.Phase, s.because(t.id)), evidence(in.keys.Shard())...)
	}
	// of no group, whatever its tag says
	extra := slices.ContainsFunc(s.of(t.id), func(e entry) bool { return e.Rule == "REC-8" })
	if f := w.inForce(t.next.Group); f.there && f.spec.Paused && !extra {
		in.violation("REC-13", s.at, fmt.Sprintf("%s went from %s to %s while its group was paused%s", t.id, from,
			t.next.Phase, s.because(t.id)), evidence(in.keys.Group(t.next.Group))...)
	}
}

// stand is a period in which nothing may begin, as the watcher saw it.
type stand struct {
	span
	event history.Event // the step that began it
}

func (in *inquiry) follow(stands map[string][]stand, w *world, s *step) {
	note := func(of string, yes bool, e history.Event) {
		all := stands[of]
		open := len(all) > 0 && all[len(all)-1].to == always
		switch {
		case yes && !open:
			stands[of] = append(all, stand{span{e.At, always}, e})
		case !yes && open:
			all[len(all)-1].to = e.At
		}
	}
	if s.fresh {
		for of := range stands {
			note(of, false, s.changes[0])
		}
	}
	for i, e := range s.changes {
		kind, name, ok := in.keys.Split(e.Change.Key)
		switch {
		case !ok:
		case kind == store.KindShard:
			r := as[store.Shard](s.records[i])
			note("", r != nil && r.Hold != nil, e)
		case kind == store.KindGroups:
			g, err := store.ReadGroup(e.Change.Value)
			if err != nil && !e.Change.Deleted {
				continue // an unreadable record changes nothing
			}
			note(name, err == nil && g.Paused, e)
		}
	}
}

// asked is how long before a call the state that it rests on may have been read: the answer may
// have been late, and the queue long.
const asked = 7 * time.Second

// callsInStandstill: no removal and no restart begins. Creations and restarts are recorded before
// they begin, where the records tell; a removal only reads that it may begin.
//
// Tolerated: calls of which the look before may have come before the hold, the Delete that follows
// a Stop, and a replica that stood still in between, as long as what was seen of it does not show
// that it was awake.
func (in *inquiry) callsInStandstill(stands map[string][]stand) {
	if len(stands) == 0 {
		return
	}
	stops := map[string]history.Time{}
	seen := map[string][]history.Time{} // signs of life, by replica
	for _, e := range in.events {
		if e.Commit != nil {
			seen[e.Commit.Replica] = append(seen[e.Commit.Replica], e.At)
		}
		c := e.Call
		if c == nil || c.Ended {
			continue
		}
		seen[c.Replica] = append(seen[c.Replica], e.At)
		begun := e.At
		switch c.Method {
		case history.Stop:
			stops[c.Replica+" "+c.Instance] = e.At
		case history.Delete:
			if at, stopped := stops[c.Replica+" "+c.Instance]; stopped {
				begun = at // it is one removal
			}
		case history.Restart:
		default:
			continue
		}
		for _, why := range []struct{ of, rule, what string }{
			{"", "SAFE-12", "the shard was put on hold"},
			{in.groupOf(c.Instance), "REC-13", "its group was paused"},
		} {
			for _, st := range stands[why.of] {
				released := st.to
				if released != always {
					released = released.Add(-late)
				}
				if st.from.Add(asked) < begun && begun < released && awake(seen[c.Replica], begun) {
					in.violation(why.rule, e.At, fmt.Sprintf("replica %s called %s for %s, %s after %s", c.Replica,
						c.Method, c.Instance, begun.Sub(st.from).Round(1e8), why.what), st.event, e)
				}
			}
		}
	}
}

// awake reports whether a replica showed activity in every second before a moment.
func awake(seen []history.Time, at history.Time) bool {
	for from := at.Add(-asked); from < at; from = from.Add(asked / 4) {
		s := span{from, from.Add(asked / 4)}
		if !slices.ContainsFunc(seen, s.has) {
			return false
		}
	}
	return true
}

// groupOf returns the last group of an instance; "" if none.
func (in *inquiry) groupOf(id string) string {
	for _, s := range slices.Backward(in.steps) {
		for _, t := range s.transitions {
			switch {
			case t.id != id:
			case t.next != nil:
				return t.next.Group
			case t.old != nil:
				return t.old.Group
			}
		}
	}
	return "(none)"
}

// restored: where etcd shows an older past, the shard is put on hold before anything is made or
// taken down.
//
// Tolerated: where it could not be noticed, as no replica was there before and after, or the
// revision had overtaken what it was.
func (in *inquiry) restored() {
	var before store.Revision // the last one of the line before
	var since history.Time
	line, instances, held := -1, 0, true
	in.walk(in.steps, func(w *world, s *step) {
		if s.fresh {
			held, instances, since = line < 0, 0, s.at
			if line >= 0 {
				before = in.lastRevision(line)
			}
			line = s.line
		}
		for i, e := range s.changes {
			if kind, _, _ := in.keys.Split(e.Change.Key); s.found && kind == store.KindInstances && !e.Change.Deleted {
				instances++
			}
			if r := as[store.Shard](s.records[i]); r != nil && r.Hold != nil {
				held = true
			}
		}
		if held || s.found || s.byHand || instances == 0 || s.revision >= before || !in.survived(since) {
			return
		}
		for _, t := range s.transitions {
			if t.moves() {
				held = true // once is enough
				in.violation("SAFE-12", s.at,
					fmt.Sprintf("etcd was restored to an older revision (%d, it was %d), and %s became %s before the shard was put "+
						"on hold%s", s.revision, before, t.id, t.next.Phase, s.because(t.id)),
					in.evidence(s, t.id)...)
				return
			}
		}
	})
}

func (in *inquiry) lastRevision(line int) (last store.Revision) {
	for _, s := range in.steps {
		if s.line == line && !s.found {
			last = max(last, s.revision)
		}
	}
	return last
}

// survived reports whether some replica's process was running before and after a moment.
func (in *inquiry) survived(at history.Time) bool {
	before := map[string]bool{}
	for _, e := range in.events {
		if c := e.Commit; c != nil {
			who := fmt.Sprint(c.Replica, c.Process)
			if e.At < at {
				before[who] = true
			} else if before[who] {
				return true
			}
		}
	}
	return false
}
