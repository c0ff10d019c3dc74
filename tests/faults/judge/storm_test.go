package judge

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// stormy cuts both machines of the group off, for half a minute.
func stormy(t *testing.T, before func(*story), during func(*story)) *story {
	s := web(t)
	if before != nil {
		before(s)
	}
	many := history.Trouble{ID: 7, Kind: "cut", What: "a zone", ManyCut: true}
	s.add(history.Event{Trouble: &many})
	both := []string{one, "web-1-aaaaaa"}
	for _, id := range both {
		s.harm(id, history.Cut)
	}
	s.pass(20 * time.Second)
	for _, id := range both {
		s.silent(id)
	}
	during(s)
	for _, id := range both {
		s.over(id, history.Cut)
	}
	over := many
	over.Ends = true
	s.add(history.Event{Trouble: &over})
	return s
}

func TestInAStormNobodyIsReplaced(t *testing.T) {
	replaced := func(s *story) { s.requested("web", "web-0-bbbbbb", 0, one) }
	destroyed := func(s *story) { s.stepFor(one, store.Deleting, lost("its lease ended")) }
	stormy(t, nil, func(*story) {}).innocent()
	stormy(t, nil, replaced).broken("SAFE-2")
	stormy(t, nil, destroyed).broken("SAFE-2")

	late := stormy(t, nil, func(*story) {})
	late.pass(5 * time.Second)
	destroyed(late)
	late.broken("SAFE-2")
	later := stormy(t, nil, func(*story) {})
	later.over(one, history.Cut)
	later.harm(one, history.Sick)
	later.pass(time.Minute)
	destroyed(later)
	later.innocent()
}

// A trouble that could cut many off, and hits one, is no storm.
func TestOneLossIsNoStorm(t *testing.T) {
	s := web(t)
	zone := history.Trouble{ID: 7, Kind: "cut", What: "a zone", ManyCut: true}
	s.add(history.Event{Trouble: &zone})
	s.harm(one, history.Cut)
	s.pass(20 * time.Second)
	s.silent(one)
	s.requested("web", "web-0-bbbbbb", 0, one)
	s.over(one, history.Cut)
	over := zone
	over.Ends = true
	s.add(history.Event{Trouble: &over})
	s.innocent()
}

// Lists that are wrong and streams that break, both at once, are more than a coordinator can tell
// from death, until it sees how many it concerns.
func TestAStormIsKnownOnlyOnceItIsSeen(t *testing.T) {
	missed := func(after time.Duration, lie string) *story {
		s := web(t)
		s.add(history.Event{Call: &history.Call{ID: 99, Ended: true, Method: history.List, Lie: lie}})
		s.add(history.Event{Trouble: &history.Trouble{ID: 7, ManyCut: true}})
		s.harm(one, history.Cut)
		s.harm("web-1-aaaaaa", history.Cut)
		s.pass(after)
		s.stepFor(one, store.Deleting, store.JournalEntry{Rule: "DET-4", Verdict: store.Dead})
		s.add(history.Event{Trouble: &history.Trouble{ID: 7, ManyCut: true, Ends: true}})
		return s
	}
	missed(time.Second, "empty").innocent()
	missed(time.Second, "").broken("DET-4", "SAFE-2")
	missed(10*time.Second, "empty").broken("SAFE-2")
}

func TestWhatAStormDoesNotProtect(t *testing.T) {
	destroyed := func(s *story) { s.stepFor(one, store.Deleting, lost("its lease ended")) }
	stormy(t, func(s *story) { s.harm(one, history.Cut); s.pass(10 * time.Second) }, destroyed).innocent()
	again := stormy(t, nil, func(*story) {})
	again.harm(one, history.Cut)
	again.pass(15 * time.Second)
	destroyed(again)
	again.innocent()
	stormy(t, nil, func(s *story) { s.harm(one, history.Crashed); destroyed(s) }).innocent()
	stormy(t, nil, func(s *story) {
		s.txn(put(s.keys.Status("web"), store.Status{Schema: 1, Storm: &store.Storm{By: "me", Ended: "overridden"}}))
		destroyed(s)
	}).innocent()
	stormy(t, nil, func(s *story) {
		s.txn(s.record(one, func(r *store.Instance) { r.Condemned = &store.Condemned{By: "me"} }))
		destroyed(s)
	}).innocent()
}
