package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A notice dooms an instance if its agent reports it now, from the machine's present boot; it does
// so once, with the time that it leaves, and also overrides an evacuation.
//
// proves SPOT-2, DRAIN-3
func TestWhatANoticeDooms(t *testing.T) {
	spot := func(in time.Duration) func(*world) { return func(w *world) { w.notice("a", "", in) } }
	evacuating := func(w *world) { w.notice("a", store.NoticeEvacuating, 0) }
	for name, c := range map[string]struct {
		phase store.Phase
		do    func(*world)
		rule  string
		in    time.Duration // its deadline; 0: there is none
	}{
		"a notice with a time":     {store.Running, spot(time.Minute), "SPOT-2", time.Minute},
		"a notice without a time":  {store.Running, spot(0), "SPOT-2", 0},
		"a notice of a moment":     {store.Running, spot(1), "SPOT-2", 1},
		"while it gets healthy":    {store.Checking, spot(time.Minute), "SPOT-2", time.Minute},
		"before it has registered": {store.Booting, spot(time.Minute), "SPOT-2", time.Minute},
		"while it is deleted": {store.Running, func(w *world) {
			spot(time.Minute)(w)
			w.change("a", func(r *store.Instance) { r.Phase = store.Deleting })
		}, "", 0},
		"of an earlier boot": {store.Running, func(w *world) {
			spot(time.Minute)(w)
			r := read[store.Report](w, w.keys.Report("a"))
			r.Record.BootID = "earlier"
			w.put(r.Key, r.Record)
		}, "", 0},
		"of an agent that is gone": {store.Running, func(w *world) {
			spot(time.Minute)(w)
			w.drop(w.keys.Alive("a"))
		}, "", 0},
		"of one that is doomed by a notice": {store.Running, func(w *world) {
			spot(time.Minute)(w)
			w.change("a", spotted)
		}, "", 0},
		"of one that is evacuated": {store.Running, func(w *world) {
			spot(time.Minute)(w)
			w.change("a", func(r *store.Instance) { r.Doomed = &store.Doom{Rule: "DRAIN-3"} })
		}, "SPOT-2", time.Minute},
		"an evacuation": {store.Running, evacuating, "DRAIN-3", 0},
		"an evacuation of one that is doomed": {store.Running, func(w *world) {
			evacuating(w)
			w.change("a", func(r *store.Instance) { r.Doomed = &store.Doom{Rule: "DRAIN-3"} })
		}, "", 0},
		"no notice": {store.Running, func(*world) {}, "", 0},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 1 })
		w.place("a", 0, c.phase)
		w.agents["a"].registered = true
		c.do(w)
		s := w.snapshot()
		d := newDraft(&s, &s.Groups[0], w.now)
		d.judgeAll()
		d.progress.recordNotice(d.find("a"))
		if len(d.actions) != map[bool]int{true: 1}[c.rule != ""] {
			t.Errorf("%s: %d actions", name, len(d.actions))
			continue
		}
		if c.rule == "" {
			continue
		}
		v, err := store.Decode[store.Instance](store.KV{Value: d.actions[0].Writes[0].Value})
		if err != nil {
			t.Fatal(err)
		}
		got := v.Record.Doomed
		if got == nil || got.Rule != c.rule || !got.At.Equal(w.now) || got.Why == "" || got.Cause.Kind == "" ||
			(got.Deadline != nil) != (c.in > 0) || got.Deadline != nil && got.Deadline.For.D() != c.in {
			t.Errorf("%s: doomed is %+v, want %s in %s", name, got, c.rule, c.in)
			continue
		}
		w.comparesAll(t, d.actions[0], w.keys.Instance("a"), w.keys.Report("a"))
		if d.progress.recordNotice(d.find("a")); len(d.actions) != 1 {
			t.Errorf("%s: it is doomed twice in one plan", name)
		}
	}
}

// A doomed instance gets a replacement at once, unless another fills its place or the group has too
// many; it drains in any case. What was never there is not replaced for a notice.
//
// proves SPOT-2
func TestWhatReplacesADoomedInstance(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*world)
		want string
	}{
		"alone": {func(*world) {}, "SPOT-2 +0"},
		"no room for another": {func(w *world) {
			w.edit(func(g *store.Group) { g.Budget.MaxExpansion, g.Budget.MaxUnavailable = 0, new(store.Amount(0)) })
		}, "SPOT-2 +0"},
		"another is there": {func(w *world) { w.place("b", 0, store.Running) }, ""},
		"another of its slot is doomed as well": {func(w *world) {
			w.place("b", 0, store.Running, spotted)
		}, "SPOT-2 +0"},
		"of a group that is too large": {func(w *world) {
			w.place("b", 1, store.Running)
			w.place("c", 2, store.Running)
		}, ""},
		"being created": {func(w *world) {
			w.change("a", func(r *store.Instance) { r.Phase = store.Creating })
		}, ""},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 1 })
		w.place("a", 0, store.Running, spotted)
		w.edit(func(g *store.Group) { g.Budget.MaxExpansion = 1 })
		c.do(w)
		d := w.drafted()
		d.healing.replaceNoticed()
		got, drains := "", false
		for _, a := range d.actions {
			drains = drains || a.Instance == "a" && a.To == store.Draining
			for range w.made(&a) {
				got += a.Rule + " +0"
			}
		}
		if got != c.want || drains != (name != "being created") {
			t.Errorf("%s: planned %q, want %q; it drains: %t", name, got, c.want, drains)
		}
	}
}

// A replacement that is doomed as soon as it is there waits until it is flap.min_delay old: what
// dooms it may doom all. The wait is for a replacement alone, and for a notice that was there
// before it.
//
// proves SPOT-2
func TestWhoIsDoomedAsMade(t *testing.T) {
	const delay, old = time.Minute, 20 * time.Second
	for name, c := range map[string]struct {
		set  func(*member)
		want time.Duration
	}{
		"a replacement": {nil, delay - old},
		"a replacement that is old": {func(m *member) {
			m.Record.Created = epoch.Add(-delay)
		}, 0},
		"one that replaces none":       {func(m *member) { m.Record.Replaces = "" }, 0},
		"one that an operator ordered": {func(m *member) { condemned(false)(&m.Record) }, 0},
		"one that is evacuated":        {func(m *member) { m.Record.Doomed.Rule = "DRAIN-3" }, 0},
		"one that is not doomed":       {func(m *member) { m.Record.Doomed = nil }, 0},
		"one of the future": {func(m *member) {
			m.Record.Created = epoch.Add(1)
		}, 0},
		"one of this moment":      {func(m *member) { m.Record.Created = epoch }, delay},
		"no notice in the report": {func(m *member) { m.Report.Record.Notice = nil }, 0},
		"a start that is not known": {func(m *member) {
			m.Report.Record.Started = time.Time{}
			m.Report.Record.Notice.At = time.Time{}.Add(time.Second)
		}, 0},
		"a notice just after the start": {func(m *member) {
			m.Report.Record.Notice.At = m.Report.Record.Started.Add(asMade - 1)
		}, delay - old},
		"a notice later": {func(m *member) {
			m.Report.Record.Notice.At = m.Report.Record.Started.Add(asMade)
		}, 0},
	} {
		m := &member{Instance: &Instance{}}
		m.Record.Replaces, m.Record.Created = "a", epoch.Add(-old)
		spotted(&m.Record)
		m.Report.Record.Started = epoch.Add(-old)
		m.Report.Record.Notice = &store.Notice{At: epoch.Add(-old)}
		if c.set != nil {
			c.set(m)
		}
		d := draftWith(func(d *draft) { d.now, d.spec = epoch, &store.Group{} })
		d.spec.Flap.MinDelay = store.Duration(delay)
		if got := d.healing.doomedAsMade(m); got != c.want {
			t.Errorf("%s: it waits for %s, want %s", name, got, c.want)
		}
	}
}
