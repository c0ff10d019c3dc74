package evidence_test

import (
	"testing"

	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/store"
)

// limited puts a group with a spec in force.
func (w *world) limited(name, provider, team string, change ...func(*store.Group)) {
	g := spec(name)
	g.Provider, g.Labels = provider, map[string]string{"team": team}
	for _, c := range change {
		c(&g)
	}
	w.put(keys.Status(name), store.Status{Schema: store.Schema, Group: name, Accepted: &g})
}

// of puts an instance of a provider.
func (w *world) of(group, id, provider string, phase store.Phase, managed bool) {
	w.put(keys.Instance(id), store.Instance{
		Schema: store.Schema, ID: id, Group: group, Phase: phase, Managed: managed, Slot: -1,
		Spec: store.InstanceSpec{Provider: provider},
	})
}

// Every instance of the shard counts, whatever its phase is, and those on demand too. A label is
// the group's, a provider the instance's own: the group may have another one by now.
//
// proves CAP-1
func TestWhatCountsAgainstLimits(t *testing.T) {
	w := newWorld(t)
	w.limited("web", "mem", "shop")
	w.limited("db", "mem", "data")
	phases := []store.Phase{
		store.Pending, store.Creating, store.Booting, store.Checking, store.Running, store.Stopping, store.Starting,
		store.Draining, store.Deleting, store.Finished,
	}
	for _, p := range phases {
		w.of("web", "web-"+string(p), "mem", p, true)
	}
	w.of("web", "web-by-order", "mem", store.Running, false)
	w.of("web", "web-before", "ec2", store.Running, true)
	w.of("db", "db-0", "mem", store.Running, true)
	w.of("lost", "lost-0", "ec2", store.Running, true) // its group's key vanished
	if got := evidence.Limits(w.content); got != nil {
		t.Errorf("without limits: %+v", got)
	}

	s := store.DefaultShardSettings()
	s.LimitInstances, s.LimitByProvider, s.LimitByLabel = 100, "mem:50,ec2:0,lxd:5", "team=shop:40,team=data:9"
	w.put(keys.Shard(), store.Shard{Schema: store.Schema, ID: "s", Settings: s})
	type use struct{ most, used int }
	want := map[string]use{
		"limit_instances":          {100, len(phases) + 4},
		"limit_by_provider mem":    {50, len(phases) + 2},
		"limit_by_provider lxd":    {5, 0},
		"limit_by_label team=shop": {40, len(phases) + 2},
		"limit_by_label team=data": {9, 1},
	}
	got := evidence.Limits(w.content)
	for _, l := range got {
		if (use{l.Most, l.Used}) != want[l.Name] {
			t.Errorf("%s: %d of %d, want %+v", l.Name, l.Used, l.Most, want[l.Name])
		}
	}
	if len(got) != len(want) { // 0 means that there is none
		t.Errorf("%d limits, want %d: %+v", len(got), len(want), got)
	}
}

// Slots whose instance has left keep their room, unless nothing is made for them now.
//
// proves CAP-1
func TestRoomIsKeptForSlotsThatWait(t *testing.T) {
	w := newWorld(t)
	s := store.DefaultShardSettings()
	s.LimitInstances, s.LimitByProvider, s.LimitByLabel = 100, "mem:50,lxd:5", "team=shop:40"
	w.put(keys.Shard(), store.Shard{Schema: store.Schema, ID: "s", Settings: s})
	w.limited("web", "mem", "shop")
	w.limited("db", "lxd", "data")
	w.limited("off", "mem", "shop", func(g *store.Group) { g.Stopped = true })
	w.limited("rest", "mem", "shop", func(g *store.Group) { g.Paused = true })
	w.limited("end", "mem", "shop", func(g *store.Group) { g.Deleting = true })
	vacant := func(group string, number int, change ...func(*store.Slot)) {
		sl := store.Slot{
			Schema: store.Schema, Group: group, Number: number, Vacated: &store.Vacated{Instance: "gone"},
		}
		for _, c := range change {
			c(&sl)
		}
		w.put(keys.Slot(group, number), sl)
	}
	for _, group := range []string{"web", "db", "off", "rest", "end"} {
		vacant(group, 0)
	}
	vacant("web", 1)
	vacant("web", 2, func(sl *store.Slot) { sl.Vacated = nil })
	vacant("web", 3, func(sl *store.Slot) { sl.Errored = "it failed too often" })
	want := map[string]int{
		"limit_instances": 3, "limit_by_provider mem": 2, "limit_by_provider lxd": 1, "limit_by_label team=shop": 2,
	}
	for _, l := range evidence.Limits(w.content) {
		if l.Vacant != want[l.Name] || l.Used != 0 {
			t.Errorf("%s: room for %d slots, and %d used, want %d", l.Name, l.Vacant, l.Used, want[l.Name])
		}
	}
}
