package cli

import (
	"reflect"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// proves REC-10
func TestHealthOfShardAndLabels(t *testing.T) {
	of := func(healthy, size int, labels map[string]string) group {
		var g group
		g.Status.Record = store.Status{Healthy: healthy, Accepted: &store.Group{Size: size, Labels: labels}}
		return g
	}
	h := healthOf([]group{
		of(3, 3, map[string]string{"team": "shop", "tier": "web"}),
		of(1, 4, map[string]string{"team": "shop"}),
		of(5, 3, map[string]string{"team": "jobs"}), // two are in surplus, and make up for no other group
		of(0, 0, nil),
		{}, // no spec was ever in force
	})
	if h.Shard.Percent != 70 || h.Shard.Status != "Warning" {
		t.Errorf("shard: %+v, want 7 of 10", h.Shard)
	}
	got := map[string]int{}
	for label, s := range h.Labels {
		got[label] = s.Percent
	}
	if want := map[string]int{"team=shop": 57, "tier=web": 100, "team=jobs": 100}; !reflect.DeepEqual(got, want) {
		t.Errorf("labels: %v, want %v", got, want)
	}
	if line, want := h.line(), "health 70% Warning  team=jobs 100%  team=shop 57%  tier=web 100%"; line != want {
		t.Errorf("line %q, want %q", line, want)
	}
	if h := healthOf(nil); h.Shard.Percent != 100 || h.Shard.Status != "OK" {
		t.Errorf("nothing asked for: %+v", h.Shard)
	}
}
