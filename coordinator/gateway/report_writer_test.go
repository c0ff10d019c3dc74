package gateway_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// commitsOf counts the transactions that write a kind of record, from now on.
func (r *replica) commitsOf(kind string) (count func() int) {
	r.pause.mu.Lock()
	defer r.pause.mu.Unlock()
	n := 0
	r.pause.first = func(txn store.Txn) bool {
		if k, _, ok := r.w.keys.Split(txn.Writes[0].Key); ok && k == kind {
			n++
		}
		return false
	}
	return func() int {
		r.pause.mu.Lock()
		defer r.pause.mu.Unlock()
		return n
	}
}

// Reports of many agents are written together; that one of them may not be written keeps no other
// from it.
//
// proves DET-16
func TestReportsAreWrittenTogether(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		const agents = 100
		crowd := make([]*agent, agents)
		for i := range crowd {
			id := fmt.Sprintf("web-%d", i)
			w.record(id, store.Running)
			crowd[i] = r.welcomed(hello(id, "boot1", 1))
			defer crowd[i].hangUp()
			crowd[i].reports()
		}
		pass(time.Minute - interval)
		count := r.commitsOf(store.KindReports)
		w.put(w.keys.Alive("web-7"), store.Encode(store.Alive{
			Schema: store.Schema, Instance: "web-7", Replica: "one",
			BootID: "boot1", Epoch: 1, State: store.StreamOpen,
		}))
		pass(interval)
		for _, a := range crowd {
			a.number++
			a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{
				Sequence: a.number,
				Healthy:  true,
			}}})
		}
		synctest.Wait()
		pass(time.Second)
		for i := range crowd {
			if got := w.report(fmt.Sprintf("web-%d", i)).Record.Sequence; got != 2 && i != 7 {
				t.Errorf("report %d of web-%d is written last, want the second", got, i)
			}
		}
		if n := count(); n > 10 {
			t.Errorf("%d transactions for %d reports", n, agents)
		}
	})
}

// While etcd answers no writes the newest report of each agent waits and no other, and what was
// said before a goodbye is written before it.
//
// proves DET-16, DET-8
func TestTheNewestReportWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		count := r.commitsOf(store.KindReports)
		r.writesAreAnswered(false)
		for i := range 4 {
			a.report(&protocol.Report{Healthy: i%2 == 1, Why: fmt.Sprint(i)})
		}
		if n := count(); n != 1 {
			t.Errorf("%d transactions are under way, want the first alone", n)
		}
		r.writesAreAnswered(true)
		pass(5 * time.Second) // the first is given up
		if got := w.report("web-0").Record.Sequence; got != a.number || count() != 2 {
			t.Errorf("report %d is written last, with %d transactions, want the newest, %d, with 2", got, count(),
				a.number)
		}
		a.report(&protocol.Report{Healthy: true, Drained: "token"})
		a.goodbye(protocol.Goodbye_SHUTDOWN)
		synctest.Wait()
		if got := w.report("web-0").Record; got.Drained != "token" {
			t.Errorf("%+v: what came before the goodbye is not written", got)
		}
		w.shows("web-0", "one", 1, store.StreamLeft)
	})
}
