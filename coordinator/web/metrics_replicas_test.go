//go:build !race

// The race detector would make these many times slower, and sees the same code in other tests.

package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A thousand groups: the leader tells about thirty series of each, a follower none, and a leader
// whose cache is stale none either.
//
// proves OBS-2
func TestMetricsOfRealReplicas(t *testing.T) {
	t.Parallel()
	const groups = 1000
	s := newShard(t)
	keys := store.KeysOf("test")
	for i := range groups {
		g := store.DefaultGroup()
		g.Name, g.Provider = fmt.Sprintf("g%d", i), "mem"
		g.Complete()
		s.put(keys.Group(g.Name), store.Encode(g))
	}
	leader, conn, _ := s.start("a")
	eventually(t, "all groups told",
		func() bool { return strings.Count(leader.told(), "leasehold_group_size{") == groups })
	follower, _, _ := s.start("b")
	eventually(t, "the follower being ready",
		func() bool { code, _, _ := follower.get("/readyz"); return code == http.StatusOK })

	told := leader.scrape()
	for _, group := range []string{"g0", "g7", "g999"} {
		if n := told.of(group); n > 31 || n < 25 {
			t.Errorf("%d series of group %s", n, group)
		}
	}
	if most := groups*31 + 1000; len(told.series) > most {
		t.Errorf("%d series, at most %d are right", len(told.series), most)
	}
	for name, labels := range told.labels {
		if _, there := labels["instance"]; there {
			t.Errorf("%s names instances", name)
		}
	}
	for series, want := range map[string]string{
		"leasehold_leader": "1", "leasehold_streams": "0",
		"leasehold_replicas": "2", `leasehold_group_health_ratio{group="g0"}`: "1",
	} {
		if got := told.values[series]; got != want {
			t.Errorf("%s is %q, want %s", series, got, want)
		}
	}

	beside := follower.scrape()
	if strings.Contains(beside.text, "leasehold_group_") || strings.Contains(beside.text, "leasehold_replicas") ||
		beside.values["leasehold_leader"] != "0" {
		t.Error("a follower tells of groups, or leads")
	}
	if beside.values["leasehold_picture_age_seconds"] == "" || beside.values["leasehold_picture_revision"] == "" {
		t.Error("a follower does not tell how old its cache is")
	}

	conn.Faults().StallWatches()
	eventually(t, "the groups gone from a stale cache", func() bool {
		now := leader.told()
		return strings.Contains(now, "\nleasehold_picture_age_seconds") && !strings.Contains(now, "leasehold_group_")
	})
	eventually(t, "the interrupted watch counted",
		func() bool { return leader.scrape().values["leasehold_watch_restarts_total"] != "0" })
	conn.Faults().ReleaseWatches()
	eventually(t, "the groups back", func() bool { return strings.Contains(leader.told(), "leasehold_group_") })
}
