package sim_test

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// storm: as long as the records tell of a storm, no instance that is merely lost is replaced or
// taken down for it, but the one that is tried (SAFE-2).
func (in *inquiry) storm() {
	key := in.tr.w.Keys().Status(in.a.Group)
	now := sim.Read[store.Status](in.tr.w, key).Record.Storm
	if now == nil || now.Ended != "" {
		return
	}
	for _, rec := range in.replacesLost() {
		if now.Probe != rec.ID && !in.triesNext(key, rec.ID) {
			in.tr.fail("%s is lost in a storm, and replaced: %s %s, because %s", rec.ID, in.a.Rule, in.a.What(), in.a.Why)
		}
	}
}

// stormAfterGrace: what was lost in a grace, however long that was, is lost all at once at its end.
// Where that is enough for a storm, none of it is replaced before there is one (SAFE-1, SAFE-2).
func (in *inquiry) stormAfterGrace(now time.Time) {
	spec := in.force.spec.Storm
	at := slices.IndexFunc(in.s.Groups, func(g plan.Group) bool { return g.Name == in.a.Group })
	if !in.force.there || at < 0 || !now.Before(in.s.GraceEnd.Add(spec.Window.D())) ||
		sim.Read[store.Status](in.tr.w, in.tr.w.Keys().Status(in.a.Group)).Record.Storm != nil {
		return
	}
	g := &in.s.Groups[at]
	var lost []string
	of := 0
	for i := range g.Instances {
		m := &g.Instances[i]
		if !m.Record.Managed {
			continue
		}
		of++
		if in.p.Judgments.Of(m.Record.ID).Verdict == store.Lost && m.AliveGone.Before(in.s.GraceEnd) {
			lost = append(lost, m.Record.ID)
		}
	}
	if of = max(of, len(g.Slots)); len(lost) < spec.Min || len(lost)*100 < spec.Percent*of {
		return
	}
	for _, rec := range in.replacesLost() {
		if slices.Contains(lost, rec.ID) {
			in.tr.fail("%v of %d were lost by the end of a grace, which is no storm, and %s is replaced: %s %s, because %s",
				lost, of, rec.ID, in.a.Rule, in.a.What(), in.a.Why)
		}
	}
}

// replacesLost returns the instances that are merely lost, and that the action replaces or takes
// down for it. What is ordered, doomed, too many or to be updated is another matter.
func (in *inquiry) replacesLost() (all []store.Instance) {
	if !in.force.there || in.force.spec.Deleting || in.force.spec.Stopped || in.a.Rule == "REC-16" ||
		in.filledSlots() > in.force.spec.Size {
		return nil
	}
	for _, c := range in.changes {
		rec := c.old.Record
		if !c.old.Present() || !rec.Managed || in.p.Judgments.Of(rec.ID).Verdict != store.Lost ||
			rec.Condemned != nil || rec.Doomed != nil {
			continue
		}
		if replaced := c.leaves() || len(in.begun()) > 0; replaced && in.alone(rec) == nil {
			all = append(all, rec)
		}
	}
	return all
}

// triesNext reports whether the plan which the action is part of makes an instance the one that is
// tried.
func (in *inquiry) triesNext(key, id string) bool {
	for i := range in.p.Actions {
		for _, op := range in.p.Actions[i].Writes {
			if op.Key != key || op.Delete {
				continue
			}
			st, err := store.Decode[store.Status](store.KV{Key: op.Key, Value: op.Value})
			if err == nil && st.Record.Storm != nil && (st.Record.Storm.Probe == id || st.Record.Storm.Ended != "") {
				return true
			}
		}
	}
	return false
}
