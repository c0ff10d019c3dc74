package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/store"
)

// randomPast is a past of a few hours of some groups: loads with gaps, failures, rolls and edits,
// under policies with schedules, windows and budgets of all kinds.
func randomPast(seed uint64) (t *tape, groups []store.Group, settings store.ShardSettings) {
	r := rand.New(rand.NewPCG(seed, 7))
	length := time.Duration(3+r.IntN(6)) * time.Hour
	t = &tape{
		from: begin, to: begin.Add(length), first: map[string]int{}, days: map[string][]store.Day{},
		outside: map[query.Key][]reading{},
	}
	settings = store.DefaultShardSettings()
	settings.CreateRate = 20
	names := map[string]bool{}
	for i := range 1 + r.IntN(4) {
		g := randomGroup(r, i)
		groups, names[g.Name] = append(groups, g), true
		t.first[g.Name] = g.Size
		randomLoads(r, t, &g)
		for range r.IntN(2 * int(length/time.Hour)) {
			kinds := []store.FailureKind{
				store.FailedDead, store.FailedDead, store.FailedLost, store.FailedSilent, store.FailedChecks, store.FailedNotice,
			}
			f := &store.DayFailure{Kind: kinds[r.IntN(len(kinds))], Slot: r.IntN(g.Size)}
			if f.Kind != store.FailedDead {
				f.For = store.Duration(r.IntN(300)) * store.Duration(time.Second)
			}
			t.add(event{at: sometime(r, length), group: g.Name, failure: f})
		}
		for range r.IntN(3) {
			t.add(event{at: sometime(r, length), group: g.Name, roll: true})
		}
		if g.Scale == nil && r.IntN(2) == 0 {
			t.add(event{at: sometime(r, length), group: g.Name, size: 1 + r.IntN(12)})
		}
	}
	if r.IntN(3) == 0 { // many fail together
		at := sometime(r, length)
		for slot := range 10 {
			t.add(event{
				at: at.Add(time.Duration(r.IntN(5000)) * time.Millisecond), group: groups[0].Name,
				failure: &store.DayFailure{Kind: store.FailedLost, Slot: slot, For: store.Duration(10 * time.Minute)},
			})
		}
	}
	t.silences(names)
	slices.SortStableFunc(t.events, func(a, b event) int { return a.at.Compare(b.at) })
	return t, groups, settings
}

func sometime(r *rand.Rand, length time.Duration) time.Time {
	return begin.Add(time.Duration(r.Int64N(int64(length))))
}

func randomGroup(r *rand.Rand, i int) store.Group {
	g := group(fmt.Sprintf("g%d", i), 2+r.IntN(14))
	if r.IntN(4) > 0 {
		g.Template.Zones = []string{"a", "b"}
	}
	if r.IntN(4) == 0 {
		g.Windows = []store.Window{{From: fmt.Sprintf("%02d:30", r.IntN(4)), For: store.Duration(time.Hour)}}
	}
	if r.IntN(5) == 0 {
		g.Rollout.Strategy = store.StrategyOpportunistic
	}
	if r.IntN(3) == 0 {
		g.Drain.Hook, g.Drain.Timeout = []string{"true"}, store.Duration(30*time.Second)
	}
	if r.IntN(6) == 0 {
		g.Expiry.EligibleAge = new(store.Duration(90 * time.Minute))
	}
	if r.IntN(5) > 0 {
		g.Scale = randomScale(r, g.Size)
	}
	g.Complete()
	return g
}

func randomScale(r *rand.Rand, size int) *store.ScaleSpec {
	s := &store.ScaleSpec{Min: new(1 + r.IntN(3)), Max: 2 * size}
	for _, t := range []store.ScaleTarget{
		{Metric: store.MetricCPU, Value: 60},
		{Metric: store.MetricNetwork, Value: 5},
		{Metric: store.MetricMemory, Value: 60},
		{From: "queue", Value: 100},
	} {
		if t.Metric == store.MetricCPU || r.IntN(4) == 0 {
			s.Targets = append(s.Targets, t)
		}
	}
	minutes := func(n int) store.Duration { return store.Duration(n) * store.Duration(time.Minute) }
	if r.IntN(3) == 0 {
		s.Down.Window = new(minutes(1 + r.IntN(15)))
	}
	if r.IntN(3) == 0 {
		s.Up.Window = minutes(1 + r.IntN(4))
	}
	if r.IntN(3) == 0 {
		s.Warmup = new(minutes(r.IntN(3)))
	}
	if r.IntN(6) == 0 {
		s.Mode = store.ScaleAdvise
	}
	if r.IntN(3) == 0 {
		s.Schedule = []store.ScaleChange{
			{Cron: fmt.Sprintf("%d 1 * * *", r.IntN(60)), Min: new(size)},
			{Cron: fmt.Sprintf("%d 3 * * *", r.IntN(60)), Max: new(size), Min: new(1)},
		}
	}
	return s
}

// randomLoads has a load go up and down, with times that nothing is known of.
func randomLoads(r *rand.Rand, t *tape, g *store.Group) {
	level, outside := 50.0, 100*float64(g.Size)
	known, gaps := true, r.IntN(3) == 0
	for at := t.from; at.Before(t.to); at = at.Add(loadPoint) {
		if gaps && r.IntN(20) == 0 {
			known = !known
		}
		level = min(95, max(3, level+20*r.Float64()-10))
		outside = max(0, outside*(0.8+0.4*r.Float64()))
		p := store.LoadPoint{Run: float64(g.Size), Outside: map[string]float64{"queue": outside}}
		if known {
			p.CPU, p.Memory, p.Network = level, cmp.Or(r.Float64(), 0.5)*70, level/10
		}
		t.point(g.Name, p, at, loadPoint)
	}
}
