package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// When all agents are late at once while etcd answers nothing, so many states are written at once
// as are bounded, and no report adds to them. Afterwards each comes right.
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
				a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{
					Sequence: a.number,
					Healthy:  true,
				}}})
			}
			synctest.Wait()
		}
		states := 0
		r.pause.mu.Lock()
		r.pause.first = func(txn store.Txn) bool { // with the lock
			for _, write := range txn.Writes {
				if strings.Contains(string(write.Value), `"`+string(store.StreamOverdue)+`"`) {
					states++
				}
			}
			return false
		}
		r.pause.mu.Unlock()
		r.writesAreAnswered(false)
		pass(interval + interval/2 + time.Millisecond)
		all()
		r.writesAreAnswered(true)
		pass(interval - time.Millisecond) // those under way are given up, and those that waited for them are written
		r.pause.mu.Lock()
		// Those that are given up may make way for others just as writes are answered again.
		if states == 0 || states > 2*atOnce {
			t.Errorf("%d states are written of %d agents that were late, want %d, or as many again", states, agents,
				atOnce)
		}
		r.pause.mu.Unlock()
		for range 4 { // those whose write was given up are put right by a report, 64 at a time at the least
			pass(interval)
			all()
		}
		for i := range crowd {
			w.shows(fmt.Sprintf("web-%d", i), "one", 1, store.StreamOpen)
		}
	})
}
