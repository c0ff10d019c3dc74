package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

func TestKeysSplitAsTheyAreSpelled(t *testing.T) {
	k := store.KeysOf("s")
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, test := range []struct{ key, spelled, kind, name string }{
		{k.Shard(), "/leasehold/s/shard", store.KindShard, ""},
		{k.Served(), "/leasehold/s/served", store.KindServed, ""},
		{k.Leader(0x694d5eed00000001), "/leasehold/s/leader/694d5eed00000001", store.KindLeader, "694d5eed00000001"},
		{k.Leader(0xff), "/leasehold/s/leader/ff", store.KindLeader, "ff"}, // as etcd's own election spells it
		{k.Replica("r"), "/leasehold/s/replicas/r", store.KindReplicas, "r"},
		{k.Group("web"), "/leasehold/s/groups/web", store.KindGroups, "web"},
		{k.Request("q"), "/leasehold/s/requests/q", store.KindRequests, "q"},
		{k.Status("web"), "/leasehold/s/status/web", store.KindStatus, "web"},
		{k.Slot("web", 7), "/leasehold/s/slots/web/7", store.KindSlots, "web/7"},
		{k.Instance("web-1"), "/leasehold/s/instances/web-1", store.KindInstances, "web-1"},
		{k.Alive("web-1"), "/leasehold/s/alive/web-1", store.KindAlive, "web-1"},
		{k.Report("web-1"), "/leasehold/s/reports/web-1", store.KindReports, "web-1"},
		{
			k.Event(at, "x"), "/leasehold/s/events/20260102T030405.000000006-x", store.KindEvents,
			"20260102T030405.000000006-x",
		},
		{k.Load(at, "web"), "/leasehold/s/loads/20260102T03/web", store.KindLoads, "20260102T03/web"},
		{k.Day("2026-01-02", "web"), "/leasehold/s/days/2026-01-02/web", store.KindDays, "2026-01-02/web"},
		{k.DayDone("2026-01-02"), "/leasehold/s/days/2026-01-02", store.KindDays, "2026-01-02"},
		{k.Token("h"), "/leasehold/s/tokens/h", store.KindTokens, "h"},
		{k.Stray("web-1"), "/leasehold/s/strays/web-1", store.KindStrays, "web-1"},
	} {
		if test.key != test.spelled {
			t.Errorf("spelled %s, want %s", test.key, test.spelled)
		}
		kind, name, ok := k.Split(test.key)
		if !ok || kind != test.kind || name != test.name {
			t.Errorf("split %s: %q, %q, %v", test.key, kind, name, ok)
		}
		if shard, ok := store.ShardOf(test.key); !ok || shard != "s" {
			t.Errorf("the shard of %s is %q, %v", test.key, shard, ok)
		}
		if test.name != "" && !strings.HasPrefix(test.key, k.Of(kind)) || !strings.HasPrefix(test.key, k.Prefix()) {
			t.Errorf("%s is not below its prefixes", test.key)
		}
	}
	for _, foreign := range []string{
		"", "/leasehold/", "/leasehold/s", "/leasehold/s/", "/leasehold/s2/shard",
		"/other/s/shard",
	} {
		if kind, name, ok := k.Split(foreign); ok {
			t.Errorf("split %q: %q, %q", foreign, kind, name)
		}
	}
	for _, foreign := range []string{"", "/leasehold/", "/leasehold/s", "/leasehold//shard", "/other/s/shard"} {
		if shard, ok := store.ShardOf(foreign); ok {
			t.Errorf("the shard of %q is %q", foreign, shard)
		}
	}
}

func TestSlotKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := store.KeysOf("s")
		group := rapid.StringMatching(`[a-z]([a-z0-9-]{0,10}[a-z0-9])?`).Draw(t, "group")
		n := rapid.IntRange(0, store.MaxSize).Draw(t, "n")
		_, name, _ := k.Split(k.Slot(group, n))
		if g, m, ok := store.SplitSlot(name); !ok || g != group || m != n {
			t.Fatalf("split %s: %q, %d, %v", name, g, m, ok)
		}
	})
	for _, wrong := range []string{"", "web", "web/", "web/x", "web/-1"} {
		if g, n, ok := store.SplitSlot(wrong); ok {
			t.Errorf("split %q: %q, %d", wrong, g, n)
		}
	}
}

// The journal's keys sort as the times do, whatever their zones.
func TestEventKeysSortByTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := store.KeysOf("s")
		draw := func(label string) time.Time {
			zone := time.FixedZone("z", rapid.IntRange(-12, 12).Draw(t, "zone")*3600)
			return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, label),
				rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).In(zone)
		}
		a, b := draw("a"), draw("b")
		if got := strings.Compare(store.EventTime(a), store.EventTime(b)); got != a.Compare(b) {
			t.Fatalf("%s and %s sort %d", a, b, got)
		}
		keys := []string{k.Event(a, "x"), k.EventsFrom(a)}
		if slices.Sort(keys); keys[0] != k.EventsFrom(a) {
			t.Fatalf("%v", keys)
		}
	})
}
