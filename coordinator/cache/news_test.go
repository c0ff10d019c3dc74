package cache_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// A report that is handed over as a record does what its encoding does.
func TestReportsNeedNoEncoding(t *testing.T) {
	decoded, handed := cache.NewContent(), cache.NewContent()
	for _, c := range []*cache.Content{decoded, handed} {
		c.Take(keys, []store.KV{
			{Key: keys.Instance("web-0"), Value: store.Encode(store.Instance{Schema: store.Schema, ID: "web-0", Group: "web"})},
			{Key: keys.Report("web-0"), Value: []byte("{"), Modified: 1},
		})
	}
	spoil := func(rev store.Revision) { // as no replica writes it
		for _, c := range []*cache.Content{decoded, handed} {
			c.Apply(keys, store.Event{KV: store.KV{Key: keys.Report("web-0"), Value: []byte("{"), Modified: rev}})
		}
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, r := range []store.Report{
		{BootID: "b"},
		{BootID: "b", Received: now, Host: store.HostReport{Windows: []store.HostWindow{{CPUPercent: 7}}}},
		{BootID: "b", Healthy: true, Checks: []store.CheckReport{{Name: "http", Healthy: true}}},
		{BootID: "b", Healthy: true, Checks: []store.CheckReport{{Name: "http", Healthy: true}}}, // repaired
	} {
		r.Schema, r.Instance = store.Schema, "web-0"
		rev := store.Revision(2*i + 2)
		if i == 3 {
			spoil(rev - 1)
		}
		v := store.Versioned[store.Report]{Record: r, Key: keys.Report("web-0"), Created: 1, Modified: rev}
		want, ok := decoded.Apply(keys, store.Event{
			KV: store.KV{Key: v.Key, Value: store.Encode(r), Created: 1, Modified: rev},
		})
		if got := handed.ApplyReport(v); !ok || got != want || want.Same != (i == 1) {
			t.Errorf("report %d: %+v, want %+v", i, got, want)
		}
		if !reflect.DeepEqual(handed.Reports, decoded.Reports) || len(handed.Unreadable)+len(handed.Spoiled) > 0 {
			t.Errorf("report %d: %+v, want %+v", i, handed.Reports, decoded.Reports)
		}
	}
}

// New numbers of a wish by load are told apart from what a plan has to see: the planner has just
// written them.
//
// proves AUTO-2
func TestNumbersOfAWish(t *testing.T) {
	c := cache.NewContent()
	put := func(st store.Status) cache.Change {
		change, _ := c.Apply(keys, store.Event{KV: store.KV{Key: keys.Status("web"), Value: store.Encode(st)}})
		return change
	}
	status := func(change func(*store.Status)) store.Status {
		st := store.Status{
			Schema: store.Schema, Group: "web", Accepted: &store.Group{Name: "web", Size: 4}, Health: 100,
			Records: new(4), Counted: 9,
			Scale: &store.Scale{Size: 4, Wish: 4, Asks: 4, Wishes: []store.ScaleWish{{Size: 4}}},
		}
		change(&st)
		return st
	}
	as := func(*store.Status) {}
	if put(status(as)).Numbers {
		t.Error("the first status is taken for new numbers")
	}
	change := put(status(func(st *store.Status) {
		s := st.Scale
		s.Wish, s.Asks, s.Wishes = 3, 3, append(s.Wishes, store.ScaleWish{Size: 3})
		s.Numbers, s.At = []store.ScaleNumber{{Metric: store.MetricCPU, Value: 37}}, time.Unix(9, 0)
		s.Pace = &store.Timer{For: 5}
		st.Records, st.Counted = new(4), 17 // the revision of every write is another one
	}))
	if !change.Numbers || change.Same {
		t.Errorf("new numbers: %+v", change)
	}
	for what, other := range map[string]func(*store.Status){
		"size":      func(st *store.Status) { st.Scale.Size = 5 },
		"stays":     func(st *store.Status) { st.Scale.Stays = store.ScaleStorm },
		"left":      func(st *store.Status) { st.Scale.Left = []store.ScaleLeft{{By: 1}} },
		"shrunk":    func(st *store.Status) { st.Scale.Shrunk = &store.Timer{For: 5} },
		"rising":    func(st *store.Status) { st.Scale.Rising = &store.Timer{For: 5} },
		"growths":   func(st *store.Status) { st.Scale.Growths = []store.ScaleGrowth{{By: 1}} },
		"schedule":  func(st *store.Status) { st.Scale.Scheduled = &store.Scheduled{} },
		"spec":      func(st *store.Status) { st.Accepted.Size = 5 },
		"records":   func(st *store.Status) { st.Records = new(5) },
		"health":    func(st *store.Status) { st.Health = 75 },
		"no scale":  func(st *store.Status) { st.Scale = nil },
		"a blocked": func(st *store.Status) { st.Blocked = []store.Blocked{{Rule: "REC-3"}} },
	} {
		put(status(as))
		if put(status(other)).Numbers {
			t.Errorf("%s: taken for new numbers", what)
		}
		if put(status(as)).Numbers {
			t.Errorf("%s ends: taken for new numbers", what)
		}
	}
}

// That a value is damaged, or repaired, is news, though the record in force stays the same.
//
// proves SAFE-16
func TestDamageIsNews(t *testing.T) {
	c := cache.NewContent()
	status := store.Encode(store.Status{Schema: store.Schema, Group: "web", Scale: &store.Scale{Size: 4}})
	report := store.Encode(store.Report{Schema: store.Schema, Instance: "web-0", BootID: "b"})
	c.Take(keys, []store.KV{
		{Key: keys.Instance("web-0"), Value: store.Encode(store.Instance{Schema: store.Schema, ID: "web-0", Group: "web"})},
		{Key: keys.Status("web"), Value: status},
		{Key: keys.Report("web-0"), Value: report},
	})
	for i, v := range []struct {
		status, report []byte
		news           bool
	}{
		{status, report, false}, {[]byte("{"), []byte("{"), true}, {status, report, true}, {status, report, false},
	} {
		for key, value := range map[string][]byte{keys.Status("web"): v.status, keys.Report("web-0"): v.report} {
			change, ok := c.Apply(keys, store.Event{KV: store.KV{Key: key, Value: value, Modified: store.Revision(i + 2)}})
			if news := !change.Same && !change.Numbers; !ok || news != v.news {
				t.Errorf("%d: %s: %+v, want news: %v", i, key, change, v.news)
			}
		}
	}
}
