package plan

import (
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// witness is what the leader has seen of an instance.
type witness struct {
	phase        store.Phase
	phaseStart   time.Time
	born         time.Time
	healthySince time.Time
	healthyBoot  string
	stream       store.StreamState
	streamSince  time.Time
	hasAlive     bool
	aliveGone    time.Time
	lastState    store.StreamState
	sighting     Sighting
	calls        Calls
}

// owner is a record with timers.
type owner struct{ kind, name string }

// running is a record's timer, and when it ends on the leader's clock.
type running struct {
	timer store.Timer
	at    time.Time
}

// snapshot is what the leader plans on. Records are shared with other snapshots: see
// world.isUnchanged.
func (w *world) snapshot() Snapshot {
	w.observe(false)
	s := Snapshot{
		Keys: w.keys, Revision: w.rev, Seed: w.seed, Shard: read[store.Shard](w, w.keys.Shard()), Stale: w.stale,
		GraceEnd: w.graceEnd, GraceWhy: w.graceWhy, SessionTTL: sessionTTL,
		Zones: map[string][]string{provider: slices.Clone(w.zones)},
		Full:  map[Market]map[string]time.Time{}, Recorded: len(w.names(store.KindInstances)),
	}
	for p, zones := range w.full {
		s.Full[Market{Provider: p}] = maps.Clone(zones)
	}
	for _, id := range sortedIDs(w.extras) {
		s.Extras = append(s.Extras, w.extras[id])
	}
	for _, name := range w.groups() {
		s.Groups = append(s.Groups, w.groupOf(name))
	}
	w.requests(&s)
	return s
}

// groups lists the groups of which there is anything, in order.
func (w *world) groups() []string {
	all := map[string]bool{w.group: true}
	for _, kind := range []string{store.KindGroups, store.KindStatic, store.KindStatus} {
		for _, name := range w.names(kind) {
			all[name] = true
		}
	}
	for _, v := range w.instances() {
		all[v.Record.Group] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func (w *world) groupOf(name string) Group {
	g := Group{
		Name: name, Status: read[store.Status](w, w.keys.Status(name)), SlotDue: map[int]Due{},
		Due: w.dueOf(store.KindStatus, name),
	}
	g.Spec = w.wanted(name)
	for _, slot := range w.names(store.KindSlots) {
		if of, n, ok := store.SplitSlot(slot); ok && of == name {
			g.Slots = append(g.Slots, read[store.Slot](w, w.keys.Of(store.KindSlots)+slot))
			if due := w.dueOf(store.KindSlots, slot); due != nil {
				g.SlotDue[n] = due
			}
		}
	}
	sort.Slice(g.Slots, func(i, j int) bool { return g.Slots[i].Record.Number < g.Slots[j].Record.Number })
	for _, id := range w.names(store.KindInstances) {
		v := read[store.Instance](w, w.keys.Instance(id))
		if v.Record.Group != name {
			continue
		}
		in := Instance{
			Versioned: v, Alive: read[store.Alive](w, w.keys.Alive(id)),
			Report: read[store.Report](w, w.keys.Report(id)),
			Joined: read[store.Joined](w, w.keys.Joined(id)).Present(),
		}
		k := w.witness[id]
		in.PhaseStart, in.Born, in.HealthySince, in.StreamSince = k.phaseStart, k.born, k.healthySince, k.streamSince
		in.AliveGone, in.LastState, in.Sighting, in.Calls = k.aliveGone, k.lastState, k.sighting, k.calls
		in.Due = w.dueOf(store.KindInstances, id)
		g.Instances = append(g.Instances, in)
	}
	return g
}

// wanted is what is wanted of a group.
func (w *world) wanted(name string) Spec {
	s := Spec{Key: w.keys.Group(name), Static: w.keys.Static(name)}
	dynamic, static := w.kvs[s.Key], w.kvs[s.Static]
	if dynamic.Modified == 0 && static.Modified == 0 {
		return s
	}
	s.Modified, s.StaticModified = dynamic.Modified, static.Modified
	if known := w.specs[name]; known.Modified == s.Modified && known.StaticModified == s.StaticModified {
		return known
	}
	spec, err := store.ReadInForce(static.Value, dynamic.Value)
	s.Group = spec
	if err != nil {
		s.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
	} else {
		s.Template = spec.InstanceSpec().TemplateHash()
	}
	w.specs[name] = s
	return s
}

// requests puts the orders where they belong: see coordinator/evidence.
func (w *world) requests(s *Snapshot) {
	for _, id := range w.names(store.KindRequests) {
		r := read[store.Request](w, w.keys.Request(id))
		of := r.Record.Group
		x, extra := w.extras[r.Record.Instance]
		switch {
		case r.Record.Instance == "" && of == "":
			s.Orders = append(s.Orders, r)
			continue
		case r.Record.Instance == "":
		case w.instance(r.Record.Instance).Present():
			of = w.instance(r.Record.Instance).Record.Group
		case extra && r.Record.Kind == store.RequestAdopt:
			of = x.Group
		default:
			of = ""
		}
		i := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Name == of })
		if i < 0 {
			s.Lost = append(s.Lost, r)
			continue
		}
		s.Groups[i].Requests = append(s.Groups[i].Requests, r)
		if extra && r.Record.Kind == store.RequestAdopt {
			s.Groups[i].Extras = append(s.Groups[i].Extras, x)
		}
	}
}

// observe takes up what the records show, as coordinator/evidence does.
func (w *world) observe(first bool) {
	seen := map[string]bool{}
	timed := map[owner]bool{}
	for _, v := range w.instances() {
		seen[v.Record.ID] = true
		w.see(&v.Record, first)
		w.seeTimers(timed, owner{store.KindInstances, v.Record.ID}, v.Record.Timers(), first)
	}
	maps.DeleteFunc(w.witness, func(id string, _ *witness) bool { return !seen[id] })
	for _, name := range w.names(store.KindSlots) {
		rec := read[store.Slot](w, w.keys.Of(store.KindSlots)+name).Record
		w.seeTimers(timed, owner{store.KindSlots, name}, rec.Timers(), first)
	}
	for _, name := range w.names(store.KindStatus) {
		rec := read[store.Status](w, w.keys.Status(name)).Record
		w.seeTimers(timed, owner{store.KindStatus, name}, rec.Timers(), first)
	}
	maps.DeleteFunc(w.timers, func(o owner, _ map[string]running) bool { return !timed[o] })
}

func (w *world) see(rec *store.Instance, first bool) {
	k := w.witness[rec.ID]
	if k == nil {
		k = &witness{phase: rec.Phase, phaseStart: w.now}
		if first {
			k.phaseStart = w.now.Add(-max(0, w.now.Sub(rec.Since)-w.away))
		}
		k.born = w.now.Add(-max(0, w.now.Sub(rec.Created)))
		if rec.Called {
			k.calls.AbsentFrom = w.now.Add(callTimeout + consistency)
		}
		w.witness[rec.ID] = k
	}
	if k.phase != rec.Phase {
		k.phase, k.phaseStart = rec.Phase, w.now
	}
	alive, report := read[store.Alive](w, w.keys.Alive(rec.ID)), read[store.Report](w, w.keys.Report(rec.ID)).Record
	switch {
	case alive.Present():
		k.aliveGone, k.lastState = time.Time{}, alive.Record.State
	case k.hasAlive || k.aliveGone.IsZero():
		k.aliveGone = w.now
	}
	k.hasAlive = alive.Present()
	switch {
	case !k.hasAlive:
		k.stream, k.streamSince = "", time.Time{}
	case k.stream == alive.Record.State:
	case first:
		k.stream, k.streamSince = alive.Record.State, alive.Record.Since
	default:
		k.stream, k.streamSince = alive.Record.State, w.now
	}
	switch {
	case !k.hasAlive || !report.Healthy || report.BootID != alive.Record.BootID:
		k.healthySince = time.Time{}
	case !k.healthySince.IsZero() && k.healthyBoot == report.BootID:
	case first && k.phase == store.Running:
		k.healthySince = k.phaseStart
	default:
		k.healthySince = w.now
	}
	k.healthyBoot = report.BootID
}

// seeTimers takes the timers of a record up. One that runs already runs on.
func (w *world) seeTimers(timed map[owner]bool, o owner, timers []store.NamedTimer, first bool) {
	if len(timers) == 0 {
		return
	}
	timed[o] = true
	before, after := w.timers[o], map[string]running{}
	for _, t := range timers {
		r, known := before[t.Name]
		if !known || r.timer != t.Timer {
			left := t.Timer.For.D()
			if first {
				passed := w.now.Sub(t.Timer.Start)
				if t.Name == store.TimerProgress {
					passed -= w.away
				}
				left = min(left, max(0, left-passed))
			}
			r = running{timer: t.Timer, at: w.now.Add(left)}
		}
		after[t.Name] = r
	}
	w.timers[o] = after
}

func (w *world) dueOf(kind, name string) Due {
	timers := w.timers[owner{kind, name}]
	if len(timers) == 0 {
		return nil
	}
	due := Due{}
	for name, r := range timers {
		due[name] = r.at
	}
	return due
}

// grace begins a time in which nothing is judged lost.
func (w *world) grace(why string) {
	if len(w.witness) == 0 {
		return
	}
	var longest time.Duration
	for _, v := range w.instances() {
		longest = max(longest, v.Record.Spec.Report.LeaseTTL.D())
	}
	w.graceEnd, w.graceWhy = w.now.Add(longest+reconnectMax+time.Second), why
}

// leaderChange puts a new leader in place, who has to go by the records. What the old one asked of
// the provider may still happen; its answers are lost, and calls that had not begun are fenced.
func (w *world) leaderChange() {
	w.calls = slices.DeleteFunc(w.calls, func(c *call) bool { return !c.begun })
	w.away = w.now.Sub(w.served)
	w.forget()
	w.observe(true)
	w.grace("a new leader began")
}
