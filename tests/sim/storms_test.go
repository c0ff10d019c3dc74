package sim_test

import (
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// storm: as long as the records tell of a storm, no instance that is merely lost is replaced or
// taken down for it, but the one that is tried (SAFE-2). What is ordered, doomed, too many or to be
// updated is another matter.
func (in *inquiry) storm() {
	key := in.tr.w.Keys().Status(in.a.Group)
	now := sim.Read[store.Status](in.tr.w, key).Record.Storm
	if now == nil || now.Ended != "" || !in.force.there || in.force.spec.Deleting || in.force.spec.Stopped ||
		in.filledSlots() > in.force.spec.Size {
		return
	}
	for _, c := range in.changes {
		rec := c.old.Record
		if !c.old.Present() || !rec.Managed || in.a.Rule == "REC-16" || in.p.Judgments.Of(rec.ID).Verdict != store.Lost ||
			rec.Condemned != nil || rec.Doomed != nil || now.Probe == rec.ID || in.triesNext(key, rec.ID) {
			continue
		}
		if replaced := c.leaves() || len(in.begun()) > 0; replaced && in.alone(rec) == nil {
			in.tr.fail("%s is lost in a storm, and replaced: %s %s, because %s", rec.ID, in.a.Rule, in.a.What(), in.a.Why)
		}
	}
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
