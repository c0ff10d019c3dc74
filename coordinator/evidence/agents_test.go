package evidence

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// The versions that are served are known in their order, each with a coordinator that is of an
// earlier one.
//
// proves PROV-7
func TestVersionsThatAreServed(t *testing.T) {
	replica := func(version, downloads string, served ...string) store.Versioned[store.Replica] {
		r := store.Replica{Version: version, Downloads: downloads}
		for _, v := range served {
			r.AgentReleases = append(r.AgentReleases, store.AgentRelease{Version: v})
		}
		return store.Versioned[store.Replica]{Record: r}
	}
	got := agents(&cache.Content{Replicas: map[string]store.Versioned[store.Replica]{
		"a": replica("v1.10.0", "192.0.2.1:1", "v1.10.0", "v1.9.0", "dev"), "b": replica("v1.9.0", "192.0.2.2:1", "v1.9.0"),
		"c": replica("dev", "", "v2.0.0"),
	}})
	want := []plan.AgentVersion{
		{Version: "dev"}, {Version: "v1.9.0"}, {Version: "v1.10.0", Before: "b", BeforeOf: "v1.9.0"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}
