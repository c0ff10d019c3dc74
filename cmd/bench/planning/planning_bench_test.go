package planning

import (
	"testing"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// perCPU reports processor time beside the time that passed, for machines with other work.
func perCPU(b *testing.B, do func()) {
	b.Helper()
	b.ReportAllocs()
	var all Cost
	for b.Loop() {
		all = all.plus(costOf(do))
	}
	b.ReportMetric(float64(all.CPU.Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkRead read the records of 1,000 instances in 10 groups, five keys each: a hundredth of
// what a new leader of 100,000 does.
func BenchmarkRead(b *testing.B) {
	var kvs []store.KV
	for page := range (Size{Instances: 1000, Groups: 10}).Records {
		kvs = append(kvs, page...)
	}
	perCPU(b, func() {
		if c := cache.FromListing(keys, store.Listing{KVs: kvs, Revision: 1000}); len(c.Instances) != 1000 ||
			len(c.Unreadable) > 0 {
			b.Fatalf("%d instances, unreadable %v", len(c.Instances), c.Unreadable)
		}
	})
}

// BenchmarkChange has each kind of change happen in a group of 100 and one of 1,000, from the event
// to the plan.
func BenchmarkChange(b *testing.B) {
	for name, size := range map[string]Size{
		"group_of_100":  {Instances: 1000, Groups: 10},
		"group_of_1000": {Instances: 3000, Groups: 3},
	} {
		l := newLeader()
		for page := range size.Records {
			l.read(page)
		}
		l.begin()
		l.seesMachines()
		l.settle()
		for i, k := range kinds() {
			b.Run(name+"/"+[]string{"numbers", "failed_check", "lost_lease", "scaled", "rolled"}[i],
				func(b *testing.B) {
					trials := []*trial{newTrial(l, 0, size), newTrial(l, 1, size)}
					b.ReportAllocs()
					c := measureChange(k, trials, b.N, func(int) {})
					b.ReportMetric(float64(c.Each.CPU.Nanoseconds()), "cpu-ns/op")
					b.ReportMetric(float64(c.Each.Allocations), "allocs/op")
					b.ReportMetric(float64(c.Each.Bytes), "B/op")
					b.ReportMetric(0, "ns/op") // would count what comes between the changes
				})
		}
	}
}

// BenchmarkProviderList takes up what a provider lists of 10,000 instances, as it comes every
// provider_poll.
func BenchmarkProviderList(b *testing.B) {
	l := newLeader()
	for page := range (Size{Instances: 10_000, Groups: 10}).Records {
		l.read(page)
	}
	l.begin()
	list := l.machines()
	perCPU(b, func() { l.evidence.ListedBy(machines, l.now, list, l.content) })
}
