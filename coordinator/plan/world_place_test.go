package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// place puts an instance into a test's world in the given phase, with a machine and an agent where
// the phase has them.
func (w *world) place(id string, slot int, p store.Phase, change ...func(*store.Instance)) {
	spec := w.spec().Record
	rec := store.Instance{
		Schema: store.Schema, ID: id, Group: w.group, Slot: slot, Phase: p, Managed: slot >= 0, Since: w.now,
		Created: w.now,
		Spec:    spec.InstanceSpec(), Template: spec.InstanceSpec().TemplateHash(), Called: p != store.Pending,
		Zone: "a",
	}
	rec.Config = rec.Spec.ConfigHash()
	for _, c := range change {
		c(&rec)
	}
	w.put(w.keys.Instance(id), rec)
	if slot >= 0 && !read[store.Slot](w, w.keys.Slot(w.group, slot)).Present() {
		w.put(w.keys.Slot(w.group, slot), store.Slot{Schema: store.Schema, Group: w.group, Number: slot})
	}
	if p != store.Pending && p != store.Creating {
		w.machines[id] = &machine{id: id, zone: rec.Zone, made: w.now.Add(-time.Hour)}
		w.agents[id] = &agent{healthy: true, registered: p.Registered(), config: rec.Config}
	}
	if p.Registered() {
		w.report(id)
	}
}

// waits has a slot flap and wait for an hour.
func (w *world) waits(slot int) {
	w.put(w.keys.Slot(w.group, slot), store.Slot{
		Schema: store.Schema, Group: w.group, Number: slot, Flapping: 1,
		Retry: &store.Timer{Start: w.now, For: store.Duration(time.Hour)},
	})
}

// evacuate has an operator evacuate zones.
func (w *world) evacuate(zones ...string) {
	w.editShard(func(s *store.Shard) {
		s.Evacuated = map[string]store.Evacuation{}
		for _, z := range zones {
			s.Evacuated[z] = store.Evacuation{By: "ada", At: w.now}
		}
	})
}

func replaces(id string) func(*store.Instance) {
	return func(r *store.Instance) { r.Replaces = id }
}

func condemned(now bool) func(*store.Instance) {
	return func(r *store.Instance) { r.Condemned = &store.Condemned{By: "ada", Why: "ordered by ada", Now: now} }
}
func protected(r *store.Instance) { r.Protected = "removal" }
func outdated(r *store.Instance)  { r.Template = "t0" }
func zone(z string) func(*store.Instance) {
	return func(r *store.Instance) { r.Zone = z }
}

// stuck makes an instance fail by time: not registered, or not healthy, for an hour.
func (w *world) stuck(id string) {
	w.turn(id, false)
	w.see(id, func(in *Instance) { in.PhaseStart = w.now.Add(-time.Hour) })
}

// briefly is a plan in short: what happens to each instance, where a new one is made (+slot), and
// what is blocked (!rule).
func (w *world) briefly() string {
	s := w.snapshot()
	p := Compute(s, w.now)
	var out []string
	for _, a := range p.Actions {
		if a.To == store.Deleting && a.Instance != "" && a.From != a.To {
			out = append(out, fmt.Sprintf("%s -%s", a.Rule, a.Instance))
		}
		if a.Effect.Kind == store.EffectUpdatedLive {
			out = append(out, fmt.Sprintf("%s ~%s", a.Rule, a.Instance))
		}
		for range w.made(&a) {
			out = append(out, fmt.Sprintf("%s +%d", a.Rule, *a.Slot))
		}
	}
	return strings.Join(out, ", ")
}
