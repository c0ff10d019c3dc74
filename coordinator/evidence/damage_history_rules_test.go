package evidence_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// An unreadable key is looked up in etcd's history once for each of its values, and only where
// nothing is remembered of it. What is found counts until the key changes.
//
// proves SAFE-16
func TestWhatIsLookedUpInTheHistory(t *testing.T) {
	w := newWorld(t)
	w.recorded(2, "web-0-bbbbbb")
	w.put(keys.Group("db"), spec("db"))
	w.put(keys.Slot("web", 0), store.Slot{Schema: store.Schema, Group: "web", Number: 0})
	w.lead()
	wanted := func() (out []string) {
		for _, s := range w.evidence.ToRecall(w.content) {
			if s.Modified != w.content.Spoiled[s.Key].Modified {
				t.Errorf("%s is looked up at revision %d", s.Key, s.Modified)
			}
			out = append(out, strings.TrimPrefix(s.Key, keys.Prefix()))
		}
		return out
	}
	if got := wanted(); len(got) != 0 {
		t.Errorf("nothing is unreadable, and looked up is %q", got)
	}
	for _, key := range []string{keys.Instance("web-0-bbbbbb"), keys.Status("web"), keys.Slot("web", 0)} {
		w.spoil(key) // it was read before
	}
	for _, key := range []string{keys.Alive("web-0-bbbbbb"), keys.Report("web-0-bbbbbb"), keys.Shard()} {
		w.spoil(key) // nothing of its past matters, or it is remembered
	}
	if got := wanted(); len(got) != 0 {
		t.Errorf("what was read before is looked up: %q", got)
	}
	for _, key := range []string{
		keys.Slot("web", 7), keys.Status("db"), keys.Instance("x"),
		keys.Instance("web-5-bbbbbb"), keys.Instance("web-6-bbbbbb"),
	} {
		w.spoil(key)
	}
	w.evidence.Snapshot(w.content, []string{""})
	all := []string{"instances/web-5-bbbbbb", "instances/web-6-bbbbbb", "instances/x", "slots/web/7", "status/db"}
	if got := wanted(); !slices.Equal(got, all) {
		t.Fatalf("looked up are %q, want %q", got, all)
	}
	for _, s := range w.evidence.ToRecall(w.content) {
		var kv store.KV // nothing is known any more
		switch s.Key {
		case keys.Instance("x"):
			kv = store.KV{
				Key: s.Key, Modified: 3,
				Value: store.Encode(store.Instance{Schema: store.Schema, Group: "db", Slot: 2, Managed: true}),
			}
		case keys.Instance("web-5-bbbbbb"):
			kv = store.KV{
				Key: s.Key, Modified: 4,
				Value: store.Encode(store.Instance{Schema: store.Schema, Group: "web", Slot: -1}),
			}
		case keys.Instance("web-6-bbbbbb"):
			kv = store.KV{Key: s.Key, Modified: 6, Value: []byte("torn")}
		case keys.Slot("web", 7):
			kv = store.KV{Key: s.Key, Modified: 5, Value: []byte("torn")}
		}
		w.takeAll()
		w.evidence.Recalled(s, kv)
		kind, _, _ := keys.Split(s.Key)
		if dirty := w.takeAll(); kind != store.KindInstances && (!slices.Contains(dirty, "") || len(dirty) != 2) {
			t.Errorf("%s was looked up: planned are %q", s.Key, dirty)
		}
	}
	if got := wanted(); len(got) != 0 {
		t.Errorf("looked up again are %q", got)
	}
	find := func(id string) *store.Damaged {
		for _, d := range w.evidence.Snapshot(w.content, []string{""}).Damaged {
			if d.Instance == id {
				return &d
			}
		}
		return nil
	}
	if d := find("x"); d == nil || d.Slot == nil || *d.Slot != 2 || d.Last != 3 {
		t.Errorf("the history told of x, and damaged is %+v", d)
	}
	if d := find("web-5-bbbbbb"); d == nil || d.Slot != nil || !d.OnDemand || d.Last != 4 {
		t.Errorf("the history told of one on demand, and damaged is %+v", d)
	}
	if d := find("web-6-bbbbbb"); d == nil || d.Slot == nil || *d.Slot != 6 || d.Last != 0 {
		t.Errorf("the history told nothing, and damaged is %+v", d)
	}
	w.spoil(keys.Instance("x"))
	if got := wanted(); !slices.Equal(got, []string{"instances/x"}) {
		t.Errorf("it is torn again, and looked up are %q", got)
	}
	if d := find("x"); d != nil {
		t.Errorf("nothing is known of what is torn by now, and damaged is %+v", d)
	}
}

// etcd's history is kept while something is damaged, or the shard is on hold for it.
//
// proves SAFE-15
func TestWhyTheHistoryIsNeeded(t *testing.T) {
	shard := func(h *store.Hold) store.Shard {
		return store.Shard{Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings(), Hold: h}
	}
	for name, test := range map[string]struct {
		do   func(w *world)
		want string
	}{
		"nothing":           {func(*world) {}, ""},
		"an unreadable key": {func(w *world) { w.spoil(keys.Report("web-0-bbbbbb")) }, "(1)"},
		"a lost record":     {func(w *world) { w.remove(keys.Instance("web-0-bbbbbb")) }, "(1)"},
		"a lost and an unreadable one": {func(w *world) {
			w.remove(keys.Instance("web-0-bbbbbb"))
			w.spoil(keys.Report("web-1-bbbbbb"))
		}, "(2)"},
		"what agents tell of": {func(w *world) {
			w.stray("a", "web", 5)
			w.stray("b", "web", 6)
			w.stray("c", "web", 7)
		}, "(3)"},
		"a hold": {func(w *world) { w.put(keys.Shard(), shard(&store.Hold{By: "ops"})) }, ""},
		"a hold for damage": {
			func(w *world) { w.put(keys.Shard(), shard(&store.Hold{Damage: 1})) },
			"on hold",
		},
	} {
		w := newWorld(t)
		w.recorded(2, "web-0-bbbbbb", "web-1-bbbbbb")
		w.lead()
		test.do(w)
		w.group("web")
		if got := w.evidence.Damaged(w.content); got == "" != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q in it", name, got, test.want)
		}
	}
}

// The count in the status tells of records of which nothing else is known: less those that are
// there, deletions on purpose since, and records of which something else is known.
//
// proves SAFE-15
func TestWhatTheCountSays(t *testing.T) {
	for name, test := range map[string]struct {
		counted int
		do      func(w *world)
		want    int // records of which nothing else is known
	}{
		"all are there":                         {2, func(*world) {}, 0},
		"there are more by now":                 {1, func(*world) {}, 0},
		"one is missing":                        {3, func(*world) {}, 1},
		"two are missing":                       {4, func(*world) {}, 2},
		"one was deleted before it was counted": {3, func(w *world) { w.note("before", 1) }, 1},
		"one was deleted as it was counted":     {3, func(w *world) { w.note("then", 2) }, 1},
		"one was deleted since":                 {3, func(w *world) { w.note("since", 3) }, 0},
		"another group's was deleted since": {3, func(w *world) {
			w.put(keys.Gone(keys.Instance("db-0-bbbbbb")),
				store.Gone{Schema: store.Schema, Instance: "db-0-bbbbbb", Group: "db"})
		}, 1},
		"a machine tells of one":                {4, func(w *world) { w.list("web-5-bbbbbb", "web") }, 1},
		"one of those that are there is torn":   {3, func(w *world) { w.spoil(keys.Instance("one")) }, 1},
		"a hold was released before":            {3, func(w *world) { w.review(1) }, 1},
		"a hold was released as it was counted": {3, func(w *world) { w.review(2) }, 0},
		"a hold was released since":             {3, func(w *world) { w.review(3) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(keys.Group("web"), spec("web"))
			for i, id := range []string{"one", "two"} {
				rec := w.run("web", id)
				rec.Slot = i
				w.put(keys.Instance(id), rec)
			}
			w.content.Revision += 100
			w.put(keys.Status("web"), store.Status{
				Schema: store.Schema, Group: "web", Records: &test.counted,
				Counted: w.content.Revision,
			})
			w.lead()
			w.evidence.Snapshot(w.content, []string{""})
			test.do(w)
			unknown := 0
			for _, d := range w.evidence.Snapshot(w.content, []string{""}).Damaged {
				if d.Instance != "" {
					continue
				}
				unknown++
				if !strings.HasPrefix(d.Key, keys.Instance("")) || d.What != store.DamageLost ||
					d.Seen != w.content.Status["web"].Record.Counted || !d.Since.Equal(w.now) || d.Cause.Kind == "" {
					t.Errorf("damaged is %+v", d)
				}
			}
			if unknown != test.want {
				t.Errorf("%d are missing of which nothing is known, want %d", unknown, test.want)
			}
		})
	}
}
