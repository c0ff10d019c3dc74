package plan

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A status is written when anything in it has changed that a reader sees, and the table names every
// field of it.
//
// proves REC-10, SAFE-15
func TestWhatMakesAStatusANewOne(t *testing.T) {
	filled := func() *store.Status {
		return &store.Status{
			Accepted: &store.Group{Size: 1}, AcceptedRevision: 3, Beside: &store.Beside{Revision: 3},
			Invalid: &store.InvalidSpec{Revision: 4, Why: "size"}, State: store.GroupStarted, Since: epoch,
			Phases: map[store.Phase]int{store.Running: 1}, Verdicts: map[store.Verdict]int{store.Live: 1},
			Storm: &store.Storm{Lost: 3}, Breaker: &store.Breaker{Count: 3}, HealNext: "a",
			Rollout:  &store.Rollout{Done: 1},
			LastGood: &store.GoodSpec{Revision: 3, Template: "t"},
			History:  []store.PastSpec{{Revision: 3}}, Blocked: []store.Blocked{{Rule: "HEAL-2"}},
			Rebalance: &store.Rebalance{Withdrawn: 1}, Shares: &store.Shares{Spot: 1}, Records: new(1), Counted: 6,
			Damaged: []store.Damaged{{Key: "k", What: store.DamageLost, Why: "gone", Last: 5, Seen: 7, Since: epoch}},
		}
	}
	type edit func(*store.Status)
	edits := map[string][]edit{
		"Schema": nil, "Group": nil, // of the key
		"Accepted": {
			func(s *store.Status) { s.Accepted = nil }, func(s *store.Status) { s.Accepted = &store.Group{Size: 2} },
		},
		"AcceptedRevision": {func(s *store.Status) { s.AcceptedRevision++ }},
		"Beside": {
			func(s *store.Status) { s.Beside = nil }, func(s *store.Status) { s.Beside = &store.Beside{Revision: 4} },
		},
		"Invalid": {
			func(s *store.Status) { s.Invalid = nil },
			func(s *store.Status) { s.Invalid = &store.InvalidSpec{Revision: 5, Why: "size"} },
			func(s *store.Status) { s.Invalid = &store.InvalidSpec{Revision: 4, Why: "name"} },
		},
		"State": {
			func(s *store.Status) { s.State = store.GroupPaused },
		}, "Health": {func(s *store.Status) { s.Health++ }},
		"Healthy": {func(s *store.Status) { s.Healthy++ }}, "OK": {func(s *store.Status) { s.OK = true }},
		"Since":    {func(s *store.Status) { s.Since = epoch.Add(1) }},
		"Phases":   {func(s *store.Status) { s.Phases = map[store.Phase]int{store.Running: 2} }},
		"OnDemand": {func(s *store.Status) { s.OnDemand++ }},
		"Verdicts": {func(s *store.Status) { s.Verdicts = map[store.Verdict]int{store.Lost: 1} }},
		"Outdated": {func(s *store.Status) { s.Outdated++ }}, "Flapping": {func(s *store.Status) { s.Flapping++ }},
		"Errored": {func(s *store.Status) { s.Errored++ }},
		"Storm":   {func(s *store.Status) { s.Storm = nil }, func(s *store.Status) { s.Storm = &store.Storm{Lost: 4} }},
		"Breaker": {
			func(s *store.Status) { s.Breaker = nil }, func(s *store.Status) { s.Breaker = &store.Breaker{Count: 4} },
		},
		"HealNext": {func(s *store.Status) { s.HealNext = "" }, func(s *store.Status) { s.HealNext = "b" }},
		"Rollout": {
			func(s *store.Status) { s.Rollout = nil }, func(s *store.Status) { s.Rollout = &store.Rollout{Done: 2} },
		},
		"LastGood": {
			func(s *store.Status) { s.LastGood = nil },
			func(s *store.Status) { s.LastGood = &store.GoodSpec{Revision: 4, Template: "t"} },
			func(s *store.Status) { s.LastGood = &store.GoodSpec{Revision: 3, Template: "u"} },
		},
		"History": {
			func(s *store.Status) { s.History = nil }, func(s *store.Status) { s.History = []store.PastSpec{{Revision: 4}} },
		},
		"Blocked": {
			func(s *store.Status) { s.Blocked = nil }, func(s *store.Status) { s.Blocked = []store.Blocked{{Rule: "HEAL-7"}} },
		},
		"Uneven": {func(s *store.Status) { s.Uneven = "a 2, b 0" }},
		"Rebalance": {
			func(s *store.Status) { s.Rebalance = nil }, func(s *store.Status) { s.Rebalance = &store.Rebalance{Withdrawn: 2} },
		},
		"Shares": {
			func(s *store.Status) { s.Shares = nil }, func(s *store.Status) { s.Shares = &store.Shares{Spot: 2} },
		},
		"Scale":    {func(s *store.Status) { s.Scale = &store.Scale{Size: 2} }},
		"Agents":   {func(s *store.Status) { s.Agents = &store.AgentWave{Done: 2} }},
		"DrillDue": {func(s *store.Status) { s.DrillDue = epoch }},
		"Records":  {func(s *store.Status) { s.Records = nil }, func(s *store.Status) { s.Records = new(2) }},
		"Counted":  nil, // tells nothing new by itself: see below
		"Damaged": {
			func(s *store.Status) { s.Damaged = nil }, func(s *store.Status) { s.Damaged[0].Key = "l" },
			func(s *store.Status) { s.Damaged[0].What = store.DamageUnreadable },
			func(s *store.Status) { s.Damaged[0].Why = "spoiled" },
			func(s *store.Status) { s.Damaged[0].Cause.Kind = store.CauseRecordLost },
			func(s *store.Status) { s.Damaged[0].Last = 6 },
			func(s *store.Status) { s.Damaged[0].Seen = 8 },
		},
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.Status]()) {
		if _, named := edits[f.Name]; !named {
			t.Errorf("nothing is said of a status's %s", f.Name)
		}
	}
	for field, list := range edits {
		for i, change := range list {
			d := draftWith(func(d *draft) {
				d.s = &Snapshot{}
				d.g = &Group{Spec: Spec{StaticModified: 3}}
			})
			a, b := filled(), filled()
			if !d.status.same(a, b) {
				t.Fatal("two that say the same are not the same")
			}
			if change(b); d.status.same(a, b) || d.status.same(b, a) {
				t.Errorf("%s, change %d: it is not written", field, i)
			}
		}
	}
	// What was counted before a release is counted again; at any other time a count says nothing new.
	for name, c := range map[string]struct {
		review        *store.Reviewed
		before, after store.Revision
		same          bool
	}{
		"no release": {nil, 6, 9, true}, "before the release": {&store.Reviewed{Seen: 6}, 6, 7, false},
		"after the release":                {&store.Reviewed{Seen: 5}, 6, 9, true},
		"the cache is as old as it":        {&store.Reviewed{Seen: 9}, 6, 9, true},
		"a release of no damage":           {&store.Reviewed{}, 0, 9, true},
		"of a release at the first change": {&store.Reviewed{Seen: 1}, 1, 9, false},
	} {
		d := draftWith(func(d *draft) { d.s, d.g = &Snapshot{}, &Group{} })
		d.s.Shard.Record.Reviewed = c.review
		a, b := filled(), filled()
		a.Counted, b.Counted = c.before, c.after
		if d.status.same(a, b) != c.same {
			t.Errorf("%s: it is written: %t", name, c.same)
		}
	}
	// Where no file can have changed it, the spec in force is known by its revision.
	a, b := filled(), filled()
	b.Accepted = &store.Group{Size: 2}
	d := draftWith(func(d *draft) { d.s, d.g = &Snapshot{}, &Group{} })
	if !d.status.same(a, b) {
		t.Error("a spec of the same revision is compared")
	}
}

// What a status says of slots that flap or are given up, of the last good template, and of failed
// calls.
//
// proves REC-10, REC-11, ROLL-4, HEAL-12, FLAP-3
func TestWhatAStatusSays(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 4 })
	for i, id := range []string{"a", "b", "c", "d"} {
		w.place(id, i, store.Running)
	}
	put := func(n int, edit func(*store.Slot)) {
		rec := store.Slot{Schema: store.Schema, Group: w.group, Number: n}
		edit(&rec)
		w.put(w.keys.Slot(w.group, n), rec)
	}
	put(1, func(s *store.Slot) { s.Flapping = 1 })
	put(2, func(s *store.Slot) { s.Flapping, s.Errored = 5, "it has failed too often" })
	put(3, func(s *store.Slot) { s.Failures = []store.Failure{{At: w.now}} })
	w.step()
	st := read[store.Status](w, w.keys.Status(w.group)).Record
	if st.Flapping != 1 || st.Errored != 1 || st.State != store.GroupErrored {
		t.Errorf("%d slots flap and %d are given up, the group is %s", st.Flapping, st.Errored, st.State)
	}
	w.put(w.keys.Slot(w.group, 2), store.Slot{Schema: store.Schema, Group: w.group, Number: 2})
	w.now = w.now.Add(time.Second)
	w.step()
	st = read[store.Status](w, w.keys.Status(w.group)).Record
	if good := st.LastGood; good == nil || good.Revision != w.spec().Modified || !good.At.Equal(w.now) ||
		good.Template != w.instance("a").Record.Template || st.State != store.GroupStarted || !st.History[0].Good {
		t.Errorf("the group is %s, the last good template %+v, history %+v", st.State, good, st.History)
	}
	for phase, told := range map[store.Phase]bool{
		store.Pending: true, store.Creating: true, store.Deleting: true, store.Stopping: false, store.Booting: false,
		store.Checking: false, store.Running: false,
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size = 1 })
		w.place("a", 0, phase)
		s := w.snapshot()
		s.Groups[0].Instances[0].Calls.Problem = "out of order"
		d := newDraft(&s, &s.Groups[0], w.now)
		if got := slices.ContainsFunc(d.status.blockedWork(),
			func(b store.Blocked) bool { return b.Rule == "HEAL-12" }); got != told {
			t.Errorf("%s: that its call failed is told: %t", phase, got)
		}
	}
}

// From checking on an instance goes by what its agent says on an open stream: a task that has ended
// well is finished, though it was healthy as well; who is on the way to another replica proves
// nothing yet.
//
// proves REC-12, DET-9, DET-8
func TestWhereCheckingEnds(t *testing.T) {
	task := func(code int, healthy bool) func(*Instance) {
		return func(in *Instance) {
			in.Record.Spec.Lifecycle = store.LifecycleTask
			in.Report.Record.Workload, in.Report.Record.Healthy = &store.WorkloadExit{Code: code}, healthy
		}
	}
	for name, c := range map[string]struct {
		is   func(*Instance)
		want store.Phase // "": it stays
	}{
		"healthy":                   {func(*Instance) {}, store.Running},
		"healthy, and moves":        {func(in *Instance) { in.Alive.Record.State = store.StreamMoved }, ""},
		"healthy, and overdue":      {func(in *Instance) { in.Alive.Record.State = store.StreamOverdue }, ""},
		"healthy, in another boot":  {func(in *Instance) { in.Report.Record.BootID = "b0" }, ""},
		"not healthy":               {func(in *Instance) { in.Report.Record.Healthy = false }, ""},
		"its lease ended":           {func(in *Instance) { in.Alive = store.Versioned[store.Alive]{} }, ""},
		"a task that ended":         {task(0, false), store.Finished},
		"a healthy task that ended": {task(0, true), store.Finished},
		"a task that failed":        {task(1, false), ""},
		"a task that ended by a signal": {
			func(in *Instance) { task(0, false)(in); in.Report.Record.Workload.Signal = "KILL" }, "",
		},
		"a service that ended": {func(in *Instance) { task(0, false)(in); in.Record.Spec.Lifecycle = "" }, ""},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size, g.Heal.Policy = 1, store.HealNone })
		w.place("a", 0, store.Checking)
		s := w.snapshot()
		in := &s.Groups[0].Instances[0]
		c.is(in)
		var got []store.Phase
		for _, a := range Compute(s, w.now).Actions {
			if a.Instance == "a" {
				got = append(got, a.To)
			}
		}
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []store.Phase{c.want}) {
			t.Errorf("%s: it goes to %q, want %q", name, got, c.want)
		}
	}
}

// How far a roll has come when it begins, what its progress counts from, and when its time stands
// still.
//
// proves ROLL-4, REC-12, FLAP-5
func TestTheTimeOfARoll(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 3 })
	w.place("a", 0, store.Running)
	w.place("b", 1, store.Running, outdated)
	w.place("c", 2, store.Running, outdated)
	w.now = w.now.Add(time.Minute)
	r := w.drafted().roll.rollout
	if r == nil || r.Done != 1 || r.Most != 1 || r.Total != 3 || !r.Since.Equal(w.now) || !r.Progress.Equal(w.now) ||
		r.Stalls == nil || r.Stalls.For != w.spec().Record.Rollout.ProgressDeadline {
		t.Errorf("a roll begins as %+v", r)
	}
	for name, c := range map[string]struct {
		spec func(*store.Group)
		hold bool
		runs bool
	}{
		"at work": {func(*store.Group) {}, false, true}, "on hold": {func(*store.Group) {}, true, false},
		"paused":        {func(g *store.Group) { g.Paused = true }, false, false},
		"stopped":       {func(g *store.Group) { g.Stopped = true }, false, false},
		"deleted":       {func(g *store.Group) { g.Deleting = true }, false, false},
		"not started":   {func(g *store.Group) { g.Unstarted = true }, false, false},
		"opportunistic": {func(g *store.Group) { g.Rollout.Strategy = store.StrategyOpportunistic }, false, false},
	} {
		s := w.snapshot()
		c.spec(&s.Groups[0].Spec.Group)
		if c.hold {
			s.Shard.Record.Hold = &store.Hold{}
		}
		old := *r
		old.Stalls = &store.Timer{Start: w.now, For: store.Duration(time.Hour)}
		s.Groups[0].Status.Record.Rollout = &old
		s.Groups[0].Due = Due{store.TimerProgress: w.now.Add(time.Hour)}
		d := newDraft(&s, &s.Groups[0], w.now)
		d.judgeAll()
		d.roll.track()
		if r := d.roll.rollout; r == nil || r.Stalls != nil != c.runs || d.next.Equal(w.now.Add(time.Hour)) != c.runs {
			t.Errorf("%s: %+v, looked at again at %s", name, d.roll.rollout, d.next)
		}
	}
	done := newTestWorld(t)
	done.edit(func(g *store.Group) { g.Size = 1 })
	done.place("a", 0, store.Finished, outdated)
	if d := done.drafted(); d.roll.rollout != nil || d.roll.count.outdated != 0 || d.roll.count.done != 1 {
		t.Errorf("a finished task is brought up to date: %+v, %+v", d.roll.rollout, d.roll.count)
	}
	d := draftWith(func(d *draft) { d.hash, d.order = "new", []*slot{{}, {}, {}, {}} })
	at := epoch.Add(time.Hour)
	for i, failures := range [][]store.Failure{
		{{At: at, Template: "new"}, {At: at.Add(1), Template: "new"}},
		{{At: at.Add(-1), Template: "new"}},
		{{At: at, Template: "old"}},
		{{At: at.Add(time.Hour), Template: "new"}, {At: at.Add(-1), Template: "new"}},
	} {
		d.order[i].Record.Failures = failures
	}
	if slots, failures := d.roll.failedSince(at); slots != 2 || failures != 3 {
		t.Errorf("the new template has failed %d times in %d slots, want 3 in 2", failures, slots)
	}
}
