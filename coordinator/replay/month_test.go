package replay

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// month is a past of 500 instances in groups of one size, each of which fails once in two weeks. If
// the groups follow their load, that goes up and down each day.
func month(span time.Duration, groups int, scaled bool) (review.Input, []store.Group) {
	each := 500 / groups
	var all []store.Group
	for i := range groups {
		all = append(all, group(fmt.Sprintf("g%d", i), each))
	}
	p := newPast(span, all...)
	for i := range int(span/(40*time.Minute)) - 2 {
		g := all[i%groups]
		p.dies(g.Name, (i/groups)%each, time.Duration(i)*40*time.Minute+time.Hour, time.Duration(20+i%40)*time.Second)
	}
	in := p.finish(all...)
	if !scaled {
		return in, all
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range all {
		targets := []store.ScaleTarget{{Metric: store.MetricCPU, Value: 60}}
		all[i].Scale = &store.ScaleSpec{Min: new(each / 4), Max: 2 * each, Targets: targets}
		all[i].Complete()
		for hour := range int(span / time.Hour) {
			l := store.Load{Group: all[i].Name, Hour: begin.Add(time.Duration(hour) * time.Hour)}
			for minute := 0; minute < 60; minute += 5 {
				day := 1 - math.Cos(2*math.Pi*(float64(hour+i)+float64(minute)/60)/24)
				l.Points = append(l.Points, store.LoadPoint{
					Minute: minute, Run: float64(each), CPU: (30 + 15*day) * (0.97 + 0.06*rng.Float64()), Memory: 30,
				})
			}
			in.Loads = append(in.Loads, l)
		}
	}
	return in, all
}

var spanFlag = flag.Duration("span", 30*24*time.Hour, "how much BenchmarkMonth plays")

// BenchmarkMonth plays 30 days of a shard with 500 instances, twice.
//
// proves AUTO-4
func BenchmarkMonth(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // as the command has it
	for _, shape := range []struct {
		name   string
		groups int
		scaled bool
	}{
		{"20 groups of 25", 20, false},
		{"20 groups of 25 that follow load", 20, true},
		{"5 groups of 100 that follow load", 5, true},
	} {
		b.Run(shape.name, func(b *testing.B) {
			in, groups := month(*spanFlag, shape.groups, shape.scaled)
			for b.Loop() {
				began := processorTime(b)
				res, err := Play(b.Context(), Input{
					Past: in, Groups: groups, Control: groups, Settings: store.DefaultShardSettings(), Seed: 1,
					Progress: func(time.Duration) {},
				})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric((processorTime(b) - began).Seconds(), "cpu-s/op")
				b.ReportMetric(float64(res.Groups[0].Control.Replaced), "replaced")
				b.ReportMetric(float64(res.Groups[0].Control.SizeChanges), "size-changes")
			}
		})
	}
}

// processorTime is what the process has used so far: the machine may be shared.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
