package view_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/observe"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// shown is a shard of records that a test writes, and its views.
type shown struct {
	t     *testing.T
	st    *memstore.Store
	keys  store.Keys
	cache *cache.Cache
	views *view.Source
	now   time.Time
	group store.Group
	told  int
}

// inShard runs a test with a group of six in two zones.
func inShard(t *testing.T, test func(*shown)) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New(memstore.Config{})
		defer db.Close()
		x := &shown{t: t, st: db.Connect(), keys: store.KeysOf("test"), now: time.Now().UTC(), group: store.DefaultGroup()}
		x.cache = cache.New(x.keys)
		j := journal.New(x.keys, journal.MaxEntries)
		x.views = view.New("test", x.cache, j)
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		go func() { _ = x.cache.Run(ctx, x.st) }()
		go func() { _ = j.Run(ctx, x.st) }()
		x.put(x.keys.Shard(), store.Shard{
			Schema: store.Schema, ID: "x1", Name: "test", Created: x.now.Add(-48 * time.Hour),
			Settings: store.DefaultShardSettings(),
		})
		x.group.Name, x.group.Provider, x.group.Size = "web", "mem", 6
		x.group.Complete()
		x.put(x.keys.Group("web"), x.group)
		for n := range 6 {
			x.instance(n, "old", nil)
		}
		test(x)
	})
}

func (x *shown) put(key string, record any) {
	x.t.Helper()
	if _, err := x.st.Commit(x.t.Context(),
		store.Txn{Writes: []store.Write{store.Put(key, store.Encode(record))}}); err != nil {
		x.t.Fatal(err)
	}
	synctest.Wait()
}

func (x *shown) instance(n int, template string, change func(*store.Instance)) string {
	x.t.Helper()
	id := fmt.Sprintf("web-%d-a", n)
	i := store.Instance{
		Schema: store.Schema, ID: id, Group: "web", Slot: n, Phase: store.Running, Managed: true, Template: template,
		Zone: []string{"a", "b"}[n%2], Since: x.now, Created: x.now, Spec: store.InstanceSpec{Provider: "mem"},
	}
	if change != nil {
		change(&i)
	}
	x.put(x.keys.Instance(id), i)
	x.put(x.keys.Alive(id), store.Alive{
		Schema: store.Schema, Instance: id, BootID: "b", State: store.StreamOpen, Since: x.now,
	})
	x.report(n, true, 50)
	return id
}

func (x *shown) report(n int, healthy bool, cpu float64, checks ...store.CheckReport) {
	x.t.Helper()
	id := fmt.Sprintf("web-%d-a", n)
	x.put(x.keys.Report(id), store.Report{
		Schema: store.Schema, Instance: id, BootID: "b", Healthy: healthy, Received: x.now, Checks: checks,
		Host: store.HostReport{CPUPercent: cpu, MemoryPercent: 30},
	})
}

// reportAt is a report of a time.
func (x *shown) reportAt(n int, at time.Time, cpu float64) {
	x.t.Helper()
	id := fmt.Sprintf("web-%d-a", n)
	x.put(x.keys.Report(id), store.Report{
		Schema: store.Schema, Instance: id, BootID: "b", Healthy: true, Received: at,
		Host: store.HostReport{CPUPercent: cpu, MemoryPercent: 40},
	})
}

func (x *shown) status(change func(*store.Status)) {
	x.t.Helper()
	st := store.Status{
		Schema: store.Schema, Group: "web", Accepted: &x.group, AcceptedRevision: 1 << 40, State: store.GroupStarted,
		Health: 100, Healthy: 6, OK: true, Since: x.now, Phases: map[store.Phase]int{store.Running: 6},
	}
	change(&st)
	x.put(x.keys.Status("web"), st)
}

func (x *shown) tell(at time.Time, e store.JournalEntry) {
	x.t.Helper()
	x.told++
	e.Schema, e.At, e.Group = store.Schema, at, "web"
	x.put(x.keys.Event(at, fmt.Sprint(x.told)), e)
}

func (x *shown) see() view.Group {
	x.t.Helper()
	v, read := x.views.Group("web", x.now)
	if !read || !v.Found {
		x.t.Fatal("the group is not read")
	}
	return v
}

// A roll is drawn by zone, from what the instances run, and its canaries with it.
//
// proves WEB-1, ROLL-5, ROLL-8
func TestRollAsAPicture(t *testing.T) {
	inShard(t, func(x *shown) {
		x.status(func(*store.Status) {})
		if v := x.see(); v.Roll != nil {
			t.Errorf("there is a roll: %+v", v.Roll)
		}
		x.instance(0, "new", nil)
		x.instance(2, "new", func(i *store.Instance) { i.Phase = store.Booting })
		x.instance(4, "new", nil)
		x.report(4, false, 0)
		x.status(func(st *store.Status) {
			st.Rollout = &store.Rollout{
				Template: "new", Since: x.now, Progress: x.now, Done: 1, Total: 6, Zone: "a", Canary: 1, Canaries: []int{0},
				Promoted: "by ada", Rests: &store.Timer{Start: x.now, For: store.Duration(time.Minute)},
			}
		})
		r := x.see().Roll
		want := []view.RollZone{{Name: "a", Done: 1, Failing: 1, Busy: 1, Now: true}, {Name: "b", Waits: 3}}
		if r == nil || !slices.Equal(r.Zones, want) || r.Canary == nil || r.Canary.Promoted != "by ada" ||
			!r.Rests.Equal(x.now.Add(time.Minute)) || r.Halted {
			t.Errorf("got %+v, want zones %+v", r, want)
		}
		x.status(func(st *store.Status) {
			st.Rollout = &store.Rollout{
				Template: "new", Since: x.now, Rests: &store.Timer{Start: x.now, For: store.Duration(time.Minute)},
				GraceUntil: x.now.Add(2 * time.Minute),
			}
		})
		if r := x.see().Roll; !r.Rests.Equal(x.now.Add(2 * time.Minute)) {
			t.Errorf("in a grace it rests until %s", r.Rests)
		}
	})
}

// When planned work may begin is worked out from windows and freezes as the planner does; what
// waits for it is not among the problems.
//
// proves WEB-1, ROLL-6
func TestWhenPlannedWorkMayBegin(t *testing.T) {
	inShard(t, func(x *shown) {
		x.status(func(*store.Status) {})
		if v := x.see(); v.Planned != nil {
			t.Errorf("planned work waits without windows: %+v", v.Planned)
		}
		opens := x.now.Truncate(24 * time.Hour).Add(22 * time.Hour)
		x.group.Windows = []store.Window{{From: "22:00", For: store.Duration(time.Hour), Allow: []string{store.PlannedRoll}}}
		x.status(func(st *store.Status) {
			st.Blocked = []store.Blocked{{
				Rule: "ROLL-6", Kind: store.BlockedByWindow, Work: store.WorkRoll, Turn: true,
				Of: store.BlockedFacts{Group: "web", Opens: opens},
			}}
		})
		v := x.see()
		if len(v.Planned) != len(store.PlannedWork) || len(v.Problems) != 0 || len(v.Blocked) != 0 || len(v.Turns) != 1 {
			t.Fatalf("got %+v, problems %+v, turns %+v", v.Planned, v.Problems, v.Turns)
		}
		if want := "closed until " + opens.Format("01-02 15:04"); v.Row.Now != want {
			t.Errorf("now %q, want %q", v.Row.Now, want)
		}
		roll, expiry := v.Planned[0], v.Planned[1]
		if roll.Open || !roll.Opens.Equal(opens) || len(roll.Periods) != 7 {
			t.Errorf("the roll: %+v", roll)
		}
		if expiry.Open || !expiry.Opens.IsZero() || len(expiry.Periods) != 0 {
			t.Errorf("expiry, which no window allows: %+v", expiry)
		}
		freeze := &store.Freeze{From: x.now.Add(-time.Hour), To: opens.Add(48 * time.Hour), Why: "fair", By: "ada"}
		x.put(x.keys.Shard(), store.Shard{
			Schema: store.Schema, ID: "x1", Name: "test", Settings: store.DefaultShardSettings(), Freeze: freeze,
		})
		roll = x.see().Planned[0]
		if !roll.Opens.Equal(opens.Add(48*time.Hour)) || roll.Freeze == nil || roll.Freeze.By != "ada" ||
			len(roll.Periods) != 5 {
			t.Errorf("in a freeze: %+v", roll)
		}
	})
}

// Scaling shows its bounds, why the size stays, and the last change by load.
//
// proves WEB-1, AUTO-1, AUTO-4
func TestScalingIsShown(t *testing.T) {
	inShard(t, func(x *shown) {
		least := 2
		x.group.Scale = &store.ScaleSpec{
			Min: &least, Max: 8, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}},
		}
		numbers := []store.ScaleNumber{{Metric: store.MetricCPU, Value: 90, Target: 50, Fresh: 6, Of: 6, Wish: 11}}
		x.tell(x.now.Add(-time.Hour), store.JournalEntry{Rule: "AUTO-1", Cause: store.Cause{
			Kind: store.CauseLoad, Count: 2, Limit: 4,
		}})
		x.tell(x.now.Add(-time.Minute), store.JournalEntry{Rule: "AUTO-1", Cause: store.Cause{
			Kind: store.CauseLoad, Count: 4, Limit: 6, Load: &store.CauseNumbers{Numbers: numbers},
		}})
		x.status(func(st *store.Status) {
			st.Scale = &store.Scale{Size: 6, Wish: 8, Asks: 11, Stays: store.ScaleAtMost, Numbers: numbers, At: x.now}
		})
		v := x.see()
		if s := v.Scale; s == nil || s.Size != 6 || s.Min != 2 || s.Max != 8 || s.Asks != 11 || s.Last == nil ||
			s.Last.From != 4 || s.Last.To != 6 || !strings.Contains(s.Stays, "scale.max is 8") {
			t.Errorf("got %+v", s)
		}
		x.views.Sample(x.now)
		x.report(0, true, 80)
		x.views.Sample(x.now.Add(view.TrendEvery))
		trend := x.see().Trend
		if len(trend) != 2 || trend[0].CPU != 50 || trend[1].CPU != 55 || trend[1].Told != 6 || trend[1].Run != 6 ||
			trend[1].Size != 6 || trend[1].Asks != 11 {
			t.Errorf("the trend is %+v", trend)
		}
		x.views.Sample(x.now.Add(2 * view.TrendFor)) // no report is as fresh
		if trend = x.see().Trend; len(trend) != 1 || trend[0].Told != 0 {
			t.Errorf("two hours later it is %+v", trend)
		}
	})
}

// The load of each instance is kept for an hour, a value a minute, and no longer than the instance.
//
// proves WEB-1
func TestLoadOfAnInstance(t *testing.T) {
	inShard(t, func(x *shown) {
		for minute := range 70 {
			at := x.now.Add(time.Duration(minute) * time.Minute)
			x.reportAt(0, at, float64(minute))
			x.views.Sample(at)
			x.views.Sample(at.Add(view.TrendEvery)) // as soon as this, it is not kept
		}
		now := x.now.Add(69 * time.Minute)
		all := x.views.Load("web-0-a", now)
		if len(all) != 60 || all[59] != (view.Load{At: now, CPU: 69, Memory: 40}) || all[0].CPU != 10 {
			t.Errorf("%d values: %+v", len(all), all)
		}
		if all := x.views.Load("web-1-a", now); len(all) > 11 { // its only report is as fresh for ten minutes
			t.Errorf("without reports: %+v", all)
		}
		x.reportAt(0, now.Add(time.Minute), 1e9) // an agent may say anything
		x.views.Sample(now.Add(time.Minute))
		if all := x.views.Load("web-0-a", now.Add(time.Minute)); all[len(all)-1].CPU != 100 {
			t.Errorf("without bounds: %+v", all[len(all)-1])
		}
		if _, err := x.st.Commit(x.t.Context(), store.Txn{Writes: []store.Write{
			store.Delete(x.keys.Instance("web-0-a")),
		}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		x.views.Sample(now.Add(2 * time.Minute))
		if all := x.views.Load("web-0-a", now.Add(2*time.Minute)); len(all) > 0 {
			t.Errorf("of an instance that is gone: %+v", all)
		}
	})
}

// Protected and busy instances are named, with until when.
//
// proves WEB-1, REC-13, BUSY-1
func TestWhatIsLeftAlone(t *testing.T) {
	inShard(t, func(x *shown) {
		x.group.Busy.File = "/run/busy"
		x.status(func(*store.Status) {})
		for n := range 6 {
			x.report(n, true, 0, store.CheckReport{Name: store.IdleCheck, Healthy: n > 1, Optional: true})
		}
		hour := &store.Timer{Start: x.now, For: store.Duration(time.Hour)}
		x.instance(3, "old", func(i *store.Instance) {
			i.Protected, i.Protection = store.ProtectHeal, &store.Protection{By: "ada", Why: "a dump", Ends: hour}
		})
		x.instance(0, "old", func(i *store.Instance) {
			i.Phase, i.Drain = store.Draining, &store.Drain{Busy: hour}
		})
		for _, n := range []int{0, 3} {
			x.report(n, true, 0, store.CheckReport{Name: store.IdleCheck, Healthy: n > 1, Optional: true})
		}
		v := x.see()
		end := x.now.Add(time.Hour)
		protected := []view.Protected{{ID: "web-3-a", By: "ada", Why: "a dump", Until: end, Heal: true}}
		if !slices.Equal(v.Protects, protected) {
			t.Errorf("protected: %+v", v.Protects)
		}
		if want := []view.Busy{{ID: "web-0-a", Until: end}, {ID: "web-1-a"}}; !slices.Equal(v.Busy, want) {
			t.Errorf("busy: %+v", v.Busy)
		}
	})
}

// A group shows the problem of its provider that other groups have as well.
//
// proves WEB-1, PROV-5
func TestAGroupShowsWhatItWaitsFor(t *testing.T) {
	inShard(t, func(x *shown) {
		refused := store.Blocked{
			Rule: "PROV-5", Kind: store.BlockedByRefusal, Work: store.WorkCreateMissing,
			Of: store.BlockedFacts{Name: "cloud", Count: 3, Text: "quota used up"},
		}
		x.status(func(s *store.Status) { s.Blocked = []store.Blocked{refused} })
		x.put(x.keys.Status("db"), store.Status{Schema: store.Schema, Group: "db", Blocked: []store.Blocked{refused}})
		var about []string
		for _, p := range x.see().Problems {
			if p.Rule == "PROV-5" {
				about = append(about, p.About)
			}
		}
		if !slices.Equal(about, []string{"cloud"}) {
			t.Errorf("the group has problems of %q, want its provider", about)
		}
	})
}

// What status says of webhooks, backups, extras and etcd's members, the page says too.
//
// proves WEB-1, WEB-3, DAY-3, REC-8
func TestProblemsOfTheShard(t *testing.T) {
	inShard(t, func(x *shown) {
		problems := func() string {
			v, _ := x.views.Shard(x.now)
			var all []string
			for _, p := range v.Problems {
				all = append(all, p.About+" "+p.Rule+" "+p.What)
			}
			return strings.Join(all, "\n")
		}
		if found := problems(); !strings.Contains(found, "it was never backed up") {
			t.Errorf("got %s", found)
		}
		x.put(x.keys.Backup(), store.Backup{Schema: store.Schema, At: x.now, By: "ada", To: "x"})
		x.put(x.keys.Webhook("chat"), store.Webhook{
			Schema: store.Schema, Name: "chat", Since: x.now.Add(-time.Hour), Why: "503",
		})
		x.put(x.keys.Of(store.KindExtras)+"web-9-z", store.Extra{Schema: store.Schema, Provider: "mem", Since: x.now})
		x.put(x.keys.Of(store.KindExtras)+"web-8-y", store.Extra{
			Schema: store.Schema, Provider: "mem", Ref: "copy-1", Foreign: true, Gone: true, Since: x.now,
		})
		ctx, stop := context.WithCancel(x.t.Context())
		go observe.Run(ctx, x.views, "coord-a", func(context.Context) (store.Members, error) {
			return store.Members{
				CertificateEnds: x.now.Add(time.Hour),
				All:             []store.Member{{Name: "one", Down: "connection refused"}, {Name: "two", Version: "3.7.1"}},
			}, nil
		})
		synctest.Wait()
		found := problems()
		for _, want := range []string{
			"webhook chat WEB-3 it has taken no event for 1h: 503",
			"1 machine has the shard's tag, no record and no agent: web-9-z",
			"PROV-4 1 machine has the tags of an instance without a record, not made by Leasehold and left alone: copy-1",
			"etcd one DAY-3 it does not answer", "coord-a DAY-3 its certificate for etcd ends",
		} {
			if !strings.Contains(found, want) {
				t.Errorf("%q is not among\n%s", want, found)
			}
		}
		if strings.Contains(found, "backed up") {
			t.Errorf("got %s", found)
		}
		stop()
		x.put(x.keys.Webhook("chat"), "nonsense")
		if _, err := x.st.Commit(x.t.Context(), store.Txn{Writes: []store.Write{
			store.Delete(x.keys.Of(store.KindExtras) + "web-9-z"),
		}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if found := problems(); strings.Contains(found, "webhook") || strings.Contains(found, "web-9-z") ||
			strings.Contains(found, "cannot be read") {
			t.Errorf("got %s", found)
		}
	})
}

// The time axis has what went on as bands: from the records where it goes on, from the journal
// where it is over, and from the spec where it is planned.
//
// proves WEB-1, SAFE-1, SAFE-2, ROLL-6, ROLL-7
func TestBandsOfTheAxis(t *testing.T) {
	inShard(t, func(x *shown) {
		ago := func(minutes int) time.Time { return x.now.Add(-time.Duration(minutes) * time.Minute) }
		group := func(at time.Time, rule string, kind store.CauseKind, count, limit int) {
			x.tell(at, store.JournalEntry{Rule: rule, Cause: store.Cause{Kind: kind, Count: count, Limit: limit}})
		}
		group(ago(50), "SAFE-2", store.CauseManyLost, 3, 6)
		group(ago(40), "SAFE-2", store.CauseFewLost, 0, 0)
		group(ago(30), "ROLL-7", store.CauseManyFail, 4, 2)
		group(ago(25), "ROLL-7", store.CauseManyFail, 1, 2)
		group(ago(20), "ROLL-1", store.CauseUpdated, 0, 0) // it began before the journal did
		grace := func(at time.Time, minutes int) {
			x.tell(at, store.JournalEntry{Rule: "SAFE-1", Cause: store.Cause{
				Kind: store.CauseDisturbed, For: store.Duration(time.Duration(minutes) * time.Minute),
			}})
		}
		grace(ago(45), 3)
		grace(ago(43), 4)                                   // it became longer
		grace(ago(1), 3)                                    // it goes on
		for n, by := range []string{"coord-a", "coord-b"} { // the second leader's grace is the shorter one
			x.tell(ago(36-n), store.JournalEntry{By: by, Rule: "SAFE-1", Cause: store.Cause{
				Kind: store.CauseDisturbed, For: store.Duration(time.Duration(6-4*n) * time.Minute),
			}})
		}
		from := x.now.Add(-10 * time.Minute)
		x.group.Windows = []store.Window{{From: from.Format("15:04"), For: store.Duration(5 * time.Minute)}}
		x.status(func(st *store.Status) { st.Storm = &store.Storm{Since: ago(5), Lost: 3, Of: 6} })
		x.put(x.keys.Shard(), store.Shard{
			Schema: store.Schema, ID: "x1", Name: "test", Settings: store.DefaultShardSettings(),
			Hold:   &store.Hold{At: ago(2), By: "ada", Why: "a drill"},
			Freeze: &store.Freeze{From: ago(15), To: x.now.Add(time.Hour), Why: "fair"},
		})
		a := x.views.Axis("web", time.Hour, 60, x.now)
		got := map[string][]store.Period{}
		for _, b := range a.Bands {
			got[b.Name] = b.Periods
		}
		for name, want := range map[string][]store.Period{
			"storm":   {{From: ago(50), To: ago(40)}, {From: ago(5), To: a.To}},
			"grace":   {{From: ago(45), To: ago(39)}, {From: ago(36), To: ago(33)}, {From: ago(1), To: a.To}},
			"breaker": {{From: ago(30), To: ago(25)}},
			"rolling": {{From: a.From, To: ago(20)}},
			"hold":    {{From: ago(2), To: a.To}},
			"freeze":  {{From: ago(15), To: a.To}},
			"window":  {{From: from.Truncate(time.Minute), To: from.Truncate(time.Minute).Add(5 * time.Minute)}},
		} {
			if !slices.Equal(got[name], want) {
				t.Errorf("%s: %v, want %v", name, got[name], want)
			}
		}
		later := x.views.Axis("web", time.Hour, 60, x.now.Add(30*time.Second))
		if !reflect.DeepEqual(later.Bands, a.Bands) {
			t.Errorf("what goes on moves within a column, so that the axis is sent again: %v", later.Bands)
		}
	})
}
