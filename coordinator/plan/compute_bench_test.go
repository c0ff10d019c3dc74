package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// crowd is a snapshot of a group of so many running instances, of which every n-th has some
// trouble.
func crowd(size, every int, trouble func(*Instance)) Snapshot {
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = "web", cloud, size
	g.Budget.MaxExpansion = 100
	g.Complete()
	keys := store.KeysOf("test")
	s := Snapshot{Keys: keys, Revision: 100, Zones: map[string][]string{cloud: {"a", "b", "c"}}}
	s.Shard.Key, s.Shard.Modified = keys.Shard(), 1
	group := Group{Name: "web", Spec: Spec{Key: keys.Group("web"), Modified: 2, Group: g}}
	group.Status.Key = keys.Status("web")
	template := g.InstanceSpec().TemplateHash()
	for i := range size {
		id := fmt.Sprintf("web-%06d", i)
		var in Instance
		in.Key, in.Modified, in.Created = keys.Instance(id), 3, store.Revision(i+3)
		in.Record = store.Instance{
			ID: id, Group: "web", Slot: i, Phase: store.Running, Managed: true, Called: true, Spec: g.InstanceSpec(),
			Template: template,
			Zone:     string(rune('a' + i%3)),
		}
		in.Alive.Key, in.Alive.Modified = keys.Alive(id), 4
		in.Alive.Record = store.Alive{State: store.StreamOpen, BootID: "b"}
		in.Report.Key, in.Report.Modified = keys.Report(id), 5
		in.Report.Record = store.Report{BootID: "b", Healthy: true}
		in.Sighting = Sighting{Begun: epoch, Listed: true, State: "running", Times: 5}
		in.PhaseStart = epoch
		if every > 0 && i%every == 0 {
			trouble(&in)
		}
		group.Instances = append(group.Instances, in)
		slot := store.Versioned[store.Slot]{
			Key: keys.Slot("web", i), Modified: 3,
			Record: store.Slot{Schema: store.Schema, Group: "web", Number: i},
		}
		group.Slots = append(group.Slots, slot)
	}
	s.Groups = []Group{group}
	return s
}

func dies(in *Instance) {
	in.Sighting.Down, in.Sighting.State = true, "stopped"
	in.Alive.Record.State = store.StreamLost
}

func fails(in *Instance) { in.Report.Record.Healthy = false }

func BenchmarkCompute(b *testing.B) {
	for _, c := range []struct {
		name        string
		size, every int
		trouble     func(*Instance)
		want        int // instances
	}{
		{"1000/healthy", 1_000, 0, nil, 1_000},
		{"10000/healthy", 10_000, 0, nil, 10_000},
		{"1000/100_unhealthy", 1_000, 10, fails, 1_000},
		{"1000/100_dead", 1_000, 10, dies, 1_000},
		{"1000/all_unhealthy", 1_000, 1, fails, 1_000},
		{"10000/all_dead", 10_000, 1, dies, 10_000},
		{"10000/down_to_0", 10_000, 0, nil, 0},
		{"10000/up_from_5000", 5_000, 0, nil, 10_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := crowd(c.size, c.every, c.trouble)
			s.Groups[0].Spec.Group.Size = c.want
			b.ReportAllocs()
			actions := 0
			for b.Loop() {
				actions = len(Compute(s, epoch.Add(time.Minute)).Actions)
			}
			b.ReportMetric(float64(actions), "actions")
		})
	}
}
