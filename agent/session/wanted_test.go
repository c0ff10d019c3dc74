package session

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// Only the replica that serves says what is wanted: what another one said before may be old.
//
// proves HEAL-1
func TestOnlyTheServingReplicaIsObeyed(t *testing.T) {
	now := time.Now()
	c := New(Config{Bootstrap: []string{"a", "b"}, Rand: func() float64 { return 0 }})
	wants := func(s Stream) bool {
		for _, o := range c.Step(now, Heard{
			s,
			&message{Kind: &protocol.GatewayMessage_Wanted{Wanted: &protocol.Wanted{RestartToken: "r1"}}},
		}) {
			if w, ok := o.(Wanted); ok && w.Wanted.GetRestartToken() == "r1" {
				return true
			}
		}
		return false
	}
	c.Step(now, nil)
	if wants(1) {
		t.Error("a replica that has not welcomed is obeyed")
	}
	c.Step(now, welcome(1, 5, "a", "b"))
	if !wants(1) {
		t.Error("the serving replica is not obeyed")
	}
	c.Step(now, move(1))
	c.Step(now, welcome(2, 5, "a", "b"))
	if wants(1) || !wants(2) {
		t.Error("after a move it is not the new replica, and it alone, that is obeyed")
	}
}
