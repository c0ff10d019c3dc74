package cli

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

func timer(ago, lasts time.Duration) *store.Timer {
	return &store.Timer{Start: noon.Add(-ago), For: store.Duration(lasts)}
}

// named returns a group like web of another name.
func named(name string, size int) store.Group {
	g := webGroup(size)
	g.Name = name
	return g
}

// busy is a world in which groups are in the middle of all that they can be in.
func busy(w *world) {
	w.serve()
	add := func(g store.Group, running int, change func(st *store.Status)) {
		st := statusOf(g, w.put(store.KindGroups, g.Name, g), running)
		change(&st)
		w.put(store.KindStatus, g.Name, st)
	}
	add(named("storm", 12), 6, func(st *store.Status) {
		st.Verdicts[store.Lost] = 6
		st.Storm = &store.Storm{
			Since: noon.Add(-41 * time.Second), Lost: 6, Of: 12,
			Calm: timer(11*time.Second, time.Minute), NextProbe: timer(41*time.Second, 5*time.Minute),
		}
		st.Blocked = []store.Blocked{{
			Rule: "SAFE-2", What: "replace storm-1-a", Why: "6 of 12 are lost",
			Instance: "storm-1-a",
		}}
	})
	add(named("calm", 4), 3, func(st *store.Status) {
		st.Verdicts[store.Lost] = 1
		st.Storm = &store.Storm{
			Since: noon.Add(-5 * time.Minute), Lost: 4, Of: 4, Shard: true,
			Ended: "overridden by eve@desk", By: "eve@desk", Resume: timer(10*time.Second, time.Minute),
		}
	})
	roll := func(st *store.Status) {
		st.Outdated = 2
		st.Rollout = &store.Rollout{
			Template: "t9f31c2aa", Since: noon.Add(-3 * time.Minute), Done: 4, Total: 6,
			Progress: noon.Add(-72 * time.Second), Stalls: timer(72*time.Second, 10*time.Minute),
		}
		st.Blocked = []store.Blocked{{
			Rule: "ROLL-1", What: "replacement of roll-4-f",
			Why: "max_expansion 1 is used up", Until: "another replacement is complete", Instance: "roll-4-f",
		}}
		st.LastGood = &store.GoodSpec{Revision: 6, Template: "told", At: noon.Add(-2 * time.Hour)}
		st.History = []store.PastSpec{
			{
				Revision: st.AcceptedRevision, At: noon.Add(-3 * time.Minute),
				Template: "t9f31c2aa", Size: 6,
			},
			{Revision: 6, At: noon.Add(-48 * time.Hour), Template: "told", Size: 5, Good: true},
		}
	}
	add(named("roll", 6), 6, roll)
	add(named("stalled", 6), 6, func(st *store.Status) {
		roll(st)
		st.Rollout.Stalls, st.Rollout.Stalled, st.Rollout.Relaunch = nil, "stalled-3-c is not healthy for 10m", 1
	})
	add(named("blamed", 6), 6, func(st *store.Status) {
		roll(st)
		st.Rollout.Blamed = "the replacements in slots 1 and 2 failed"
	})
	add(named("flaps", 2), 0, func(st *store.Status) {
		st.State, st.Flapping, st.Errored = store.GroupErrored, 1, 1
	})
	w.put(store.KindSlots, "flaps/0",
		store.Slot{
			Schema: 1, Group: "flaps", Number: 0, Errored: "72h of failures",
			Failures: make([]store.Failure, 9),
		})
	w.put(store.KindSlots, "flaps/1",
		store.Slot{
			Schema: 1, Group: "flaps", Number: 1, Failures: make([]store.Failure, 3),
			Retry: timer(10*time.Second, 30*time.Second), GiveUp: timer(time.Hour, 72*time.Hour),
		})
	w.put(store.KindSlots, "flaps/2",
		store.Slot{Schema: 1, Group: "flaps", Number: 2, Failures: make([]store.Failure, 1), Flapping: 1})
	resting(w, add)
	busyInstances(w)
}

// resting adds groups in which no instance is wanted, or none any longer.
func resting(w *world, add func(store.Group, int, func(*store.Status))) {
	for _, c := range []struct {
		name  string
		state store.GroupState
	}{{"stopped", store.GroupStopped}, {"ready", store.GroupReady}, {"done", store.GroupFinished}} {
		g := named(c.name, 2)
		g.Stopped, g.Unstarted = c.state == store.GroupStopped, c.state == store.GroupReady
		add(g, 0, func(st *store.Status) { st.State = c.state })
	}
	w.put(store.KindShard, "", store.Shard{
		Schema: store.Schema, ID: "x1", Name: "default", Created: noon.Add(-time.Hour),
		Settings:  store.DefaultShardSettings(),
		Evacuated: map[string]store.Evacuation{"c": {By: "eve@desk", At: noon.Add(-5 * time.Minute)}},
	})
}

// busyInstances adds instances to which something out of the common happens.
func busyInstances(w *world) {
	g := named("roll", 6)
	add := func(slot int, id string, phase store.Phase, change func(i *store.Instance)) {
		i := instanceOf(g, slot, id, phase)
		change(&i)
		w.put(store.KindInstances, id, i)
	}
	add(0, "roll-0-a", store.Draining, func(i *store.Instance) {
		i.Drain = &store.Drain{
			Token: "d1", Rule: "ROLL-1", Why: "it is outdated", Cause: store.Cause{Kind: store.CauseOutdated},
			Timer: *timer(18*time.Second, 5*time.Minute),
		}
	})
	add(0, "roll-0-g", store.Draining, func(i *store.Instance) {
		i.Drain = &store.Drain{
			Token: "d2", Rule: "DET-7", Why: "lost", Timer: *timer(18*time.Second, 5*time.Minute),
			Lost: true, Done: "acknowledged by eve@desk",
		}
	})
	add(0, "roll-0-h", store.Deleting, func(*store.Instance) {})
	add(1, "roll-1-b", store.Starting, func(i *store.Instance) {
		i.Restart = &store.Restart{
			Level: store.RestartMachine, Token: "r1", At: noon.Add(-20 * time.Second),
			Heals: true,
		}
	})
	add(2, "roll-2-c", store.Running, func(i *store.Instance) {
		i.Zone = "c"
		i.Doomed = &store.Doom{
			Rule: "SPOT-2", Why: "the provider takes it", At: noon.Add(-5 * time.Second),
			Deadline: timer(5*time.Second, 2*time.Minute),
		}
	})
	add(3, "roll-3-d", store.Running, func(i *store.Instance) { i.Protected = store.ProtectHeal })
	add(-1, "roll-x-e", store.Running, func(i *store.Instance) { i.Managed = false })
	add(4, "roll-4-f", store.Finished, func(*store.Instance) {})
	w.put(store.KindReports, "roll-3-d", store.Report{
		Schema: 1, Instance: "roll-3-d", Received: noon.Add(-20 * time.Second),
		Workload: &store.WorkloadExit{
			Code: -1, Signal: "killed", At: noon.Add(-21 * time.Second),
			Output: "one\n\x1b[2Jtwo",
		},
	})
	w.journal(30*time.Hour, store.JournalEntry{
		Rule: "DET-4", Group: "roll", Instance: "roll-3-old", What: "dead",
		Why: "crashed", Verdict: store.Dead, Revision: 3, Evidence: []string{"exit code 2", "out of memory"},
	})
	w.journal(time.Hour, store.JournalEntry{
		Rule: "HEAL-9", Group: "roll", Instance: "roll-9-fine", What: "deleting",
		Why: "surplus", Revision: 4,
	})
}
