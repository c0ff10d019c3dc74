package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

var (
	keys  = store.KeysOf("bench")
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// shard is one of many groups that are as wanted, in a cache and in a term's evidence on it: what
// a change has to go through.
type shard struct {
	b        *testing.B
	content  *cache.Content
	evidence *evidence.Evidence
	groups   []string
	changes  int
}

// shards are made once: a large one takes a while.
var shards = map[int]*shard{}

const each = 100 // instances in a group

func shardOf(b *testing.B, groups int) *shard {
	b.Helper()
	if s := shards[groups]; s != nil {
		s.b = b
		return s
	}
	s := &shard{b: b, content: cache.NewContent()}
	s.put(keys.Shard(), store.Shard{Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings()})
	var machines []provider.Machine
	for g := range groups {
		name := fmt.Sprintf("g%04d", g)
		s.groups = append(s.groups, name)
		machines = append(machines, s.fill(name)...)
	}
	s.evidence = evidence.New(evidence.Config{
		Keys: keys, Capabilities: map[string]provider.Capabilities{"mem": {
			Zones:       []string{"a", "b", "c"},
			CallTimeout: time.Minute, Consistency: time.Second,
		}},
		SessionTTL: 5 * time.Second, Seed: 7, Now: func() time.Time { return epoch.Add(time.Hour) },
		Jitter: func(most time.Duration) time.Duration { return most },
		Wake:   func() {}, Suspect: func(string) {}, Validate: func(string, store.Group) string { return "" },
	})
	s.evidence.Listed(s.content)
	s.evidence.ListedBy("mem", epoch, machines, s.content)
	s.settle()
	shards[groups] = s
	return s
}

// fill puts a group whose instances all run and are healthy.
func (s *shard) fill(name string) (machines []provider.Machine) {
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = name, each, "mem"
	g.Complete()
	s.put(keys.Group(name), g)
	for i := range each {
		id := fmt.Sprintf("%s-%d-bcdfgh", name, i)
		spec := g.InstanceSpec()
		s.put(keys.Slot(name, i), store.Slot{Schema: store.Schema, Group: name, Number: i})
		s.put(keys.Instance(id), store.Instance{
			Schema: store.Schema, ID: id, Group: name, Slot: i, Phase: store.Running, Managed: true, Called: true,
			Since: epoch, Created: epoch,
			Spec: spec, Template: spec.TemplateHash(), Config: spec.ConfigHash(), Zone: string(rune('a' + i%3)),
			Ref: "ref-" + id,
		})
		s.put(keys.Alive(id), store.Alive{
			Schema: store.Schema, Instance: id, BootID: "boot", State: store.StreamOpen,
			Replica: "r1", Epoch: 1,
		})
		s.report(id, spec.ConfigHash(), true)
		machines = append(machines, provider.Machine{
			Instance: id, Group: name, State: provider.StateRunning,
			Ref: "ref-" + id,
		})
	}
	return machines
}

func (s *shard) report(id, config string, healthy bool) {
	r := store.Report{Schema: store.Schema, Instance: id, BootID: "boot", Healthy: healthy, Config: config}
	if !healthy {
		r.Why = "checks 0/1"
	}
	s.put(keys.Report(id), r)
}

func (s *shard) put(key string, record any) {
	s.apply(store.Event{KV: store.KV{Key: key, Value: store.Encode(record)}})
}

func (s *shard) apply(e store.Event) {
	s.b.Helper()
	rev := s.content.Revision + 1
	e.KV.Created, e.KV.Modified = rev, rev
	change, ok := s.content.Apply(keys, e)
	if !ok {
		s.b.Fatalf("%s is no part of the cache", e.KV.Key)
	}
	s.content.Revision = rev
	if s.evidence != nil {
		s.evidence.Changed(s.content, []cache.Change{change})
	}
}

// settle carries plans out until there is nothing to do, and says so if that does not come.
func (s *shard) settle() {
	for range 5 {
		p := s.plan(s.groups)
		if len(p.Actions) == 0 {
			for len(s.evidence.TakeDirty(s.content.Revision, epoch)) > 0 { // a full pass comes bit by bit
			}
			return
		}
		for _, a := range p.Actions {
			for _, w := range append(plan.GoneWrites([]*plan.Action{&a}, 0), a.Writes...) {
				s.apply(store.Event{KV: store.KV{Key: w.Key, Value: w.Value}, Deleted: w.Delete})
			}
		}
	}
	s.b.Fatalf("the shard does not come to rest: %+v", s.plan(s.groups).Actions[0])
}

func (s *shard) plan(groups []string) plan.Plan {
	return plan.Compute(s.evidence.Snapshot(s.content, groups), epoch.Add(time.Hour))
}

// change has one instance turn unhealthy or healthy and plans what that marks: what the leader does
// for a report. It returns the number of actions.
func (s *shard) change(healthy bool) int {
	name := s.groups[len(s.groups)/2]
	s.changes++
	id := fmt.Sprintf("%s-%d-bcdfgh", name, 50)
	s.report(id, s.content.Instances[id].Record.Config, healthy)
	p := s.plan(s.evidence.TakeDirty(s.content.Revision, epoch))
	s.evidence.Tallied(p.Tallies)
	return len(p.Actions)
}

// BenchmarkShard plans 100,000 instances in 1,000 groups from scratch: what a new leader does
// first.
func BenchmarkShard(b *testing.B) {
	s := shardOf(b, 1000)
	all := s.evidence.Snapshot(s.content, s.groups)
	for _, c := range []struct {
		name string
		do   func() plan.Plan
	}{
		{"snapshot_and_plan", func() plan.Plan { return s.plan(s.groups) }},
		{"plan", func() plan.Plan { return plan.Compute(all, epoch.Add(time.Hour)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p := c.do(); p.Judgments.Len() != 1000*each || len(p.Actions) > 0 {
					b.Fatalf("%d judgments, %d actions", p.Judgments.Len(), len(p.Actions))
				}
			}
		})
	}
}

// BenchmarkChange takes one change of one instance in a group of 100 up, in a shard of 100,000,
// from the event to the plan.
func BenchmarkChange(b *testing.B) {
	s := shardOf(b, 1000)
	for name, healthy := range map[string]bool{"turned_unhealthy": false, "turned_healthy": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s.change(!healthy)
				b.StartTimer()
				if n := s.change(healthy); !healthy && n == 0 {
					b.Fatal("nothing is done about it")
				}
			}
		})
	}
	name := s.groups[:1]
	alone := s.evidence.Snapshot(s.content, name)
	for part, do := range map[string]func(){
		"snapshot": func() { s.evidence.Snapshot(s.content, name) },
		"plan":     func() { plan.Compute(alone, epoch.Add(time.Hour)) },
	} {
		b.Run(part+"_alone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}

// BenchmarkChangeBySizeOfShard takes the same change up in shards of 10, 100 and 1,000 groups, in
// turn, so that the ratio tells whether its cost grows with the shard.
func BenchmarkChangeBySizeOfShard(b *testing.B) {
	sizes := []int{10, 100, 1000}
	spent := map[int]time.Duration{}
	for _, n := range sizes {
		shardOf(b, n)
	}
	healthy, rounds := false, 0
	for b.Loop() {
		for _, n := range sizes {
			begun := time.Now()
			shards[n].change(healthy)
			spent[n] += time.Since(begun)
		}
		healthy = !healthy
		rounds++
	}
	for _, n := range sizes {
		b.ReportMetric(float64(spent[n].Microseconds())/float64(rounds), fmt.Sprintf("µs/%d_groups", n))
	}
	b.ReportMetric(float64(spent[1000])/float64(spent[10]), "ratio_1000/10")
}
