package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// decided is what the next plan does with an instance: the action, and the record that it writes.
// Both are zero if it does nothing.
func (w *world) decided(id string) (Action, store.Instance) {
	p := Compute(w.snapshot(), w.now)
	for _, a := range p.Actions {
		for _, op := range a.Writes {
			if a.Instance == id && op.Key == w.keys.Instance(id) && !op.Delete {
				v, err := store.Decode[store.Instance](store.KV{Key: op.Key, Value: op.Value})
				if err != nil {
					w.t.Fatalf("%v", err)
				}
				return a, v.Record
			}
		}
	}
	return Action{}, store.Instance{}
}

// change edits an instance's record.
func (w *world) change(id string, edit func(*store.Instance)) {
	v, err := store.Decode[store.Instance](w.kvs[w.keys.Instance(id)]) // a copy of its own
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	edit(&v.Record)
	w.put(v.Key, v.Record)
}

// comparesAll checks that an action compares these keys at the revisions that they have now.
func (w *world) comparesAll(t *testing.T, a Action, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if !slices.Contains(a.Conditions, store.At(key, w.kvs[key].Modified)) {
			t.Errorf("%s of %s does not compare %s", a.What(), a.Instance, key)
		}
	}
}

// An instance drains since a minute ago, for five minutes. What becomes of it depends on why it
// drains, on what its agent says, and on whether its slot wants it back: one that was only lost
// comes back, unless its slot is better off without it; then it drains like any other, from now on.
//
// proves DET-15, DRAIN-1, SPOT-2, DET-4
func TestWhatBecomesOfAnInstanceThatDrains(t *testing.T) {
	none := ""
	alive := func(change func(*store.Alive)) func(*world) {
		return func(w *world) {
			v := read[store.Alive](w, w.keys.Alive("a"))
			change(&v.Record)
			w.put(v.Key, v.Record)
		}
	}
	change := func(edit func(*store.Instance)) func(*world) { return func(w *world) { w.change("a", edit) } }
	spec := func(edit func(*store.Group)) func(*world) { return func(w *world) { w.edit(edit) } }
	failed := func(n int, ago time.Duration) func(*world) {
		return func(w *world) {
			rec := store.Slot{Schema: store.Schema, Group: w.group}
			for range n {
				rec.Failures = append(rec.Failures,
					store.Failure{At: w.now.Add(-ago), Instance: "a", Template: w.instance("a").Record.Template})
			}
			w.put(w.keys.Slot(w.group, 0), rec)
		}
	}
	drained := func(w *world) {
		r := read[store.Report](w, w.keys.Report("a")).Record
		r.Drained = "token"
		w.put(w.keys.Report("a"), r)
	}
	noHook := func(w *world) { w.change("a", func(r *store.Instance) { r.Spec.Drain.Hook = nil }) }
	all := func(do ...func(*world)) func(*world) {
		return func(w *world) {
			for _, f := range do {
				f(w)
			}
		}
	}
	nothing := func(*world) {}
	for name, test := range map[string]struct {
		lost bool
		do   func(w *world)
		rule string
		to   store.Phase
	}{
		// An instance that was lost, and whose agent is back.
		"lost and back":       {true, nothing, "DET-15", store.Running},
		"back, and unhealthy": {true, func(w *world) { w.turn("a", false) }, none, ""},
		"back, and has reported nothing": {
			true, func(w *world) { w.drop(w.keys.Report("a")) }, "DET-15",
			store.Checking,
		},
		"back, with another boot": {
			true, alive(func(a *store.Alive) { a.BootID = "another" }),
			"DET-15", store.Checking,
		},
		"back, and silent again": {
			true, alive(func(a *store.Alive) { a.State = store.StreamOverdue }),
			none, "",
		},
		"back, and on its way to another replica": {
			true, alive(func(a *store.Alive) { a.State = store.StreamMoved }),
			none, "",
		},
		"not back": {
			true,
			func(w *world) { w.silence("a", true); w.drop(w.keys.Alive("a")) }, none, "",
		},
		"back, its slot has failed often":          {true, failed(3, time.Minute), "DRAIN-1", store.Draining},
		"back, its slot has failed often long ago": {true, failed(3, time.Hour), "DET-15", store.Running},
		"back, its slot has failed less often":     {true, failed(2, time.Minute), "DET-15", store.Running},
		"back, and ordered to go":                  {true, change(condemned(false)), "DRAIN-1", store.Draining},
		"back, and a notice dooms it": {
			true,
			change(func(r *store.Instance) { r.Doomed = &store.Doom{Rule: "DRAIN-3", Why: "evacuated"} }), "DRAIN-1",
			store.Draining,
		},
		"back, on an unwanted template": {true, change(outdated), "DRAIN-1", store.Draining},
		"back, and too old": {
			true,
			all(change(old(2*time.Hour)), spec(func(g *store.Group) {
				g.Expiry.ForcedAge = new(store.Duration(time.Hour))
			})), "DRAIN-1", store.Draining,
		},
		"back, and nothing is wanted any more": {
			true, func(w *world) { w.drop(w.keys.Group(w.group)) },
			"DRAIN-1", store.Draining,
		},
		"back, and its provider calls it down": {
			true, func(w *world) { w.machines["a"].down = true }, none,
			"",
		},
		"back, the group is being deleted": {
			true, spec(func(g *store.Group) { g.Deleting = true }),
			"DRAIN-1", store.Draining,
		},
		"back, the group is stopped": {
			true, spec(func(g *store.Group) { g.Stopped = true }),
			"DRAIN-1", store.Draining,
		},
		"back, on demand": {
			true,
			change(func(r *store.Instance) { r.Managed, r.Slot = false, -1 }), "DRAIN-1", store.Draining,
		},
		"back, the group is paused": {
			true, spec(func(g *store.Group) { g.Paused = true }), none,
			"",
		},
		"back, and said to have drained": {
			true,
			change(func(r *store.Instance) { r.Drain.Done = "ada" }), "DET-15", store.Running,
		},
		"ordered to go, and said to have drained": {
			true,
			all(change(condemned(false)), change(func(r *store.Instance) { r.Drain.Done = "ada" })), "DRAIN-1",
			store.Draining,
		},
		"lost, not back, and said to have drained": {
			true,
			all(alive(func(a *store.Alive) { a.State = store.StreamLost }),
				change(func(r *store.Instance) { r.Drain.Done = "ada" })), "DRAIN-1", store.Deleting,
		},
		"lost, not back, ordered to go, time left": {
			true,
			all(alive(func(a *store.Alive) { a.State = store.StreamLost }), change(condemned(false))), none, "",
		},
		"lost, moving, ordered to go, time left": {
			true,
			all(alive(func(a *store.Alive) { a.State = store.StreamMoved }), change(condemned(false))), none, "",
		},
		"lost, unhealthy, ordered to go, time left": {
			true,
			all(func(w *world) { w.turn("a", false) }, change(condemned(false))), none, "",
		},
		"it drains for another reason": {false, nothing, none, ""},
		"its time is over": {
			false,
			change(func(r *store.Instance) { r.Drain.Timer.For = store.Duration(time.Minute) }), "DRAIN-1",
			store.Deleting,
		},
		"its time is nearly over": {
			false,
			change(func(r *store.Instance) { r.Drain.Timer.For = store.Duration(time.Minute + time.Nanosecond) }), none,
			"",
		},
		"its hook has ended": {false, drained, "DRAIN-1", store.Deleting},
		"its hook has ended, its agent is gone": {
			false,
			all(drained, func(w *world) { w.silence("a", true); w.drop(w.keys.Alive("a")) }), none,
			"",
		},
		"a hook of an earlier drain has ended": {
			false,
			all(drained, change(func(r *store.Instance) { r.Drain.Token = "another" })), none, "",
		},
		"no hook ran, and no token was given": {
			false, change(func(r *store.Instance) { r.Drain.Token = "" }),
			none, "",
		},
		"it has no hook, and its agent says it drained": {false, all(drained, noHook), none, ""},
		"it is said to have drained": {
			false,
			change(func(r *store.Instance) { r.Drain.Done = "ada" }), "DRAIN-1", store.Deleting,
		},
		"its machine is down": {
			false, func(w *world) { w.kill("a"); w.pass(time.Second) },
			"DET-4", store.Deleting,
		},
		"no hook, and another one works in its place": {
			false,
			all(noHook, func(w *world) { w.place("b", 0, store.Running, replaces("a")) }), "SPOT-2", store.Deleting,
		},
		"no hook, and another one comes up": {
			false,
			all(noHook, func(w *world) { w.place("b", 0, store.Checking, replaces("a")); w.turn("b", false) }), none,
			"",
		},
		"a hook, and another one works in its place": {
			false,
			func(w *world) { w.place("b", 0, store.Running, replaces("a")) }, none, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) {
				g.Size, g.Drain.Hook, g.Drain.Timeout = 1, []string{"./drain"}, store.Duration(5*time.Minute)
			})
			w.place("a", 0, store.Draining, func(r *store.Instance) {
				r.Drain = &store.Drain{
					Token: "token", Rule: "HEAL-2", Why: "it was lost", Lost: test.lost,
					Timer: store.Timer{Start: w.now.Add(-time.Minute), For: store.Duration(5 * time.Minute)},
				}
			})
			w.agents["a"].refuses = true // the test speaks for it
			w.hookFor = 0
			test.do(w)
			began := w.instance("a").Record.Drain.Timer
			w.leaderChange() // which takes up what remains
			w.noGrace = true
			gone := w.now
			w.see("a", func(in *Instance) {
				if !in.AliveGone.IsZero() {
					in.AliveGone = gone
				}
			})
			w.listDue()
			a, next := w.decided("a")
			if a.Rule != test.rule || next.Phase != test.to {
				p := Compute(w.snapshot(), w.now)
				t.Fatalf("%s %q takes it to %q, want %s and %q; blocked: %+v", a.Rule, a.What(), next.Phase, test.rule,
					test.to, p.Judgments.Of("a"))
			}
			switch {
			case test.rule == "DET-15":
				if next.Drain != nil {
					t.Errorf("it is back, and drains still: %+v", next.Drain)
				}
				w.comparesAll(t, a, w.keys.Instance("a"), w.keys.Alive("a"))
				if w.kvs[w.keys.Report("a")].Modified != 0 {
					w.comparesAll(t, a, w.keys.Report("a"))
				}
			case test.to == store.Draining:
				if d := next.Drain; d == nil || d.Lost || !d.Timer.Start.Equal(w.now) || d.Timer.For != began.For ||
					d.Token != "token" {
					t.Errorf("it drains now: %+v", d)
				}
				w.comparesAll(t, a, w.keys.Instance("a"), w.keys.Alive("a"))
			case test.to == store.Deleting:
				w.comparesAll(t, a, w.keys.Instance("a"), w.keys.Group(w.group), w.keys.Shard())
				if name == "its hook has ended" {
					w.comparesAll(t, a, w.keys.Report("a"))
				}
				if test.rule == "SPOT-2" {
					w.comparesAll(t, a, w.keys.Instance("b"), w.keys.Alive("b"), w.keys.Report("b"))
				}
				if !strings.Contains(a.Why, "it was lost") {
					t.Errorf("why it left in the first place is not told: %q", a.Why)
				}
			case w.spec().Record.Paused || w.instance("a").Record.Drain.Done != "":
			default:
				if p := Compute(w.snapshot(), w.now); !p.Due[w.group].After(w.now) {
					t.Errorf("it is looked at again at %s", p.Due[w.group])
				}
			}
		})
	}
}

// One that drains and whose record does not say since when or why is given its time from its
// beginning, and leaves for the reason that it was last changed for.
//
// proves DRAIN-1
func TestADrainOfWhichNothingIsRecorded(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 1 })
	w.place("a", 0, store.Draining,
		func(r *store.Instance) { r.Last = store.Decision{Rule: "REC-16", Why: "ordered by ada"} })
	a, next := w.decided("a")
	if next.Phase != store.Deleting || !strings.Contains(a.Why, "ordered by ada") {
		t.Errorf("%s %q (%s) takes it to %q", a.Rule, a.What(), a.Why, next.Phase)
	}
}

// How long an instance drains that has to go: for as long as its hook may take, by a notice's
// deadline at the latest. Without a hook it goes on serving until a notice's deadline, and without
// a deadline for as long as a hook might have taken.
//
// proves DRAIN-1, SPOT-2
func TestHowLongWhatIsDoomedDrains(t *testing.T) {
	now := time.Unix(10_000, 0)
	long, short := time.Hour, 20*time.Second
	for _, test := range []struct {
		name    string
		hook    int // how many arguments the hook has
		timeout time.Duration
		in      time.Duration // the deadline; 0: there is none
		want    time.Duration // 0: nothing is waited for
	}{
		{"a hook that takes less", 1, time.Minute, long, time.Minute},
		{"a hook that takes longer", 1, time.Minute, short, short},
		{"a hook without a deadline", 1, time.Minute, 0, time.Minute},
		{"a hook without time", 1, 0, long, long},
		{"a hook without time or deadline", 1, 0, 0, 0},
		{"a hook with time of a moment", 1, 1, long, 1},
		{"no hook", 0, time.Minute, long, long},
		{"no hook and no deadline", 0, time.Minute, 0, time.Minute},
		{"a deadline that has passed", 1, time.Minute, -short, 0},
		{"a deadline in a moment", 1, time.Minute, 1, 1},
	} {
		in := &Instance{}
		in.Record.Spec.Drain = store.DrainSpec{Hook: make([]string, test.hook), Timeout: store.Duration(test.timeout)}
		in.Record.Doomed = &store.Doom{Rule: "SPOT-2"}
		m := &member{
			Instance: in, phase: store.Running, judgment: Judgment{Verdict: store.Doomed},
			doom: doom{rule: "SPOT-2"},
		}
		if test.in != 0 {
			m.doom.by = now.Add(test.in)
		}
		d := draftWith(func(d *draft) { d.now = now })
		if got, waits := d.drainTime(m); waits != (test.want > 0) || waits && got != test.want {
			t.Errorf("%s: it drains for %s, %t, want %s", test.name, got, waits, test.want)
		}
		in.Record.Doomed.Rule = "DRAIN-3" // an evacuation leaves the time that a hook takes
		want := test.timeout
		if test.hook == 0 {
			want = 0
		}
		if got, waits := d.drainTime(m); waits != (want > 0) || waits && got != want {
			t.Errorf("%s: evacuated, it drains for %s, %t, want %s", test.name, got, waits, want)
		}
	}
}
