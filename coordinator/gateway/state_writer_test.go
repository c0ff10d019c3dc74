package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// Sessions of many agents that connect at once are written together. A failure of one does not
// affect the others: if a record or an alive differs from the cache, it is written again; if a
// lease has ended, the agent has to reconnect.
//
// proves SAFE-11
func TestSessionsThatBeginAtOnceAreWrittenTogether(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		const agents = 60
		name := func(i int) string { return fmt.Sprintf("web-%d", i) }
		for i := range agents {
			w.record(name(i), store.Running)
		}
		pass(time.Second)
		r.store.Faults().StallWatches() // the cache is old from now on
		w.record(name(7), store.Running)
		w.put(w.keys.Alive(name(8)), store.Encode(store.Alive{
			Schema: store.Schema, Instance: name(8), Replica: "gone",
			BootID: "boot1", Epoch: 1, State: store.StreamOpen,
		}))
		transactions, lost := 0, ""
		r.pause.mu.Lock()
		r.pause.first = func(txn store.Txn) bool { // with the lock
			if kind, _, ok := w.keys.Split(txn.Writes[0].Key); ok && kind == store.KindAlive {
				transactions++
			}
			if last := txn.Writes[len(txn.Writes)-1]; lost == "" && len(txn.Writes) > 10 {
				lost = last.Key
				w.db.Faults().DropLease(last.Lease)
			}
			return false
		}
		r.pause.mu.Unlock()
		r.slowsDown(1)
		crowd := make([]*agent, agents)
		for i := range crowd {
			crowd[i] = r.call(hello(name(i), "boot1", 2))
			defer crowd[i].hangUp()
		}
		answers := make([]*protocol.GatewayMessage, agents)
		for i, a := range crowd {
			answers[i] = a.next()
		}
		r.pause.mu.Lock()
		defer r.pause.mu.Unlock()
		for i, msg := range answers {
			if w.keys.Alive(name(i)) == lost {
				if msg.GetRefused().GetReason() != protocol.Refused_UNAVAILABLE {
					t.Errorf("%s, whose lease has ended, is answered with %v", name(i), msg)
				}
				continue
			}
			if msg.GetWelcome() == nil {
				t.Errorf("%s is answered with %v", name(i), msg)
				continue
			}
			w.shows(name(i), "one", 2, store.StreamOpen)
		}
		if lost == "" || transactions > agents/2 {
			t.Errorf("%d transactions for %d sessions, and the lease of %q has ended", transactions, agents, lost)
		}
		r.store.Faults().ReleaseWatches()
	})
}
