package judge

import (
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// Several sessions' states share a transaction: whose that was holds for all of them, also where
// another replica never heard what became of one of its own.
func TestStatesThatShareATransactionAreOfOne(t *testing.T) {
	s := web(t)
	says := func(state store.StreamState) (writes []write) {
		for _, id := range []string{one, "web-9-999999"} {
			writes = append(writes, put(s.keys.Alive(id),
				store.Alive{Schema: 1, Instance: id, BootID: "1", Replica: "a", Epoch: 4, State: state}))
		}
		return writes
	}
	s.txn(says(store.StreamOpen)...)
	lost := history.Commit{
		ID: 99, Replica: "b", Process: 2,
		Keys: []string{s.keys.Alive(one), s.keys.Alive("web-9-999999")},
	}
	s.add(history.Event{Commit: &lost})
	s.txn(says(store.StreamOverdue)...)
	over := lost
	over.Ended, over.Outcome = true, history.Unknown
	s.add(history.Event{Commit: &over})
	s.innocent()
}

func TestASessionIsOfWhoHoldsIt(t *testing.T) {
	said := func(replica string, epoch uint64, state store.StreamState) *story {
		s := web(t)
		s.txn(put(s.keys.Alive(one), store.Alive{
			Schema: 1, Instance: one, BootID: "1", Replica: "a", Epoch: 4,
			State: store.StreamOpen,
		}))
		// of a
		s.txn(put(s.keys.Alive(one), store.Alive{
			Schema: 1, Instance: one, BootID: "1", Replica: replica, Epoch: epoch,
			State: state,
		}))
		return s
	}
	said("a", 4, store.StreamOverdue).innocent()
	said("b", 5, store.StreamOpen).innocent()
	said("b", 3, store.StreamLost).broken("DET-18")

	s := web(t)
	s.operator(put(s.keys.Alive(one),
		store.Alive{Schema: 1, Instance: one, BootID: "1", Replica: "b", Epoch: 4, State: store.StreamOpen}))
	// of a
	s.txn(put(s.keys.Alive(one), store.Alive{
		Schema: 1, Instance: one, BootID: "1", Replica: "b", Epoch: 4,
		State: store.StreamLost,
	}))
	s.broken("DET-18")
}
