package coordinator_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// happened puts entries into the journal of a day before the world began: a group whose instance
// died at noon and was replaced after 20 seconds.
func (w *world) happened(group string, day time.Time) {
	w.t.Helper()
	old, heir, slot := group+"-0-a", group+"-0-b", 0
	noon := day.Add(12 * time.Hour)
	for i, e := range []store.JournalEntry{
		{At: day.Add(-time.Hour), Instance: old, To: store.Pending, Cause: store.Cause{Kind: store.CauseUnfilled}},
		{At: day.Add(-time.Hour + time.Minute), Instance: old, From: store.Checking, To: store.Running},
		{At: noon, Instance: old, Kind: store.EntryVerdict, Verdict: store.Dead},
		{
			At: noon.Add(time.Second), Instance: old, From: store.Running, To: store.Deleting, Verdict: store.Dead,
			Replacement: heir, Cause: store.Cause{Kind: store.CauseDown},
		},
		{At: noon.Add(5 * time.Second), Instance: heir, From: store.Creating, To: store.Booting},
		{At: noon.Add(20 * time.Second), Instance: heir, From: store.Checking, To: store.Running},
	} {
		e.Schema, e.Group, e.Slot = store.Schema, group, &slot
		w.put(w.keys.Event(e.At, fmt.Sprintf("%s%d", group, i)), store.Encode(e))
	}
}

// created has the shard be there, and leaders be at work, for so many days.
func (w *world) created(days int) (today time.Time) {
	today = time.Now().UTC().Truncate(24 * time.Hour)
	w.editShard(func(s *store.Shard) { s.Created = today.AddDate(0, 0, -days) })
	w.served(time.Now().UTC())
	return today
}

// served has a leader be at work last at a time.
func (w *world) served(at time.Time) {
	w.t.Helper()
	v, err := w.store.Vitals(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(w.keys.Served(), store.Encode(store.Served{
		Schema: store.Schema, At: at, Replica: "zero", Cluster: v.ClusterName(), Revision: v.Revision,
	}))
}

func (w *world) isDone(day time.Time) bool {
	return slices.ContainsFunc(w.list(w.keys.Of(store.KindDays)), func(kv store.KV) bool {
		return kv.Key == w.keys.DayDone(day.Format(store.DayLayout))
	})
}

func (w *world) day(day time.Time, group string) store.Versioned[store.Day] {
	w.t.Helper()
	for _, kv := range w.list(w.keys.Of(store.KindDays)) {
		if kv.Key == w.keys.Day(day.Format(store.DayLayout), group) {
			return decoded[store.Day](w, kv)
		}
	}
	w.t.Fatalf("%s has no summary of %s", group, day.Format(store.DayLayout))
	return store.Versioned[store.Day]{}
}

// Each day that is over is summed up once from the journal, also one on which no coordinator was
// there to do it.
//
// proves DAY-5
func TestDaysAreSummedUp(t *testing.T) {
	inWorld(t, fake.Config{}, func(w *world) {
		today := w.created(3)
		yesterday, before := today.AddDate(0, 0, -1), today.AddDate(0, 0, -2)
		w.happened("web", yesterday)
		w.happened("api", before)
		w.start("one")
		w.until(time.Hour, "yesterday is summed up", func() bool { return w.isDone(yesterday) })
		d := w.day(yesterday, "web").Record
		if d.Wanted.D() != 24*time.Hour || d.Lost.D() != 20*time.Second || len(d.Failures) != 1 ||
			d.Failures[0] != (store.DayFailure{At: store.Duration(12 * time.Hour), Kind: store.FailedDead}) ||
			d.Heal.Times != 1 || d.Starts.Took[0].D() != 15*time.Second || d.Calls.Took[0].D() != 4*time.Second ||
			len(d.Made) != 1 || d.Made[0].Count != 1 {
			t.Errorf("%+v", d)
		}
		if d := w.day(before, "api").Record; d.Heal.Times != 1 {
			t.Errorf("%+v", d)
		}
		if !w.isDone(today.AddDate(0, 0, -3)) || w.isDone(today) {
			t.Error("the shard's first day is not summed up, or today is")
		}
		at := w.day(yesterday, "web").Modified
		w.happened("late", yesterday)
		w.pass(time.Hour)
		if w.day(yesterday, "web").Modified != at || len(w.list(w.keys.Day(yesterday.Format(store.DayLayout), "late"))) > 0 {
			t.Error("a day is summed up twice")
		}
	})
}

// A leader that dies between two transactions leaves a part of a day, and the next one writes the
// rest.
//
// proves DAY-5
func TestLeaderDiesWhileItSumsUp(t *testing.T) {
	inWorld(t, fake.Config{}, func(w *world) {
		yesterday := w.created(1).AddDate(0, 0, -1)
		const groups = 100
		for i := range groups {
			w.happened(fmt.Sprintf("g%d", i), yesterday)
		}
		one := make(chan struct{})
		var first *replica
		first = w.start("one", before(func(boundary, _ string) {
			if boundary == "day written" {
				first.store.Faults().Cut()
				close(one)
			}
		}))
		<-one
		if n := len(w.list(w.keys.Of(store.KindDays))); n == 0 || n >= groups || w.isDone(yesterday) {
			t.Fatalf("%d summaries are written", n)
		}
		half := w.list(w.keys.Of(store.KindDays))
		first.kill()
		w.start("two")
		w.until(time.Hour, "the day is summed up", func() bool { return w.isDone(yesterday) })
		all := w.list(w.keys.Of(store.KindDays))
		if len(all) != groups+1 {
			t.Errorf("%d keys", len(all))
		}
		for _, kv := range half {
			if !slices.ContainsFunc(all, func(o store.KV) bool { return o.Key == kv.Key && o.Modified == kv.Modified }) {
				t.Errorf("%s was written again", kv.Key)
			}
		}
	})
}

// The oldest days go when there are more than days_kept. A clock that differs from the others' sums
// up nothing.
//
// proves DAY-5, SAFE-13
func TestDaysAreBounded(t *testing.T) {
	inWorld(t, fake.Config{}, func(w *world) {
		today := w.created(60)
		w.editShard(func(s *store.Shard) { s.Settings.DaysKept = store.Duration(48 * time.Hour) })
		for back := 3; back < 9; back++ {
			day := today.AddDate(0, 0, -back).Format(store.DayLayout)
			w.put(w.keys.Day(day, "web"), store.Encode(store.Day{Schema: store.Schema, Group: "web", Day: day}))
			w.put(w.keys.DayDone(day), store.Encode(store.DayDone{Schema: store.Schema, Day: day}))
		}
		w.happened("web", today.AddDate(0, 0, -1))
		w.put(w.keys.Replica("other"), store.Encode(store.Replica{
			Schema: store.Schema, ID: "other", ClockOff: store.Duration(time.Minute),
		}))
		w.start("one")
		w.always(time.Hour, "nothing is summed up", func() bool { return !w.isDone(today.AddDate(0, 0, -1)) })
		w.remove(w.keys.Replica("other"))
		w.until(time.Hour, "two days are left", func() bool {
			days := map[string]bool{}
			for _, kv := range w.list(w.keys.Of(store.KindDays)) {
				days[kv.Key[len(w.keys.Of(store.KindDays)):][:10]] = true
			}
			return len(days) == 2
		})
		w.day(today.AddDate(0, 0, -1), "web")
	})
}

// The load of a group is recorded while a replica leads, and the next leader goes on in the same
// hour.
//
// proves AUTO-4
func TestLoadsAreRecorded(t *testing.T) {
	inWorld(t, fake.Config{}, func(w *world) {
		first := w.start("one")
		w.leads(time.Minute, "one")
		w.start("two")
		web := w.group("web", 1)
		web.Scale = &store.ScaleSpec{
			Max: 1, Mode: store.ScaleAdvise, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}},
		}
		w.apply(web)
		w.apply(w.group("fixed", 1))
		ids := w.up(2)
		bear := func(d time.Duration, cpu float64) {
			for end := time.Now().Add(d); time.Now().Before(end); w.pass(7 * time.Second) {
				for _, id := range ids {
					rec := store.Report{Schema: store.Schema, Instance: id}
					if kvs := w.list(w.keys.Report(id)); len(kvs) > 0 {
						rec = decoded[store.Report](w, kvs[0]).Record
					}
					rec.Received = time.Now()
					rec.Host.Windows = []store.HostWindow{{
						Span: store.Duration(time.Minute), Covered: store.Duration(time.Minute), CPUPercent: cpu,
						NetworkSent: 120e6,
					}}
					w.put(w.keys.Report(id), store.Encode(rec))
				}
			}
		}
		bear(23*time.Minute, 40)
		first.stop()
		loads := records[store.Load](w, store.KindLoads)
		if len(loads) != 2 || len(loads[1].Record.Points) != 5 {
			t.Fatalf("what the leader saw last is missing: %+v", loads)
		}
		bear(17*time.Minute, 60)
		loads = records[store.Load](w, store.KindLoads)
		if len(loads) != 2 || loads[1].Lease == 0 || loads[1].Record.Group != "web" {
			t.Fatalf("%+v", loads)
		}
		if p := loads[0].Record.Points; len(p) != 1 || p[0].Minute != 0 || p[0].Run != 1 {
			t.Errorf("a group of fixed size has %+v", p)
		}
		points := loads[1].Record.Points
		if p := points[1]; p.Minute != 5 || p.Run != 1 || p.CPU != 40 || p.Network != 2 {
			t.Errorf("%+v", points)
		}
		if p := points[len(points)-1]; p.CPU != 60 || len(points) < 5 {
			t.Errorf("%+v", points)
		}
	})
}
