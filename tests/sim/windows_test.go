package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// windows gives some groups windows and a freeze (ROLL-6), drawn apart.
func (tr *trial) windows(g *store.Group) {
	apart := rand.New(rand.NewPCG(tr.plot.seed, 2<<32|uint64(g.Name[0])))
	if apart.IntN(3) > 0 {
		return
	}
	for at := apart.IntN(4); at < 5*60; at += 6 {
		w := store.Window{
			From: fmt.Sprintf("%02d:%02d", at/60, at%60),
			For:  store.Duration(1+apart.IntN(4)) * store.Duration(time.Minute),
		}
		if apart.IntN(3) == 0 {
			w.Allow = []string{store.PlannedWork[apart.IntN(len(store.PlannedWork))]}
		}
		g.Windows = append(g.Windows, w)
	}
	if apart.IntN(3) == 0 {
		from := sim.Epoch.Add(time.Duration(apart.IntN(600)) * time.Second)
		g.Freeze.From = from.Format(time.RFC3339)
		g.Freeze.To = from.Add(time.Duration(1+apart.IntN(600)) * time.Second).Format(time.RFC3339)
	}
	g.Expiry.ForcedGrace = new(seconds(apart.IntN(200)))
}

// mayBegin reports whether planned work of a kind may begin in a group at a time, by the windows
// that these worlds have: every day, in UTC, and none across midnight.
func mayBegin(g *store.Group, kind string, at time.Time) bool {
	at = at.UTC()
	if f := g.Freeze; f.To != "" && at.Format(time.RFC3339) >= f.From && at.Before(parsed(f.To)) {
		return false
	}
	clock := at.Sub(at.Truncate(24 * time.Hour))
	return len(g.Windows) == 0 || slices.ContainsFunc(g.Windows, func(w store.Window) bool {
		var h, m int
		if _, err := fmt.Sscanf(w.From, "%d:%d", &h, &m); err != nil {
			panic(err)
		}
		from := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
		return clock >= from && clock < from+w.For.D() && (len(w.Allow) == 0 || slices.Contains(w.Allow, kind))
	})
}

func parsed(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at
}

// inWindow: nothing planned begins with an instance that works outside of the windows of its group
// or in a freeze (ROLL-6). What goes because another has taken its place has begun before.
func (in *inquiry) inWindow() {
	if in.tr.wrong != 0 || !in.force.there {
		return // windows go by the leader's clock
	}
	makes := slices.ContainsFunc(in.changes, change.begins)
	for _, c := range in.changes {
		old := c.old.Record
		if !c.old.Present() || c.gone || !in.tr.looksHealthy(old) || in.p.Judgments.Of(old.ID).Verdict != store.Live {
			continue
		}
		updated := old.Template != c.next.Template
		if !makes && !c.leaves() && !updated || in.anyTime(c) {
			continue
		}
		kinds := in.planned(old, c.leaves())
		if !slices.ContainsFunc(kinds, in.mayBegin) {
			in.tr.fail("%s works, and no window lets %v begin with it now: %s %s, because %s", old.ID, kinds, in.a.Rule,
				in.a.What(), in.a.Why)
		}
	}
}

// mayBegin reports whether planned work of a kind might begin when it was decided: a window may
// close between the decision and its transaction.
func (in *inquiry) mayBegin(kind string) bool {
	at := in.tr.w.Now()
	for _, p := range in.tr.planned {
		if p.revision == in.s.Revision {
			at = p.at // of several plans from one snapshot, the last
		}
	}
	return mayBegin(&in.force.spec, kind, at)
}

// anyTime reports whether an instance that works may be replaced or taken down outside of windows.
func (in *inquiry) anyTime(c change) bool {
	old, spec := c.old.Record, in.force.spec
	switch in.reason(change{old: c.old}) {
	case "ordered", "the group ends", "doomed", "duplicate", "spot":
		return true
	}
	if in.reasonOfAge(old, spec.Spot.MaxLifetime.D()) && (spec.Spot.Enabled || spec.Capacity.Spot > 0 && old.Spec.Spot) {
		return true
	}
	grace := spec.Expiry.Grace()
	if forced := spec.Expiry.ForcedAge; forced != nil && old.Managed && in.reasonOfAge(old, forced.D()*9/10+grace) {
		return true
	}
	if !old.Managed {
		return spec.OnDemandAge > 0 && in.reasonOfAge(old, spec.OnDemandAge.D()*9/10+grace)
	}
	good := sim.Read[store.Status](in.tr.w, in.tr.w.Keys().Status(old.Group)).Record.LastGood
	back := good != nil && good.Template == in.force.hash
	return old.Template == in.force.hash && old.Relaunch < spec.Relaunch.Number || old.Template != in.force.hash && back
}

func (in *inquiry) reasonOfAge(rec store.Instance, limit time.Duration) bool {
	return in.aged(rec, limit, "old") != ""
}

// planned are the kinds of planned work that an instance may be replaced or taken down for.
func (in *inquiry) planned(old store.Instance, leaves bool) []string {
	spec := in.force.spec
	var kinds []string
	if old.Template != in.force.hash {
		kinds = append(kinds, store.PlannedRoll)
	}
	if !old.Managed || ages(spec) {
		kinds = append(kinds, store.PlannedExpiry)
	}
	if leaves && in.filledSlots() > spec.Size {
		kinds = append(kinds, store.PlannedScaleDown)
	}
	if spec.Capacity.Spot > 0 || spec.Spread == store.SpreadEven {
		kinds = append(kinds, store.PlannedRebalance)
	}
	return kinds
}

// healsInAFreeze: while nothing planned may begin, every slot gets an instance that works all the
// same (ROLL-6).
func (tr *trial) healsInAFreeze() {
	var frozen []string
	for _, name := range tr.groups() {
		f := tr.inForce(name)
		if !f.there || len(f.spec.Windows) == 0 || f.spec.Deleting || f.spec.Stopped || f.spec.Paused {
			continue
		}
		frozen = append(frozen, name)
		tr.editGroup(name, "frozen", func(g *store.Group) {
			g.Freeze = store.FreezeSpec{To: tr.w.Now().Add(10 * patience).UTC().Format(time.RFC3339)}
		})
	}
	missing := "not looked yet"
	for end := tr.w.Elapsed() + patience; len(frozen) > 0 && missing != "" && tr.failed == ""; {
		tr.w.RunUntil(tr.w.Now().Add(5 * time.Second))
		missing = ""
		for _, name := range frozen {
			if f := tr.inForce(name); f.there && missing == "" && !tr.tolerant(f.spec) {
				missing = tr.unhealed(f)
			}
		}
		if tr.w.Elapsed() > end {
			tr.fail("%s after all troubles have ended, in a freeze: %s", patience, missing)
		}
		if int(tr.w.Elapsed()/(5*time.Second))%60 == 0 {
			tr.retryAll()
		}
	}
	for _, name := range frozen {
		tr.editGroup(name, "its windows taken away", func(g *store.Group) { g.Freeze, g.Windows = store.FreezeSpec{}, nil })
	}
}

// heldForGood reports whether a group's breaker is open and heals nothing to try: it closes only
// when fewer fail, and stops a roll meanwhile (ROLL-7).
func (tr *trial) heldForGood(g store.Group) bool {
	return g.Storm.ProbeAfter == 0 && sim.Read[store.Status](tr.w, tr.w.Keys().Status(g.Name)).Record.Breaker != nil
}

// unhealed returns what is wrong with a group but that something planned is due; "" if nothing is.
func (tr *trial) unhealed(f inForce) string {
	slots := map[int]bool{}
	for _, m := range tr.members(f.spec.Name) {
		if m.Managed && (m.Phase == store.Finished || m.Phase == store.Running && tr.w.Works(m.ID) || tr.failsForGood(f, m)) {
			slots[m.Slot] = true
		}
	}
	if len(slots) < f.spec.Size {
		return fmt.Sprintf("group %s: %d slots have a working instance, size is %d", f.spec.Name, len(slots), f.spec.Size)
	}
	return ""
}
