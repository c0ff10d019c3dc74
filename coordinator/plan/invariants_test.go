package plan

import (
	"reflect"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// planIsSound checks one plan before it is carried out: it is a function, leaves its input alone,
// writes every key once, and looks again in the future.
func (w *world) planIsSound() {
	s, same := w.snapshot(), w.snapshot()
	for i := range s.Groups { // the second one shows only what the first has shown
		same.Groups[i].OnlyNumbers = s.Groups[i].OnlyNumbers
	}
	p := Compute(s, w.now)
	if !reflect.DeepEqual(s, same) {
		w.t.Fatalf("Compute changed its snapshot")
	}
	if again := Compute(s, w.now); !reflect.DeepEqual(p, again) {
		w.t.Fatalf("two plans of one snapshot differ:\n%+v\n%+v", p, again)
	}
	if problem := wellFormed(&s, &p, w.now); problem != "" {
		w.t.Fatalf("a plan is not well-formed: %s", problem)
	}
	written := map[string]string{}
	for _, a := range p.Actions {
		for _, op := range a.Writes {
			if before, twice := written[op.Key]; twice {
				w.t.Fatalf("%s is written by two actions of one plan: %q and %q", op.Key, before, a.What())
			}
			written[op.Key] = a.What()
		}
	}
	for _, part := range Batch(p.Actions) {
		for _, a := range part {
			if len(part) > 1 && (a.Turn || a.From == "" && a.To != "" || a.To == store.Draining ||
				a.To == store.Deleting) {
				w.t.Fatalf("%s %s shares a transaction with others", a.Instance, a.What())
			}
		}
	}
	for name, at := range p.Due {
		if !at.IsZero() && !at.After(w.now) {
			w.t.Fatalf("%q is due at %s, which is not in the future", name, at)
		}
	}
	if !p.Wake.IsZero() && !p.Wake.After(w.now) {
		w.t.Fatalf("next look at %s, which is not in the future", p.Wake)
	}
	for i := range s.Groups {
		if problem := audit(&s, &s.Groups[i], &p, w.now).overBudgetSomehow(); problem != "" {
			w.t.Fatalf("group %s: %s", s.Groups[i].Name, problem)
		}
	}
}

// inForce is the spec of a group that counts.
func inForce(s *Snapshot, name string, now time.Time) *store.Group {
	for i := range s.Groups {
		switch g := &s.Groups[i]; {
		case g.Name != name:
		case (g.Spec.Modified != 0 || g.Spec.StaticModified != 0) && g.Spec.Problem == "":
			inForce := g.Spec.Group
			inForce.Size = inForce.SizeAt(g.Status.Record.Scale, now)
			return &inForce
		default:
			return g.Status.Record.Accepted
		}
	}
	return nil
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
	spec := inForce(s, a.Group, w.now)
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
		w.stepIsLegal(a, spec, old, next.Record)
		w.stepIsRecorded(s, a, old, next.Record)
		leaves := next.Record.Phase == store.Deleting || next.Record.Phase == store.Draining
		switch stays := old.Record.Phase != store.Deleting && old.Record.Phase != store.Draining; {
		case !old.Present() && a.Rule == "REC-8":
			w.compares(a, w.keys.Shard())
		case !old.Present():
			w.creationIsSound(s, p, a, spec, next.Record)
		case stays && leaves:
			w.removalIsSound(s, p, a, spec, old)
			w.drains(p, a, old.Record, next.Record)
		case stays && old.Record.Phase != next.Record.Phase && next.Record.Phase == store.Stopping:
			w.restartIsSound(s, p, a, old.Record)
		}
	}
}

func (w *world) holds(conditions []store.Condition) bool {
	for _, c := range conditions {
		kv, there := w.kvs[c.Key]
		if c.Absent && there || c.Exists && !there || c.Modified != 0 && kv.Modified != c.Modified ||
			c.Created != 0 && kv.Created != c.Created {
			return false
		}
	}
	return true
}

func (w *world) stepIsLegal(a *Action, spec *store.Group, old store.Versioned[store.Instance], next store.Instance) {
	from := old.Record.Phase
	if from != next.Phase {
		if err := store.ValidateTransition(from, next.Phase); err != nil {
			w.t.Fatalf("%s: %v", a.What(), err)
		}
	}
	if old.Present() && old.Record.Template != next.Template && next.Template != spec.InstanceSpec().TemplateHash() {
		w.t.Fatalf("%s gives %s an unwanted template", a.What(), next.ID)
	}
	if old.Present() && (old.Record.Slot != next.Slot || old.Record.Group != next.Group ||
		old.Record.Managed != next.Managed || old.Record.Replaces != next.Replaces || old.Record.Called &&
		!next.Called) {
		w.t.Fatalf("%s rewrites history: %+v was %+v", a.What(), next, old.Record)
	}
}

// stepIsRecorded: the record says what the action says, and since when (REC-15). What an action
// adds about a replacement is in the replacement's record.
func (w *world) stepIsRecorded(s *Snapshot, a *Action, old store.Versioned[store.Instance], next store.Instance) {
	last := next.Last
	if last.Rule == "" || last.What == "" || last.Why == "" || last.Revision != s.Revision ||
		last.At.IsZero() || last.At.After(w.now) {
		w.t.Fatalf("%s of %s is recorded as %+v", a.What(), next.ID, last)
	}
	if next.Dead && next.Phase != store.Deleting {
		w.t.Fatalf("%s takes %s to %s, and records it as dead", a.What(), next.ID, next.Phase)
	}
	if !old.Present() {
		return
	}
	what := last.What
	if what == reason.Effect(effect(store.EffectReplaced)) {
		what = "replacement " + a.Replacement + " requested"
	}
	cause := a.Cause
	if cause.Also != nil && a.Replacement != "" { // what the replacement is made from is in its own record
		rest := *cause.Also
		if rest.Made, cause.Also = "", &rest; rest == (store.CauseAlso{}) {
			cause.Also = nil
		}
	}
	if a.Rule != last.Rule || !strings.HasPrefix(a.What(), what) || !strings.HasPrefix(a.Why, last.Why) ||
		!reflect.DeepEqual(cause, last.Cause) ||
		a.Group != next.Group || a.Instance != next.ID || a.From != old.Record.Phase || a.To != next.Phase {
		w.t.Fatalf("%s of %s (%s, %+v) from %q to %q is recorded as %+v", a.What(), a.Instance, a.Why, a.Cause, a.From, a.To,
			last)
	}
	began := old.Record.Since
	if old.Record.Phase != next.Phase ||
		next.Restart != nil && (old.Record.Restart == nil || *old.Record.Restart != *next.Restart) {
		began = last.At
	}
	if !next.Since.Equal(began) {
		w.t.Fatalf("%s of %s: %s since %s, and was %s since %s", a.What(), next.ID, next.Phase, next.Since, old.Record.Phase,
			old.Record.Since)
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
	for _, p := range w.work {
		if p.instance == id {
			w.t.Fatalf("record of %s removed while a call that makes its machine is under way", id)
		}
	}
}

func (w *world) creationIsSound(s *Snapshot, p *Plan, a *Action, spec *store.Group, next store.Instance) {
	w.actsOnAll(s, a)
	if w.instance(next.ID).Present() || w.machines[next.ID] != nil {
		w.t.Fatalf("ID %s is used twice", next.ID)
	}
	w.noBlamedTemplate(s, p, a, next)
	if !next.Managed {
		return
	}
	members := 1
	for _, v := range w.instances() {
		rec := v.Record
		if rec.Group != next.Group || rec.Slot != next.Slot || !rec.Phase.Fills() ||
			p.Judgments.Of(rec.ID).Verdict == store.Dead || a.Instance == rec.ID && a.To != rec.Phase {
			continue
		}
		members++
		if j := p.Judgments.Of(rec.ID).Verdict; !j.Failed() && !w.leaving(s, spec, rec) &&
			!(a.Rule == "REC-17" && spec.Spread == store.SpreadEven) {
			w.t.Fatalf("%s is made beside %s, which is %s and fills slot %d", next.ID, rec.ID, j, next.Slot)
		}
	}
	if members > 2 {
		w.t.Fatalf("slot %d has %d members with %s", next.Slot, members, next.ID)
	}
	at, flaps := w.groupIn(s, next.Group).SlotDue[next.Slot][store.TimerRetry]
	slot := read[store.Slot](w, w.keys.Slot(next.Group, next.Slot)).Record
	if flaps && at.After(w.now) && slot.Template == next.Template &&
		(a.Rule == "HEAL-2" || a.Rule == "REC-3" || a.Rule == "ROLL-1" || a.Rule == "DET-4") {
		w.t.Fatalf("slot %d is filled %s before its wait is over", next.Slot, at.Sub(w.now))
	}
}

// noBlamedTemplate: nothing is made from a template that is blamed, as long as one is known that
// was good and can be used (ROLL-9).
func (w *world) noBlamedTemplate(s *Snapshot, p *Plan, a *Action, next store.Instance) {
	status := w.groupIn(s, a.Group).Status.Record
	for _, other := range p.Actions { // as this plan leaves it: an order or a new spec may have ended the blame
		for _, op := range other.Writes {
			if op.Key == w.keys.Status(a.Group) && !op.Delete {
				v, err := store.Decode[store.Status](store.KV{Key: op.Key, Value: op.Value})
				if err != nil {
					w.t.Fatalf("%v", err)
				}
				status = v.Record
			}
		}
	}
	r, good := status.Rollout, status.LastGood
	if r == nil || r.Blamed == "" || r.FallbackUnusable != "" || good == nil || good.Template == r.Template ||
		next.Template != r.Template {
		return
	}
	for _, zone := range w.zones {
		if _, evacuated := s.Shard.Record.Evacuated[zone]; !evacuated {
			w.t.Fatalf("%s is made from %s, which is blamed, by %s: %s", next.ID, next.Template, a.Rule, a.Why)
		}
	}
}

func (w *world) groupIn(s *Snapshot, name string) *Group {
	for i := range s.Groups {
		if s.Groups[i].Name == name {
			return &s.Groups[i]
		}
	}
	w.t.Fatalf("there is no group %s", name)
	return nil
}

// leaving reports whether an instance is to be replaced though it has not failed: by order, for its
// doom, its age or its template.
func (w *world) leaving(s *Snapshot, spec *store.Group, rec store.Instance) bool {
	_, evacuated := s.Shard.Record.Evacuated[rec.Zone]
	if rec.Condemned != nil || rec.Doomed != nil || evacuated || rec.Template != spec.InstanceSpec().TemplateHash() ||
		rec.Relaunch < spec.Relaunch.Number {
		return true
	}
	oldest := time.Duration(1<<63 - 1)
	for _, limit := range []*store.Duration{spec.Expiry.EligibleAge, spec.Expiry.ForcedAge} {
		if limit != nil && *limit > 0 {
			oldest = min(oldest, limit.D()*9/10)
		}
	}
	if spec.Spot.Enabled {
		oldest = min(oldest, spec.Spot.MaxLifetime.D()*11/12)
	}
	for _, limit := range []store.Duration{s.Shard.Record.Settings.EligibleAge, s.Shard.Record.Settings.ForcedAge} {
		if limit > 0 {
			oldest = min(oldest, limit.D()*9/10)
		}
	}
	return w.now.Sub(rec.Created) >= oldest
}

func (w *world) removalIsSound(s *Snapshot, p *Plan, a *Action, spec *store.Group,
	old store.Versioned[store.Instance],
) {
	w.actsOnAll(s, a)
	id, rec := old.Record.ID, old.Record
	j := p.Judgments.Of(id)
	if spec == nil { // its group is gone: what it left on demand goes by order alone
		if rec.Managed || rec.Condemned == nil {
			w.t.Fatalf("%s goes, of a group that nothing is wanted of: %s %s", id, a.Rule, a.What())
		}
		return
	}
	if j.Verdict.Failed() && a.Rule != "REC-7" && a.Rule != "REC-11" && rec.Managed {
		w.compares(a, w.keys.Alive(id))
		if j.Verdict == store.Unhealthy {
			w.compares(a, w.keys.Report(id))
		}
	}
	// a disturbance since then is met by what the action compares, and by the fence
	if w.now.Before(s.GraceEnd) && j.Verdict == store.Lost {
		w.t.Fatalf("%s is judged lost in the time of grace", id)
	}
	filled, kept := map[int]bool{}, false
	for _, v := range w.instances() {
		r := v.Record
		if r.Group != rec.Group {
			continue
		}
		if r.Phase.Fills() && p.Judgments.Of(r.ID).Verdict != store.Dead {
			filled[r.Slot] = true
		}
		if r.ID != id && r.Slot == rec.Slot && w.appears(r.ID) {
			kept = true
		}
	}
	ordered := spec.Deleting || spec.Stopped || rec.Condemned != nil || rec.Doomed != nil && rec.Doomed.Rule == "SPOT-2"
	// removed before its replacement is there: the budget allows it
	first := w.leaving(s, spec, rec) && spec.MaxUnavailable(false) > 0
	if w.works(id) && rec.Managed && !ordered && !first && len(filled) <= spec.Size && !kept {
		w.t.Fatalf("%s works, is wanted, and is removed: %s %s, because %s (judged %s: %s)", id, a.Rule, a.What(), a.Why,
			j.Verdict, j.Why())
	}
	_, evacuated := s.Shard.Record.Evacuated[rec.Zone]
	ordered = ordered || evacuated || rec.Doomed != nil
	if rec.Protected != "" && w.works(id) && !ordered && !kept && rec.Managed {
		w.t.Fatalf("%s is protected, and goes: %s %s", id, a.Rule, a.What())
	}
}

// drains: an instance that served and has a hook drains before it goes, unless it is dead or its
// end has come (DRAIN-1).
func (w *world) drains(p *Plan, a *Action, old, next store.Instance) {
	served := old.Phase == store.Running || old.Phase == store.Checking
	if len(old.Spec.Drain.Hook) == 0 || old.Spec.Drain.Timeout == 0 || !served || next.Phase == store.Draining {
		return
	}
	if p.Judgments.Of(old.ID).Verdict != store.Dead && (old.Doomed == nil || old.Doomed.Deadline == nil) {
		w.t.Fatalf("%s goes without draining: %s %s", old.ID, a.Rule, a.What())
	}
}

// restartIsSound: no working instance is restarted, unless by order or for a change.
func (w *world) restartIsSound(s *Snapshot, p *Plan, a *Action, old store.Instance) {
	w.actsOnAll(s, a)
	w.compares(a, w.keys.Alive(old.ID))
	if w.works(old.ID) && a.Rule != "REC-16" && a.Rule != "ROLL-2" {
		w.t.Fatalf("%s works and is restarted: %s %s, because %s (judged %s)", old.ID, a.Rule, a.What(), a.Why,
			p.Judgments.Of(old.ID).Verdict)
	}
}

// works is the truth about an instance, which no record shows: it runs, its agent can report, and
// its checks pass.
func (w *world) works(id string) bool {
	m, a := w.machines[id], w.agents[id]
	return m != nil && !m.down && a != nil && a.registered && a.silentFrom.IsZero() && a.healthy &&
		w.instance(id).Record.Phase == store.Running
}

// appears is what the records say: running, an open stream, a good report.
func (w *world) appears(id string) bool {
	alive, report := read[store.Alive](w, w.keys.Alive(id)), read[store.Report](w, w.keys.Report(id))
	return w.instance(id).Record.Phase == store.Running && alive.Record.State == store.StreamOpen &&
		report.Record.Healthy
}

// actsOnAll: what makes or destroys compares the spec and the shard, and both allow it.
func (w *world) actsOnAll(s *Snapshot, a *Action) {
	if a.Group != "" {
		w.compares(a, w.keys.Group(a.Group))
	}
	w.compares(a, w.keys.Shard())
	if h := read[store.Shard](w, w.keys.Shard()).Record.Hold; h != nil {
		w.t.Fatalf("%s while the shard is on hold", a.What())
	}
	// one that is not in force pauses nothing (SAFE-10)
	if g := read[store.Group](w, w.keys.Group(a.Group)).Record; g.Paused && g.Validate() == nil {
		w.t.Fatalf("%s while the group is paused", a.What())
	}
	if s.stale() {
		w.t.Fatalf("%s on a stale cache", a.What())
	}
}

func (w *world) compares(a *Action, key string) {
	for _, c := range a.Conditions {
		if c.Key == key {
			return
		}
	}
	w.t.Fatalf("%s %s (%s) rests on %s and does not compare it", a.Instance, a.What(), a.Rule, key)
}

// converged returns what is missing for the group to be as wanted; "" if nothing is.
func (w *world) converged() string {
	onDemand, listed := 0, map[string]bool{}
	for _, v := range w.instances() {
		if !v.Record.Managed && v.Record.Phase != store.Deleting {
			onDemand++
			listed[v.Record.ID] = true
		}
	}
	if !w.spec().Present() {
		if n := len(w.instances()); n > onDemand {
			return "a deleted group has instances"
		}
		return ""
	}
	size := w.spec().Record.Size
	spec := w.spec().Record
	up, slots := 0, map[int]bool{}
	for _, v := range w.instances() {
		if listed[v.Record.ID] {
			continue
		}
		if v.Record.Template != spec.InstanceSpec().TemplateHash() || v.Record.Relaunch != spec.Relaunch.Number {
			return v.Record.ID + " is outdated"
		}
		if !w.works(v.Record.ID) {
			return v.Record.ID + " does not work: " + string(v.Record.Phase)
		}
		up++
		slots[v.Record.Slot] = true
	}
	switch {
	case up != size || len(slots) != size:
		return "the number of instances is wrong"
	}
	for id := range w.machines {
		if !w.instance(id).Present() {
			return "machine " + id + " is left over"
		}
	}
	for _, name := range w.names(store.KindSlots) {
		if n := read[store.Slot](w, w.keys.Of(store.KindSlots)+name).Record.Number; !slots[n] {
			return "a slot is left over"
		}
	}
	for _, id := range w.names(store.KindAlive) {
		if !w.instance(id).Present() {
			return "session " + id + " is left over"
		}
	}
	if st := read[store.Status](w, w.keys.Status(w.group)).Record; st.Health != 100 {
		return "the status does not say so"
	}
	return ""
}

// patience is how long a group may take to be as wanted once nothing goes wrong any more.
const patience = 30 * time.Minute
