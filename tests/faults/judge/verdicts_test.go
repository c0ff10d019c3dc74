package judge

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// proves SAFE-4: an agent that came back at an earlier revision than it was judged at has won.
func TestWhoIsCalledLostHasNoLease(t *testing.T) {
	judged := func(back bool) *story {
		s := web(t)
		s.harm(one, history.Cut)
		s.silent(one)
		s.pass(10 * time.Second)
		s.over(one, history.Cut)
		if back {
			s.shows(one, true)
		}
		s.stepFor(one, store.Deleting, lost("its lease ended"))
		return s
	}
	judged(false).innocent()
	judged(true).broken("SAFE-4")

	s := web(t) // a replacement that is only requested rests on it as well
	s.harm(one, history.Cut)
	s.txn(put(s.keys.Instance("web-0-bbbbbb"), s.fresh("web", "web-0-bbbbbb", 0, one)),
		s.entry(store.JournalEntry{Instance: one, Verdict: store.Lost, What: "replacement web-0-bbbbbb requested"}))
	s.broken("SAFE-4")
}

func TestNobodyIsCalledLostRightAfterAnElection(t *testing.T) {
	judged := func(after time.Duration) *story {
		s := web(t)
		s.harm(one, history.Cut)
		s.silent(one)
		s.pass(20 * time.Second)
		s.fence = store.Fence{Key: "leader", Created: s.rev}
		s.txn(put(s.keys.Served(), store.Served{Schema: 1}))
		s.pass(after)
		s.stepFor(one, store.Deleting, lost("its lease ended"))
		return s
	}
	judged(3 * time.Second).broken("SAFE-1")
	judged(8 * time.Second).innocent()
}

func TestWhoIsCalledDeadDoesNotRun(t *testing.T) {
	judged := func(before func(s *story)) *story {
		s := web(t)
		s.harm(one, history.Cut) // else it is well, and that is another matter
		s.pass(20 * time.Second)
		before(s)
		s.stepFor(one, store.Deleting, store.JournalEntry{Rule: "DET-4", Verdict: store.Dead})
		return s
	}
	judged(func(*story) {}).broken("DET-4")
	judged(func(s *story) { s.harm(one, history.Crashed); s.machine(one, history.Ended, history.ByFault) }).innocent()
	judged(func(s *story) { s.machine(one, history.Ended, history.BySelf); s.machine(one, history.Booted) }).innocent()
	judged(func(s *story) {
		s.add(history.Event{Call: &history.Call{ID: 99, Ended: true, Method: history.List, Lie: "empty"}})
	}).innocent()

	s := web(t) // one that just boots has no agent yet that could speak for it
	s.group("web", 3)
	s.requested("web", "web-2-aaaaaa", 2, "")
	s.made("web-2-aaaaaa")
	s.stepFor("web-2-aaaaaa", store.Deleting, store.JournalEntry{Rule: "DET-4", Verdict: store.Dead})
	s.broken("DET-4")
}

func TestANewMachineHasItsTimeToRegister(t *testing.T) {
	judged := func(after time.Duration) *story {
		s := web(t)
		s.group("web", 3)
		s.requested("web", "web-2-aaaaaa", 2, "")
		s.made("web-2-aaaaaa")
		s.pass(after)
		s.stepFor("web-2-aaaaaa", store.Deleting, store.JournalEntry{Rule: "DET-11", Verdict: store.Stuck})
		return s
	}
	limit := store.DefaultGroup().RegistrationTimeout.D()
	judged(time.Minute).broken("DET-11")
	judged(limit).innocent()
}
