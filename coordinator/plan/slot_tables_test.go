package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// restarting is a member that is being stopped for a restart; called is the token of the restart
// that the provider has carried out.
func restarting(v store.Verdict, level, called string) func(*member) {
	return func(m *member) {
		m.judgment.Verdict, m.Record.Phase, m.phase, m.Calls.Restarted = v, store.Stopping, store.Stopping, called
		m.Record.Restart = &store.Restart{Level: level, Token: "r"}
	}
}

// A failure is counted once against its slot, with what it was. From flap.failures within the
// window on each makes the slot wait, for longer each time, until it is given up.
//
// proves FLAP-1, FLAP-2, FLAP-3, SAFE-2
func TestWhatAFailureDoesToItsSlot(t *testing.T) {
	now := time.Unix(10_000, 0)
	minute := store.Duration(time.Minute)
	recent := func(n int) (list []store.Failure) {
		for i := range n {
			list = append(list, store.Failure{At: now.Add(-time.Second), Instance: fmt.Sprint(i)})
		}
		return list
	}
	flap := store.FlapSpec{Failures: 3, Window: 5 * minute, MinDelay: minute, MaxDelay: 16 * minute}
	lostAt := now.Add(-20 * time.Second)
	for name, test := range map[string]struct {
		slot   store.Slot
		flap   func(*store.FlapSpec)
		is     func(*member)
		wait   bool
		counts bool
		delay  time.Duration // 0: none is begun
		giveUp time.Duration // 0: none is begun
		err    bool
	}{
		"the first":  {counts: true},
		"the second": {slot: store.Slot{Failures: recent(1)}, counts: true},
		"the third": {
			slot: store.Slot{Failures: recent(2)}, counts: true, wait: true,
			delay: time.Minute,
		},
		"the third, others long ago": {slot: store.Slot{Failures: []store.Failure{
			{At: now.Add(-time.Hour)},
			{At: now.Add(-time.Hour)},
		}}, counts: true},
		"one more in a slot that flaps": {
			slot: store.Slot{Flapping: 2}, counts: true, wait: true,
			delay: 4 * time.Minute,
		},
		"the third, the time is bounded": {
			slot: store.Slot{Failures: recent(2)},
			flap: func(f *store.FlapSpec) { f.GiveUpTime = 60 * minute }, counts: true, wait: true, delay: time.Minute,
			giveUp: time.Hour,
		},
		"one more, the time is bounded": {
			slot: store.Slot{Flapping: 1},
			flap: func(f *store.FlapSpec) { f.GiveUpTime = 60 * minute }, counts: true, wait: true,
			delay: 2 * time.Minute,
		},
		"the third, and that is the most": {
			slot: store.Slot{Failures: recent(2)},
			flap: func(f *store.FlapSpec) { f.GiveUpAfter = 3 }, counts: true, wait: true, delay: time.Minute,
		},
		"one more than the most": {
			slot: store.Slot{Flapping: 1},
			flap: func(f *store.FlapSpec) { f.GiveUpAfter = 3 }, counts: true, wait: true, err: true,
		},
		"more than any, and no most": {
			slot: store.Slot{Flapping: 50}, counts: true, wait: true,
			delay: 16 * time.Minute,
		},
		"counted already": {
			slot: store.Slot{Failures: recent(2)},
			is:   func(m *member) { m.Record.Counted = true },
		},
		"counted already, the slot waits": {
			slot: store.Slot{Flapping: 1, Retry: &store.Timer{Start: now, For: minute}},
			is: func(m *member) {
				m.Record.Counted = true
			}, wait: true,
		},
		"counted already, the slot is given up": {
			slot: store.Slot{Errored: "no"},
			is:   func(m *member) { m.Record.Counted = true }, wait: true,
		},
		"ordered to go": {
			slot: store.Slot{Failures: recent(2)},
			is:   func(m *member) { m.Record.Condemned = &store.Condemned{} },
		},
		"doomed": {
			slot: store.Slot{Failures: recent(2)},
			is:   func(m *member) { m.doom.rule = "SPOT-2" },
		},
		"as many as are remembered": {
			slot: store.Slot{Failures: recent(99)}, counts: true, wait: true,
			delay: time.Minute,
		},
		"one more than are remembered": {
			slot: store.Slot{Failures: recent(100)}, counts: true, wait: true,
			delay: time.Minute,
		},
		"lost": {is: func(m *member) {
			m.judgment.Verdict, m.AliveGone = store.Lost, lostAt
		}, counts: true},
		"lost, in a slot of an earlier template": {
			slot: store.Slot{Template: "before"},
			is:   func(m *member) { m.judgment.Verdict, m.AliveGone = store.Lost, lostAt }, counts: true,
		},
		"to be restarted by the provider: its template has not run yet": {
			is: restarting(store.Stuck, store.RestartMachine, ""), counts: true,
		},
		"restarted by the provider, and not back": {is: restarting(store.Stuck, store.RestartMachine, "r"), counts: true},
		"dead while it was to be restarted":       {is: restarting(store.Dead, store.RestartMachine, ""), counts: true},
		"its agent was to restart the workload":   {is: restarting(store.Stuck, store.RestartWorkload, ""), counts: true},
		"restarted, and it does not come back": {
			is: func(m *member) { m.judgment.Verdict, m.Record.Phase = store.Stuck, store.Starting }, counts: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := store.Group{Flap: flap}
			if test.flap != nil {
				test.flap(&spec.Flap)
			}
			d := draftWith(func(d *draft) {
				d.s, d.g, d.now, d.spec, d.hash = &Snapshot{}, &Group{Name: "web"}, now, &spec, "wanted"
			})
			sl := &slot{}
			sl.Record = test.slot
			if test.slot.Retry != nil {
				sl.retry = now.Add(test.slot.Retry.For.D())
			}
			m := &member{
				Instance: &Instance{}, phase: store.Running,
				judgment: Judgment{Verdict: store.Unhealthy, Cause: store.Cause{Text: "it fails"}},
			}
			m.Record.ID, m.Record.Template = "web-0-bbbbbb", "made from"
			if test.is != nil {
				test.is(m)
			}
			before := slices.Clone(test.slot.Failures)
			if wait := d.flapping.fail(sl, m); wait != test.wait {
				t.Errorf("it waits: %t", wait)
			}
			rec := &sl.Record
			if !slices.Equal(test.slot.Failures, before) {
				t.Error("the snapshot's failures were changed")
			}
			if !test.counts {
				if len(rec.Failures) != len(before) || rec.Flapping != test.slot.Flapping ||
					rec.Retry != test.slot.Retry {
					t.Errorf("it is counted: %+v", rec)
				}
				return
			}
			last := rec.Failures[len(rec.Failures)-1]
			want := store.Failure{
				At: now.UTC(), Instance: "web-0-bbbbbb", Verdict: m.judgment.Verdict, Why: "it fails",
				Template: "made from",
			}
			if m.judgment.Verdict == store.Lost {
				want.LostSince = lostAt.UTC()
			}
			if strings.Contains(name, "has not run") {
				want.Template = ""
			}
			if last != want || rec.Template != "wanted" || len(rec.Failures) != min(100, len(before)+1) ||
				len(before) > 0 && len(before) < 100 && rec.Failures[0] != before[0] {
				t.Errorf("%d failures, the last %+v, want %+v, on template %s", len(rec.Failures), last, want,
					rec.Template)
			}
			if flapping := rec.Flapping > test.slot.Flapping; flapping != test.wait {
				t.Errorf("flapping is %d", rec.Flapping)
			}
			if (rec.Errored != "") != test.err {
				t.Errorf("given up: %q", rec.Errored)
			}
			if test.delay > 0 && (rec.Retry == nil || rec.Retry.For.D() != test.delay || !rec.Retry.Start.Equal(now) ||
				!sl.retry.Equal(now.Add(test.delay))) {
				t.Errorf("it waits for %+v, until %s, want %s", rec.Retry, sl.retry, test.delay)
			}
			if test.delay == 0 && (rec.Retry != nil || !sl.retry.IsZero()) {
				t.Errorf("it waits for %+v, until %s", rec.Retry, sl.retry)
			}
			if (rec.GiveUp != nil) != (test.giveUp > 0) || rec.GiveUp != nil &&
				(rec.GiveUp.For.D() != test.giveUp || !rec.GiveUp.Start.Equal(now)) {
				t.Errorf("it is given up after %+v, want %s", rec.GiveUp, test.giveUp)
			}
			if len(d.blocked) != 0 != test.wait {
				t.Errorf("told is %+v", d.blocked)
			}
		})
	}
}

// A slot that has flapped for flap.give_up_time is given up, unless an instance in it is healthy.
// Then it waits for an operator alone.
//
// proves FLAP-3
func TestWhichSlotsAreGivenUp(t *testing.T) {
	giveUp := func(ago time.Duration) func(*world, *store.Slot) {
		return func(w *world, s *store.Slot) {
			s.Flapping, s.Retry = 3, &store.Timer{Start: w.now, For: store.Duration(time.Minute)}
			s.GiveUp = &store.Timer{Start: w.now.Add(-ago), For: store.Duration(time.Hour)}
		}
	}
	for name, test := range map[string]struct {
		slot  func(*world, *store.Slot)
		well  bool
		given bool
	}{
		"its time is over":                  {giveUp(time.Hour), false, true},
		"its time is nearly over":           {giveUp(time.Hour - 1), false, false},
		"its time is over, and one is well": {giveUp(time.Hour), true, false},
		"it has no time":                    {func(w *world, s *store.Slot) { s.Flapping = 3 }, false, false},
		"it has been given up": {func(w *world, s *store.Slot) {
			giveUp(time.Hour)(w, s)
			s.Errored = "before"
		}, false, false},
		"it flapped on a template of the past": {func(w *world, s *store.Slot) {
			giveUp(time.Hour)(w, s)
			s.Template = "before"
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size, g.Flap.GiveUpTime = 1, store.Duration(time.Hour) })
			w.place("a", 0, store.Running, func(r *store.Instance) { r.Counted = !test.well })
			w.turn("a", test.well)
			rec := store.Slot{Schema: store.Schema, Group: w.group, Template: w.instance("a").Record.Template}
			test.slot(w, &rec)
			w.put(w.keys.Slot(w.group, 0), rec)
			w.leaderChange()
			w.noGrace = true
			w.listDue()
			var got *Action
			p := Compute(w.snapshot(), w.now)
			for _, a := range p.Actions {
				if a.Rule == "FLAP-3" && a.What() == "slot given up" {
					got = &a
				}
			}
			if (got != nil) != test.given {
				t.Fatalf("given up: %+v", got)
			}
			if got == nil {
				if name == "its time is nearly over" && !p.Due[w.group].Equal(w.now.Add(1)) {
					t.Errorf("looked at again at %s", p.Due[w.group])
				}
				return
			}
			w.comparesAll(t, *got, w.keys.Slot(w.group, 0), w.keys.Group(w.group))
			after, err := store.Decode[store.Slot](store.KV{Key: got.Writes[0].Key, Value: got.Writes[0].Value})
			if err != nil || after.Record.Errored == "" || after.Record.Retry != nil || after.Record.GiveUp != nil ||
				got.Group != w.group || got.Counterfactual == "" {
				t.Errorf("%+v writes %+v, %v", got, after.Record, err)
			}
			w.commit(got.Conditions, got.Writes, 1)
			if b := w.blockedBy(); !slices.ContainsFunc(b, func(b store.Blocked) bool { return b.Rule == "FLAP-3" }) {
				t.Errorf("what waits is told as %+v", b)
			}
		})
	}
}

// What a slot has counted, and how long it waits, is in its record: another leader counts on, and
// waits for what is left.
//
// proves FLAP-6, ELECT-3
func TestASlotWaitsOnUnderAnotherLeader(t *testing.T) {
	w := newTestWorld(t)
	w.noGrace = true
	w.edit(func(g *store.Group) {
		g.Size, g.Flap.Failures = 1, 2
		g.Flap.MinDelay, g.Flap.MaxDelay = store.Duration(10*time.Minute), store.Duration(time.Hour)
	})
	w.place("a", 0, store.Running)
	w.put(w.keys.Slot(w.group, 0), store.Slot{
		Schema: store.Schema, Group: w.group, Failures: []store.Failure{{At: w.now.Add(-time.Minute), Instance: "z"}},
	})
	w.turn("a", false)
	w.begin()
	w.pass(0)
	w.step()
	sl := read[store.Slot](w, w.keys.Slot(w.group, 0)).Record
	if len(sl.Failures) != 2 || sl.Flapping != 1 || sl.Retry == nil {
		t.Fatalf("the second failure makes it %+v", sl)
	}
	for _, c := range []struct {
		pass time.Duration
		want string
	}{{4 * time.Minute, ""}, {6*time.Minute - time.Second, ""}, {time.Second, "HEAL-2 +0"}} {
		w.now = w.now.Add(c.pass)
		w.served = w.now // a leader was there all the time
		w.report("a")
		w.begin()
		if got := w.briefly(); got != c.want {
			t.Errorf("%s later: planned %q, want %q: %+v", c.pass, got, c.want, w.blockedBy())
		}
	}
}
