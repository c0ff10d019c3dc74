package judge

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

func TestASessionIsOfWhoHoldsIt(t *testing.T) {
	said := func(replica string, epoch uint64, state store.StreamState) *story {
		s := web(t)
		s.txn(put(s.keys.Alive(one), store.Alive{Schema: 1, Instance: one, BootID: "1", Replica: "a", Epoch: 4, State: store.StreamOpen}))
		s.txn(put(s.keys.Alive(one), store.Alive{Schema: 1, Instance: one, BootID: "1", Replica: replica, Epoch: epoch, State: state})) // of a
		return s
	}
	said("a", 4, store.StreamOverdue).innocent()
	said("b", 5, store.StreamOpen).innocent()
	said("b", 3, store.StreamLost).broken("DET-18")

	s := web(t)
	s.operator(put(s.keys.Alive(one), store.Alive{Schema: 1, Instance: one, BootID: "1", Replica: "b", Epoch: 4, State: store.StreamOpen}))
	s.txn(put(s.keys.Alive(one), store.Alive{Schema: 1, Instance: one, BootID: "1", Replica: "b", Epoch: 4, State: store.StreamLost})) // of a
	s.broken("DET-18")
}
