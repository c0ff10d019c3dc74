package gateway_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// When all agents are late at once while etcd answers nothing, so many states are written at once as are bounded, and no report adds to them. Afterwards
// each comes right.
//
// proves DET-6
func TestStatesOfManyAreWrittenInTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		const agents, atOnce = 200, 64
		crowd := make([]*agent, agents)
		for i := range crowd {
			id := fmt.Sprintf("web-%d", i)
			w.record(id, store.Running)
			crowd[i] = r.welcomed(hello(id, "boot1", 1))
			defer crowd[i].hangUp()
			crowd[i].reports()
		}
		all := func() {
			for _, a := range crowd {
				a.number++
				a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{Sequence: a.number, Healthy: true}}})
			}
			synctest.Wait()
		}
		count := r.commitsOf(store.KindAlive)
		r.writesAreAnswered(false)
		pass(interval + interval/2 + time.Millisecond)
		if n := count(); n != atOnce {
			t.Errorf("%d states are being written of %d agents that are late, want %d", n, agents, atOnce)
		}
		all()
		if n := count(); n != atOnce {
			t.Errorf("%d states are being written once all have reported, want %d as before", n, atOnce)
		}
		r.writesAreAnswered(true)
		for range 4 { // those whose write was given up are put right by a report, 64 at a time at the least
			pass(interval)
			all()
		}
		for i := range crowd {
			w.shows(fmt.Sprintf("web-%d", i), "one", 1, store.StreamOpen)
		}
	})
}
