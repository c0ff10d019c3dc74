package sim_test

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// looksHealthy is what the records say: it runs, its stream is open, and a report of its present
// boot says that it is well.
func (tr *trial) looksHealthy(rec store.Instance) bool {
	if rec.Phase != store.Running {
		return false
	}
	return tr.reportsWell(rec.ID)
}

func (tr *trial) reportsWell(id string) bool {
	alive := sim.Read[store.Alive](tr.w, tr.w.Keys().Alive(id))
	report := sim.Read[store.Report](tr.w, tr.w.Keys().Report(id))
	return alive.Present() && alive.Record.State == store.StreamOpen && report.Record.Healthy &&
		report.Record.BootID == alive.Record.BootID
}

// destruction: nothing that works is taken down without a reason that anyone can see, whatever
// lies the provider's Lists tell.
func (in *inquiry) destruction(c change) {
	tr, rec := in.tr, c.old.Record
	if rec.Phase == store.Draining {
		in.returned(c)
		return
	}
	looks := tr.looksHealthy(rec)
	sound := rec.Phase == store.Running && tr.w.Sound(rec.ID)
	if m, there := tr.w.Machine(rec.ID); !looks && !sound || in.dead(rec.ID) && (!there || m.State.Down()) {
		return
	}
	if reason := in.reason(c); reason != "" {
		return
	}
	tr.fail("%s works (by the records %t, in truth %t) and is taken from %s to %s for no reason: %s %s, because %s",
		rec.ID, looks, sound, rec.Phase, c.next.Phase, in.a.Rule, in.a.What(), in.a.Why)
}

// reason finds why a healthy instance may be taken down; "" if there is no reason.
func (in *inquiry) reason(c change) string {
	tr, rec, spec := in.tr, c.old.Record, in.force.spec
	request := false
	for _, op := range in.a.Writes {
		kind, _, _ := tr.w.Keys().Split(op.Key)
		request = request || kind == store.KindRequests && op.Delete
	}
	_, evacuated := tr.w.Shard().Evacuated[rec.Zone]
	switch {
	case rec.Condemned != nil || request:
		return "ordered"
	case in.force.there && rec.Managed && (spec.Deleting || spec.Stopped):
		return "the group ends"
	case rec.Doomed != nil || evacuated && rec.Managed:
		return "doomed"
	case in.duplicate(rec):
		return "duplicate"
	case rec.Protected != "":
		return ""
	case !rec.Managed:
		return in.aged(rec, spec.OnDemandAge.D(), "on demand")
	case in.filledSlots() > spec.Size:
		return "surplus"
	case rec.Template != in.force.hash || rec.Relaunch < spec.Relaunch.Number:
		return "outdated"
	}
	if spec.Spot.Enabled || spec.Capacity.Spot > 0 && rec.Spec.Spot {
		if why := in.aged(rec, spec.Spot.MaxLifetime.D(), "spot"); why != "" {
			return why
		}
	}
	for _, age := range []*store.Duration{spec.Expiry.ForcedAge, spec.Expiry.EligibleAge} {
		if age != nil {
			if why := in.aged(rec, age.D(), "expired"); why != "" {
				return why
			}
		}
	}
	return ""
}

// aged: ages differ by up to a tenth, and clocks by what leaders' clocks are wrong.
func (in *inquiry) aged(rec store.Instance, limit time.Duration, why string) string {
	if limit <= 0 || in.tr.w.Now().Sub(rec.Created) < limit*9/10-in.tr.wrong {
		return ""
	}
	return why
}

// duplicate reports whether another instance in the same slot works as well, or has finished the
// task of the slot.
func (in *inquiry) duplicate(rec store.Instance) bool {
	if !rec.Managed {
		return false
	}
	for _, o := range in.tr.members(rec.Group) {
		if o.ID != rec.ID && o.Managed && o.Slot == rec.Slot && (in.tr.looksHealthy(o) || o.Phase == store.Finished) {
			return true
		}
	}
	return false
}

// filledSlots counts the slots with an instance that is not dead.
func (in *inquiry) filledSlots() int {
	slots := map[int]bool{}
	for _, o := range in.tr.members(in.a.Group) {
		if o.Managed && (o.Phase.Fills() && !in.dead(o.ID) || o.Phase == store.Finished) {
			slots[o.Slot] = true
		}
	}
	return len(slots)
}

// returned: an instance that drained because it was lost, and is back, is not destroyed while its
// slot needs it (DET-15).
func (in *inquiry) returned(c change) {
	tr, rec := in.tr, c.old.Record
	if rec.Drain == nil || !rec.Drain.Lost || !tr.reportsWell(rec.ID) || in.dead(rec.ID) {
		return
	}
	slot := sim.Read[store.Slot](tr.w, tr.w.Keys().Slot(rec.Group, rec.Slot)).Record
	flaps := len(slot.Failures) >= in.force.spec.Flap.Failures
	if in.reason(c) == "" && !flaps {
		tr.fail("%s was lost, has returned, and is destroyed all the same: %s %s, because %s", rec.ID, in.a.Rule,
			in.a.What(), in.a.Why)
	}
}
