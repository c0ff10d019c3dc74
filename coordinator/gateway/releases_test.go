package gateway

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// An offer names the programs of its version and who serves them; nothing while no coordinator
// does.
//
// proves PROV-7
func TestOffersNameWhatIsServed(t *testing.T) {
	amd := store.AgentRelease{Version: "v1.1.0", Platform: "linux/amd64", Statement: "amd64 1.1", Path: "/a"}
	arm := store.AgentRelease{Version: "v1.1.0", Platform: "linux/arm64", Statement: "arm64 1.1", Path: "/b"}
	later := store.AgentRelease{Version: "v1.2.0", Platform: "linux/amd64", Statement: "amd64 1.2", Path: "/a"}
	replica := func(downloads string, all ...store.AgentRelease) store.Versioned[store.Replica] {
		return store.Versioned[store.Replica]{Record: store.Replica{Downloads: downloads, AgentReleases: all}}
	}
	var g Gateway
	offer := &store.AgentUpgrade{
		Version: "v1.1.0", Token: "t", Within: store.Duration(time.Minute), Downgrade: true,
	}
	if got := g.upgradeFor(offer); got != nil {
		t.Errorf("before anything is known: %v", got)
	}
	g.releases.Store(releasesOf(&cache.Content{Replicas: map[string]store.Versioned[store.Replica]{
		"a": replica("192.0.2.1:1", amd, arm), "b": replica("192.0.2.2:1", amd), "c": replica("192.0.2.3:1", later),
		"d": replica("", amd), "e": replica("192.0.2.5:1"),
	}}))
	got := g.upgradeFor(offer)
	var statements []string
	for _, p := range got.GetPrograms() {
		statements = append(statements, p.GetPath()+" "+p.GetStatement())
	}
	if !slices.Equal(statements, []string{"/a amd64 1.1", "/b arm64 1.1"}) ||
		!slices.Equal(got.GetAddresses(), []string{"192.0.2.1:1", "192.0.2.2:1"}) || got.GetToken() != "t" ||
		!got.GetDowngrade() || got.GetWithin().AsDuration() != time.Minute {
		t.Errorf("got %v", got)
	}
	other := *offer
	other.Version = "v0.9.0"
	withdrawn := *offer
	withdrawn.Withdrawn = true
	if g.upgradeFor(&other) != nil || g.upgradeFor(nil) != nil || g.upgradeFor(&withdrawn) != nil {
		t.Error("an offer of what is not served, or of nothing, or one that was withdrawn")
	}
}
