package judge

import (
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// reason returns why an instance may be taken down, restarted or replaced though it is well; "" if
// there is no reason. It goes by what is in etcd at the very revision: every such act compares the
// spec, the shard and the instance (SAFE-4).
//
// Tolerated on purpose: an instance that its group's age limits may concern and that the journal
// says has grown too old. How old it is by the leader's clock no history tells. And one whose
// group's spec was never seen: what was wanted of it is unknown.
func (in *inquiry) reason(w *world, s *step, rec *store.Instance) string {
	f := w.inForce(rec.Group)
	evacuated := false
	if w.shard != nil {
		_, evacuated = w.shard.Evacuated[rec.Zone]
	}
	ordered := func(r store.Request) bool { return r.Instance == rec.ID && asksToGo(r.Kind) }
	switch {
	case rec.Condemned != nil || slices.ContainsFunc(s.obeyed, ordered):
		return "ordered"
	case !f.there:
		return "nothing is known of its group"
	case rec.Managed && (f.spec.Deleting || f.spec.Stopped):
		return "the group ends"
	case rec.Doomed != nil || evacuated:
		return "doomed"
	case in.duplicate(w, rec):
		return "another one in its slot is well"
	case in.aged(w, s, rec):
		return "too old"
	case !rec.Managed:
		return ""
	case in.filledSlots(w, rec.Group, s.at) > f.spec.Size:
		return "surplus"
	case rec.Template != f.hash && f.spec.Rollout.Strategy == store.StrategyProactive ||
		rec.Relaunch < f.spec.Relaunch.Number:
		return "outdated"
	}
	return ""
}

func asksToGo(k store.RequestKind) bool {
	return k == store.RequestReplace || k == store.RequestDelete || k == store.RequestDrain || k == store.RequestRestart
}

// duplicate reports whether another instance in the same slot is healthy by the records, or has
// finished the task of the slot. Whether there should be two was checked when the second was
// requested.
func (in *inquiry) duplicate(w *world, rec *store.Instance) bool {
	if !rec.Managed {
		return false
	}
	return slices.ContainsFunc(w.inGroup(rec.Group), func(o *store.Instance) bool {
		return o.ID != rec.ID && o.Slot == rec.Slot &&
			(o.Phase == store.Running && w.looksWell(o.ID) || o.Phase == store.Finished)
	})
}

// filledSlots counts the slots with an instance that is not known to be dead.
func (in *inquiry) filledSlots(w *world, group string, at history.Time) int {
	slots := map[int]bool{}
	for _, m := range w.inGroup(group) {
		if m.Phase == store.Finished || m.Phase.Fills() &&
			!(m.Phase == store.Running && in.truth.surelyDead(m.ID, at)) {
			slots[m.Slot] = true
		}
	}
	return len(slots)
}

func (in *inquiry) aged(w *world, s *step, rec *store.Instance) bool {
	g := w.inForce(rec.Group).spec
	limited := g.OnDemandAge > 0 || g.Spot.Enabled && g.Spot.MaxLifetime > 0
	for _, age := range []*store.Duration{g.Expiry.ForcedAge, g.Expiry.EligibleAge} {
		limited = limited || age != nil && *age > 0
	}
	if w.shard != nil {
		limited = limited || w.shard.Settings.ForcedAge > 0 || w.shard.Settings.EligibleAge > 0
	}
	return limited && slices.ContainsFunc(s.journal, func(e entry) bool {
		return e.names(rec.ID) && (e.Rule == "EXP-1" || e.Rule == "SPOT-3" || e.Rule == "REC-2" && !rec.Managed)
	})
}

// names reports whether an entry is about an instance: it is its own, or its text names it, as the
// entry of an original names the replacement.
func (e entry) names(id string) bool {
	if e.Claimed {
		return false
	}
	return e.Instance == id || slices.Contains(strings.FieldsFunc(e.What, func(r rune) bool {
		return r == ' ' || r == ';' || r == ','
	}), id)
}

// of returns what a step's journal says about an instance.
func (s *step) of(id string) []entry {
	var out []entry
	for _, e := range s.journal {
		if e.names(id) {
			out = append(out, e)
		}
	}
	return out
}

// verdict returns the journal's verdict on an instance in a step; "" if none.
func (s *step) verdict(id string) store.Verdict {
	for _, e := range s.journal {
		if e.Instance == id && !e.Claimed {
			return e.Verdict
		}
	}
	return ""
}

// maxEvents is how many past events of a machine are shown.
const maxEvents = 6

// evidence returns what mattered about an instance in a step: its past, its change, and the journal
// of the step.
func (in *inquiry) evidence(s *step, id string) []history.Event {
	out := in.past(id, s.at)
	for _, t := range s.transitions {
		if t.id == id {
			out = append(out, t.event)
		}
	}
	for _, e := range s.of(id) {
		out = append(out, e.event)
	}
	return out
}

// past returns the last events of a machine before a moment.
func (in *inquiry) past(id string, at history.Time) []history.Event {
	f := in.truth.fates[id]
	if f == nil {
		return nil
	}
	n, _ := slices.BinarySearchFunc(f.told, at, func(e history.Event, at history.Time) int {
		if e.At <= at {
			return -1
		}
		return 1
	})
	return slices.Clone(f.told[max(0, n-maxEvents):n])
}
