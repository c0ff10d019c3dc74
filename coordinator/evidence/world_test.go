package evidence_test

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
	keys  = store.KeysOf("test")
	epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// world is a shard's content, and a term's evidence on it, in virtual time.
type world struct {
	t         testing.TB
	now       time.Time
	content   *cache.Content
	evidence  *evidence.Evidence
	validated int
	suspects  []string
	woken     int
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, now: epoch, content: cache.NewContent()}
	w.put(keys.Shard(), store.Shard{Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings()})
	return w
}

// lead begins a term on what is there.
func (w *world) lead() {
	w.validated = 0
	var e *evidence.Evidence
	e = evidence.New(evidence.Config{
		Keys: keys, Capabilities: map[string]provider.Capabilities{"mem": {
			Zones:       []string{"a", "b"},
			CallTimeout: time.Minute, Consistency: time.Second,
		}},
		SessionTTL: 5 * time.Second, Seed: 7, Now: func() time.Time { return w.now },
		Jitter:  func(most time.Duration) time.Duration { return most },
		Wake:    func() { e.NextDue(); w.woken++ }, // the woken leader may ask at once
		Suspect: func(p string) { e.NextDue(); w.suspects = append(w.suspects, p) },
		Validate: func(_ string, g store.Group) string {
			w.validated++
			return g.Labels["problem"]
		},
	})
	w.evidence = e
	e.Listed(w.content)
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// takeAll takes turns until a full pass is through.
func (w *world) takeAll() []string {
	var all []string
	for {
		got := w.evidence.TakeDirty(w.content.Revision, w.now)
		if all = append(all, got...); len(got) == 0 {
			return all
		}
	}
}

func (w *world) put(key string, rec any) store.Revision {
	return w.event(store.Event{KV: store.KV{Key: key, Value: store.Encode(rec)}})
}

func (w *world) remove(key string) {
	w.event(store.Event{KV: store.KV{Key: key}, Deleted: true})
}

// event makes a change, of which the term hears if there is one.
func (w *world) event(e store.Event) store.Revision {
	w.t.Helper()
	rev := w.content.Revision + 1
	e.KV.Created, e.KV.Modified = rev, rev
	change, ok := w.content.Apply(keys, e)
	if !ok {
		w.t.Fatalf("%s is no part of the cache", e.KV.Key)
	}
	w.content.Revision = rev
	if w.evidence != nil {
		w.evidence.Changed(w.content, []cache.Change{change})
	}
	return rev
}

func spec(name string) store.Group {
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = name, 3, "mem"
	g.Complete()
	return g
}

// run puts an instance that has been running for an hour, with an agent that reports that it is
// healthy.
func (w *world) run(group, id string) store.Instance {
	s := spec(group)
	rec := store.Instance{
		Schema: store.Schema, ID: id, Group: group, Phase: store.Running, Managed: true, Spec: s.InstanceSpec(),
		Created: w.now.Add(-2 * time.Hour), Since: w.now.Add(-time.Hour),
	}
	w.put(keys.Instance(id), rec)
	w.put(keys.Alive(id), store.Alive{Schema: store.Schema, Instance: id, BootID: "boot", State: store.StreamOpen})
	w.report(id, "boot", true)
	return rec
}

func (w *world) report(id, boot string, healthy bool) {
	w.put(keys.Report(id), store.Report{Schema: store.Schema, Instance: id, BootID: boot, Healthy: healthy})
}

func (w *world) group(name string) plan.Group {
	w.t.Helper()
	s := w.evidence.Snapshot(w.content, []string{name})
	if len(s.Groups) != 1 {
		w.t.Fatalf("groups are %+v", s.Groups)
	}
	return s.Groups[0]
}

func (w *world) instance(group, id string) plan.Instance {
	w.t.Helper()
	for _, in := range w.group(group).Instances {
		if in.Record.ID == id {
			return in
		}
	}
	w.t.Fatalf("there is no %s", id)
	return plan.Instance{}
}

// shard puts so many groups with so many instances each into a world whose order of maps differs
// each time.
func (w *world) shard(groups, each int) {
	for g := range groups {
		name := fmt.Sprintf("g%04d", g)
		w.put(keys.Group(name), spec(name))
		for i := range each {
			w.run(name, fmt.Sprintf("%s-%04d", name, i))
			w.put(keys.Slot(name, i), store.Slot{Schema: store.Schema})
		}
	}
}
