package gateway

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// An agent is sent a drill soon after the order. One that a wrong clock put into the future is not
// sent.
//
// proves DAY-6, SAFE-13
func TestWhenAnAgentIsSentADrill(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	rec := store.Instance{Phase: store.Running, Drill: &store.Drill{
		Request: "r", At: at, Kind: store.DrillAgent, Asked: true, Epoch: 7,
	}}
	for after, want := range map[time.Duration]bool{
		-time.Hour: false, -30 * time.Second: true, 0: true, store.DrillTold: true, store.DrillTold + 1: false,
	} {
		if got := drillFor(rec, 7, at.Add(after)); (got != nil) != want {
			t.Errorf("%s after the order: %v", after, got)
		}
	}
	if got := drillFor(rec, 8, at); got != nil {
		t.Errorf("on another stream: %v", got)
	}
	if got := drillFor(store.Instance{Phase: store.Running}, 7, at); got != nil {
		t.Errorf("without a drill: %v", got)
	}
}

// A drill whose message has waited for too long is taken out of it. The rest of it is sent.
//
// proves DAY-6
func TestADrillThatWaitedIsNotSent(t *testing.T) {
	s := &session{epoch: 7}
	s.wanted.drill = &store.Instance{Phase: store.Running, Drill: &store.Drill{
		Request: "r", At: time.Now().Add(-2 * store.DrillTold), Kind: store.DrillAgent, Asked: true, Epoch: 7,
	}}
	s.wanted.now = &protocol.Wanted{ConfigHash: "c", Drill: &protocol.Drill{Token: "r", Kind: "agent"}}
	if s.endLateDrill(); s.wanted.now.GetDrill() != nil || s.wanted.now.GetConfigHash() != "c" {
		t.Errorf("to be sent: %v", s.wanted.now)
	}
}
