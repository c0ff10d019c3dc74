package judge

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

func TestEveryStepIsExplained(t *testing.T) {
	told := func(entries ...store.JournalEntry) *story {
		s := web(t)
		s.harm(one, history.Sick)
		writes := []write{s.record(one, func(r *store.Instance) { r.Phase = store.Deleting })}
		for _, e := range entries {
			writes = append(writes, s.entry(e))
		}
		s.txn(writes...)
		return s
	}
	right := store.JournalEntry{Instance: one, From: store.Running, To: store.Deleting}
	told(right).innocent()
	told().broken("REC-15")
	told(store.JournalEntry{Instance: one, From: store.Checking, To: store.Deleting}).broken("REC-15")
	told(store.JournalEntry{Instance: "web-1-aaaaaa", From: store.Running, To: store.Deleting}).broken("REC-15")
	claimed := right
	claimed.Claimed = true
	told(claimed).broken("REC-15")
	apart := told()
	apart.txn(apart.entry(right))
	apart.broken("REC-15")
}

func TestAnInstanceIsExplainedFromItsBeginningToItsEnd(t *testing.T) {
	s := web(t)
	s.txn(put(s.keys.Instance("web-2-aaaaaa"), s.fresh("web", "web-2-aaaaaa", 2, "")))
	s.broken("REC-15")

	s = web(t)
	s.group("web", 1)
	s.step(one, store.Deleting)
	s.txn(drop(s.keys.Instance(one)))
	s.broken("REC-15")

	s = web(t)
	s.txn(drop(s.keys.Instance(one)), s.entry(store.JournalEntry{Instance: one, From: store.Running}))
	s.broken("SAFE-8")
}

func TestNoInstanceStepsWhereItMayNot(t *testing.T) {
	s := web(t)
	s.step(one, store.Creating)
	s.broken("SAFE-8")
}

func TestWhatAnOperatorWritesByHandNeedsNoReason(t *testing.T) {
	s := web(t)
	s.operator(drop(s.keys.Instance(one)))
	s.innocent()
}

func TestTheReasonOfAnActIsTrue(t *testing.T) {
	for verdict, rule := range map[store.Verdict]string{
		store.Dead: "DET-4", store.Lost: "SAFE-1",
		store.Unhealthy: "DET-9",
	} {
		s := web(t)
		s.group("web", 1) // a reason there is
		s.stepFor(one, store.Deleting, store.JournalEntry{Verdict: verdict})
		s.broken(rule)

		s = web(t) // a word that nothing comes of
		s.txn(s.entry(store.JournalEntry{Instance: one, Verdict: verdict}))
		s.innocent()

		s = web(t)
		s.harm(one, history.Cut)
		s.silent(one)
		if verdict == store.Dead {
			s.harm(one, history.Crashed)
			s.machine(one, history.Ended, history.ByFault)
		}
		s.pass(20 * time.Second)
		s.stepFor(one, store.Deleting, store.JournalEntry{Verdict: verdict})
		s.innocent()
	}
}
