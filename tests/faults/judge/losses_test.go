package judge

import (
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

const other = "web-0-bbbbbb"

// proves SAFE-15
func TestTheSlotOfALostRecordIsNotFilled(t *testing.T) {
	filled := func(before func(s *story, was store.Instance)) *story {
		s := web(t)
		was := s.world[one]
		s.deletedByHand(one)
		before(s, was)
		s.requested("web", other, 0, "")
		return s
	}
	filled(func(*story, store.Instance) {}).broken("SAFE-15")
	filled(func(s *story, _ store.Instance) { s.operator(s.goneNote(one)) }).innocent()
	reviewed := func(seen store.Revision) *story {
		return filled(func(s *story, _ store.Instance) {
			s.operator(put(s.keys.Shard(),
				store.Shard{Schema: 1, ID: "s", Reviewed: &store.Reviewed{Damage: 1, Seen: s.rev + seen}}))
		})
	}
	reviewed(0).innocent()
	reviewed(-5).broken("SAFE-15") // of an earlier hold

	s := web(t)
	was := s.world[one]
	s.deletedByHand(one)
	s.operator(put(s.keys.Instance(one), was))
	s.innocent()

	s = web(t) // the leader's own deletion is no loss
	s.group("web", 1)
	s.step("web-1-aaaaaa", store.Deleting)
	s.removed("web-1-aaaaaa")
	s.group("web", 2)
	s.requested("web", "web-1-bbbbbb", 1, "")
	s.innocent()
}

// proves SAFE-15
func TestNoReplicaCreatesAShard(t *testing.T) {
	shard := store.Shard{Schema: 1, ID: "t", Name: "default"}
	s := web(t)
	s.emptied()
	s.txn(put(s.keys.Shard(), shard))
	s.broken("SAFE-15")

	s = web(t)
	s.emptied()
	s.operator(put(s.keys.Shard(), shard)) // leasehold recover
	s.txn(put(s.keys.Shard(), shard))
	s.innocent()
}

// A transaction of the leader that went down with an etcd is not taken for an operator's write of
// the same key in the next etcd, at the same revision: its journal entry is missing there.
func TestATransactionOfALostEtcdIsNoOther(t *testing.T) {
	shard := store.Shard{Schema: 1, ID: "t", Name: "default"}
	s := web(t)
	hold := s.entry(store.JournalEntry{Rule: "SAFE-12"})
	lost := history.Commit{ID: 1000, Replica: "a", Process: 1, Fence: s.fence, Keys: []string{s.keys.Shard(), hold.key}}
	s.add(history.Event{Commit: &lost})
	s.emptied()
	ended := lost
	ended.Ended, ended.Outcome, ended.At = true, history.Happened, s.rev+1
	s.add(history.Event{Commit: &ended})
	s.operator(put(s.keys.Shard(), shard)) // leasehold recover
	s.innocent()
}
