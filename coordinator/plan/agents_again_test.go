package plan

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A version is not blamed for an agent that a drill has killed: neither at once nor when the drill
// is over. The agent is offered the version again then.
//
// proves DAY-6, PROV-7
func TestADrillStopsNoUpgrade(t *testing.T) {
	w := agentsOf(t, "v1.0.0", "a", "b")
	w.serves("r1", "v1.1.0", "v1.1.0")
	w.step()
	if w.offers() != "a=v1.1.0" {
		t.Fatalf("offers %q", w.offers())
	}
	rec := w.instance("a").Record
	rec.Drill = &store.Drill{Request: "r", By: "ada", At: w.now, Kind: store.DrillAgent, Asked: true}
	w.put(w.keys.Instance("a"), rec)
	w.answers("a", store.UpgradeBack, "it was killed")
	w.step()
	if got := w.wave(); got.Stopped != "" || w.offers() != "b=v1.1.0" {
		t.Fatalf("in the drill: offers %q, wave %+v", w.offers(), got)
	}
	w.answers("b", store.UpgradeInstalled, "")
	w.pass(store.DefaultAgentWithin.D())
	w.step()
	w.step()
	w.pass(store.DrillTime)
	for range 3 {
		w.step()
	}
	if got := w.wave(); got.Stopped != "" || w.offers() != "a=v1.1.0" {
		t.Errorf("after the drill: offers %q, wave %+v", w.offers(), got)
	}
}

// A new wave to a version is not stopped by what agents reported of it before. What they report
// later stops it, also if an agent reported no token before.
//
// proves PROV-7
func TestANewWaveForgivesWhatWasBefore(t *testing.T) {
	w := agentsOf(t, "v1.0.0", "a", "b", "c")
	back := func(id, token string) {
		w.agents[id].upgrade = &store.UpgradeReport{
			Token: token, Version: "v1.1.0", Result: store.UpgradeBack, Why: "exit status 3",
		}
		w.report(id)
	}
	back("a", "")
	back("b", "old")
	w.serves("r1", "v1.1.0", "v1.1.0")
	for range 3 {
		w.step()
	}
	if got := w.wave(); got.Stopped != "" || w.offers() != "a=v1.1.0" {
		t.Fatalf("offers %q, wave %+v", w.offers(), got)
	}
	back("c", "")
	w.step()
	if got := w.wave(); got.Stopped != "c" {
		t.Errorf("wave %+v", got)
	}
}
