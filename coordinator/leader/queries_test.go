package leader_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/store"
)

// A number is asked for while a group names it, one question at a time, and once for all groups
// that want it; nothing waits for an answer. A source that this coordinator does not have is known
// to be missing.
//
// proves AUTO-1
func TestNumbersAreAskedFor(t *testing.T) {
	s := newScriptWith(t, 0, map[string]query.Settings{
		"queue":  {Every: 15 * time.Second, PerGroup: true},
		"orders": {Every: time.Minute},
	})
	group := func(name string, sources ...string) store.Write {
		g := store.DefaultGroup()
		g.Schema, g.Name, g.Provider, g.Workload.Run = store.Schema, name, "mem", []string{"./web"}
		g.Scale = &store.ScaleSpec{Min: new(0), Max: 9}
		for _, from := range sources {
			g.Scale.Targets = append(g.Scale.Targets, store.ScaleTarget{From: from, Value: 10})
		}
		g.Complete()
		return store.Put(keys.Group(name), store.Encode(g))
	}
	s.write(group("web", "queue", "orders", "lost"), group("api", "orders"))
	s.step(leader.Wake{})
	take[leader.Compute](s)
	first, second := take[leader.Query](s), take[leader.Query](s)
	none[leader.Query](s)
	if first.Key != (query.Key{Source: "orders"}) || second.Key != (query.Key{Source: "queue", Group: "web"}) {
		t.Fatal(first, second)
	}
	// Both are under way: they are not asked for again.
	s.now = s.now.Add(time.Hour)
	s.step(leader.Tick{})
	none[leader.Query](s)
	s.now = s.now.Add(-time.Hour)

	s.step(leader.Queried{Key: second.Key, Begun: second.Begun, Value: 7})
	s.step(leader.Queried{Key: first.Key, Begun: first.Begun, Err: &query.Error{Kind: query.Failed, Message: "502"}})
	readings := s.evidence.Snapshot(s.content, []string{"api", "web"})
	api, web := readings.Groups[0].Readings, readings.Groups[1].Readings
	if v, known := web["queue"].Fresh(s.now); v != 7 || !known {
		t.Error(web)
	}
	_, known := web["orders"].Fresh(s.now)
	if known || web["orders"].Problem != "failed: 502" || api["orders"] != web["orders"] {
		t.Error(api, web)
	}
	if r := web["lost"]; r.Problem == "" || !r.Asked.IsZero() {
		t.Error(r)
	}
	if _, known := web["queue"].Fresh(s.now.Add(query.Fresh + time.Second)); known {
		t.Error("an old number counts")
	}
	s.now = s.now.Add(15 * time.Second)
	s.step(leader.Tick{})
	if again := take[leader.Query](s); again.Key != second.Key {
		t.Error(again)
	}
	none[leader.Query](s)
}
