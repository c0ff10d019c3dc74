package plan

import (
	"reflect"
	"time"

	"github.com/leasehold/leasehold/store"
)

// planIsSound checks one plan before it is carried out: it is a function, leaves its input alone, writes every
// key once, and looks again in the future.
func (w *world) planIsSound() {
	s, same := w.snapshot(), w.snapshot()
	p := Compute(s, w.now)
	if !reflect.DeepEqual(s, same) {
		w.t.Fatalf("Compute changed its snapshot")
	}
	if again := Compute(s, w.now); !reflect.DeepEqual(p, again) {
		w.t.Fatalf("two plans of one snapshot differ:\n%+v\n%+v", p, again)
	}
	written := map[string]string{}
	for _, a := range p.Actions {
		for _, op := range a.Writes {
			if before, twice := written[op.Key]; twice {
				w.t.Fatalf("%s is written by two actions of one plan: %q and %q", op.Key, before, a.What)
			}
			written[op.Key] = a.What
		}
	}
	for name, at := range p.Due {
		if !at.IsZero() && !at.After(w.now) {
			w.t.Fatalf("%q is due at %s, which is not in the future", name, at)
		}
	}
	if !p.Next.IsZero() && !p.Next.After(w.now) {
		w.t.Fatalf("next look at %s, which is not in the future", p.Next)
	}
	w.budgetsHold(&s, &p)
}

// budgetsHold checks what a plan makes and removes against the group's budgets.
func (w *world) budgetsHold(s *Snapshot, p *Plan) {
	spec := w.inForce(s)
	before, filled := 0, map[int]bool{}
	for _, in := range s.Groups[0].Instances {
		if in.Record.Managed && in.Record.Phase != store.Deleting && p.Judgments[in.Record.ID].Verdict != store.Dead {
			before++
			if in.Record.Phase.Fills() {
				filled[in.Record.Slot] = true
			}
		}
	}
	after := before
	for _, a := range p.Actions {
		for range w.made(&a) {
			after++ // as if every removal of the plan were overtaken, but those in the same transaction
			if a.To == store.Deleting && a.Verdict != store.Dead {
				after--
			}
		}
	}
	if spec == nil {
		if after != before {
			w.t.Fatalf("a group without a spec makes machines: %+v", p.Actions)
		}
		return
	}
	// Slots that are missing are filled beside whatever expansion is in use (HEAL-10), which may be more than is allowed by now.
	missing := max(0, spec.Size-len(filled))
	if most := max(before+missing, spec.Size+spec.Budget.MaxExpansion); after > most {
		w.t.Fatalf("%d instances after this plan, at most %d are allowed (size %d, max_expansion %d, %d before)",
			after, most, spec.Size, spec.Budget.MaxExpansion, before)
	}
}

func (w *world) inForce(s *Snapshot) *store.Group {
	g := s.Groups[0]
	if g.Spec.Modified != 0 && g.Spec.Problem == "" {
		return &g.Spec.Group
	}
	return g.Status.Record.Accepted
}

// made lists the instances whose records an action begins.
func (w *world) made(a *Action) (ids []string) {
	for _, c := range a.Conditions {
		name, ok := cutKey(c.Key, w.keys.Of(store.KindInstances))
		if ok && c.Absent {
			ids = append(ids, name)
		}
	}
	return ids
}

func cutKey(key, prefix string) (string, bool) {
	if len(key) > len(prefix) && key[:len(prefix)] == prefix {
		return key[len(prefix):], true
	}
	return "", false
}

// actionIsSound checks an action as it is carried out, on what is in the store by then.
func (w *world) actionIsSound(s *Snapshot, p *Plan, a *Action) {
	if !w.holds(a.Conditions) {
		return // overtaken: it will not happen
	}
	spec := w.inForce(s)
	for _, op := range a.Writes {
		id, ok := cutKey(op.Key, w.keys.Of(store.KindInstances))
		if !ok {
			continue
		}
		old := w.instance(id)
		if op.Delete {
			w.recordMayGo(id, old)
			continue
		}
		next, err := store.Decode[store.Instance](store.KV{Key: op.Key, Value: op.Value})
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		w.stepIsLegal(a, old, next.Record)
		switch {
		case !old.Present():
			w.creationIsSound(s, p, a, spec, next.Record)
		case old.Record.Phase != store.Deleting && next.Record.Phase == store.Deleting:
			w.removalIsSound(s, p, a, spec, old)
		}
	}
}

func (w *world) holds(conditions []store.Condition) bool {
	for _, c := range conditions {
		kv, there := w.kvs[c.Key]
		if c.Absent && there || c.Exists && !there || c.Modified != 0 && kv.Modified != c.Modified {
			return false
		}
	}
	return true
}

func (w *world) stepIsLegal(a *Action, old store.Versioned[store.Instance], next store.Instance) {
	from := old.Record.Phase
	if from != next.Phase {
		if err := store.ValidateTransition(from, next.Phase); err != nil {
			w.t.Fatalf("%s: %v", a.What, err)
		}
	}
	if old.Present() && (old.Record.Slot != next.Slot || old.Record.Group != next.Group || old.Record.Managed != next.Managed ||
		old.Record.Template != next.Template || old.Record.Replaces != next.Replaces || old.Record.Called && !next.Called) {
		w.t.Fatalf("%s rewrites history: %+v was %+v", a.What, next, old.Record)
	}
}

// recordMayGo: only of a machine that is gone and will not come.
func (w *world) recordMayGo(id string, old store.Versioned[store.Instance]) {
	if old.Record.Phase != store.Deleting {
		w.t.Fatalf("record of %s removed while %s", id, old.Record.Phase)
	}
	if w.machines[id] != nil {
		w.t.Fatalf("record of %s removed while its machine exists", id)
	}
	for _, c := range w.calls {
		if c.Instance == id && c.Kind == CallCreate && c.begun && !c.effectAt.IsZero() {
			w.t.Fatalf("record of %s removed while a call that makes its machine is under way", id)
		}
	}
}

func (w *world) creationIsSound(s *Snapshot, p *Plan, a *Action, spec *store.Group, next store.Instance) {
	w.actsOnAll(s, a)
	if w.instance(next.ID).Present() || w.machines[next.ID] != nil {
		w.t.Fatalf("ID %s is used twice", next.ID)
	}
	comingUp, members := 1, 1
	for _, v := range w.instances() {
		rec := v.Record
		switch rec.Phase {
		case store.Pending, store.Creating, store.Booting, store.Starting:
			if !p.Judgments[rec.ID].Verdict.Failed() {
				comingUp++
			}
		default:
		}
		if rec.Slot != next.Slot || rec.Phase == store.Deleting || a.Instance == rec.ID && a.To == store.Deleting {
			continue
		}
		members++
		if j := p.Judgments[rec.ID].Verdict; rec.Condemned == nil && rec.Phase.Fills() && !j.Failed() {
			w.t.Fatalf("%s is made beside %s, which is %s and fills slot %d", next.ID, rec.ID, j, next.Slot)
		}
	}
	if members > 2 {
		w.t.Fatalf("slot %d has %d members with %s", next.Slot, members, next.ID)
	}
	if m := spec.Budget.MaxCreating; m != 0 && comingUp > m && a.Verdict != store.Dead {
		w.t.Fatalf("%d are coming up, max_creating is %d: %s", comingUp, m, a.What)
	}
	if at, flaps := s.Groups[0].SlotDue[next.Slot][store.TimerRetry]; flaps && at.After(w.now) && a.Rule != "REC-16" {
		w.t.Fatalf("slot %d is filled %s before its wait is over", next.Slot, at.Sub(w.now))
	}
}

func (w *world) removalIsSound(s *Snapshot, p *Plan, a *Action, spec *store.Group, old store.Versioned[store.Instance]) {
	w.actsOnAll(s, a)
	id, rec := old.Record.ID, old.Record
	j := p.Judgments[id]
	if j.Verdict.Failed() && a.Rule != "REC-7" {
		w.compares(a, w.keys.Alive(id))
		if j.Verdict == store.Unhealthy {
			w.compares(a, w.keys.Report(id))
		}
	}
	if w.now.Before(w.graceEnd) && j.Verdict == store.Lost {
		w.t.Fatalf("%s is judged lost in the time of grace", id)
	}
	leaving, filled, kept := 1, map[int]bool{}, false
	for _, v := range w.instances() {
		r := v.Record
		switch r.Phase {
		case store.Draining, store.Stopping, store.Deleting:
			leaving++
		default:
		}
		if r.Phase.Fills() && p.Judgments[r.ID].Verdict != store.Dead {
			filled[r.Slot] = true
		}
		if r.ID != id && r.Slot == rec.Slot && w.appears(r.ID) {
			kept = true
		}
	}
	if m := spec.Budget.MaxDeleting; m != 0 && leaving > m && a.Verdict != store.Dead {
		w.t.Fatalf("%d are leaving, max_deleting is %d: %s", leaving, m, a.What)
	}
	if w.works(id) && !spec.Deleting && rec.Condemned == nil && len(filled) <= spec.Size && !kept {
		w.t.Fatalf("%s works, is wanted, and is removed: %s %s, because %s (judged %s: %s)", id, a.Rule, a.What, a.Why, j.Verdict, j.Why)
	}
}

// works is the truth about an instance, which no record shows: it runs, its agent can report, and its checks pass.
func (w *world) works(id string) bool {
	m, a := w.machines[id], w.agents[id]
	return m != nil && !m.down && a != nil && a.registered && a.silentFrom.IsZero() && a.healthy && w.instance(id).Record.Phase == store.Running
}

// appears is what the records say: running, an open stream, a good report.
func (w *world) appears(id string) bool {
	alive, report := read[store.Alive](w, w.keys.Alive(id)), read[store.Report](w, w.keys.Report(id))
	return w.instance(id).Record.Phase == store.Running && alive.Record.State == store.StreamOpen && report.Record.Healthy
}

// actsOnAll: what makes or destroys compares the spec and the shard, and both allow it.
func (w *world) actsOnAll(s *Snapshot, a *Action) {
	w.compares(a, w.keys.Group(w.group))
	w.compares(a, w.keys.Shard())
	if h := read[store.Shard](w, w.keys.Shard()).Record.Hold; h != nil {
		w.t.Fatalf("%s while the shard is on hold", a.What)
	}
	if g := w.spec().Record; g.Paused && g.Validate() == nil { // one that is not in force pauses nothing (SAFE-10)
		w.t.Fatalf("%s while the group is paused", a.What)
	}
	if s.Stale != "" {
		w.t.Fatalf("%s on a stale picture", a.What)
	}
}

func (w *world) compares(a *Action, key string) {
	for _, c := range a.Conditions {
		if c.Key == key {
			return
		}
	}
	w.t.Fatalf("%s %s (%s) rests on %s and does not compare it", a.Instance, a.What, a.Rule, key)
}

// converged says what is missing for the group to be as wanted; "" if nothing is.
func (w *world) converged() string {
	if !w.spec().Present() {
		if n := len(w.instances()); n > 0 || len(w.machines) > 0 {
			return "a deleted group has instances"
		}
		return ""
	}
	size := w.spec().Record.Size
	up, slots := 0, map[int]bool{}
	for _, v := range w.instances() {
		if !w.works(v.Record.ID) {
			return v.Record.ID + " does not work: " + string(v.Record.Phase)
		}
		up++
		slots[v.Record.Slot] = true
	}
	switch {
	case up != size || len(slots) != size:
		return "the number of instances is wrong"
	case len(w.machines) != size:
		return "the number of machines is wrong"
	}
	for _, name := range w.names(store.KindSlots) {
		if n := read[store.Slot](w, w.keys.Of(store.KindSlots)+name).Record.Number; !slots[n] {
			return "a slot is left over"
		}
	}
	if n := len(w.names(store.KindAlive)); n != size {
		return "sessions are left over"
	}
	if st := read[store.Status](w, w.keys.Status(w.group)).Record; st.Health != 100 {
		return "the status does not say so"
	}
	return ""
}

// patience is how long a group may take to be as wanted once nothing goes wrong any more.
const patience = 30 * time.Minute
