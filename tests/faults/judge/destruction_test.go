package judge

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

const one = "web-0-aaaaaa"

func lost(why string) store.JournalEntry {
	return store.JournalEntry{Rule: "DET-17", What: "deleting", Why: why, Verdict: store.Lost}
}

func TestAMachineThatIsWellIsNotTakenDown(t *testing.T) {
	for _, to := range []store.Phase{store.Deleting, store.Draining, store.Stopping} {
		s := web(t)
		s.silent(one) // etcd dropped its lease
		s.stepFor(one, to, lost("its lease ended"))
		s.broken("SAFE-1")
	}
}

// The watcher may see a decision only when the machine is gone: that is no reason.
func TestWhatACallEndedWasUpBefore(t *testing.T) {
	s := web(t)
	s.stepFor(one, store.Deleting, store.JournalEntry{Verdict: store.Unhealthy})
	decided := s.rev
	s.removed(one)
	for i, e := range s.events {
		if e.Change != nil && e.Change.Revision == decided {
			s.events[i].At = e.At.Add(350 * time.Millisecond)
		}
	}
	s.broken("DET-9")
}

func TestAMachineThatWasHurtMayBeTakenDown(t *testing.T) {
	for _, kind := range []history.HarmKind{
		history.Crashed, history.Frozen, history.Cut, history.Sick,
		history.Exited,
	} {
		s := web(t)
		s.harm(one, kind)
		if kind == history.Crashed {
			s.machine(one, history.Ended, history.ByFault)
		}
		s.silent(one)
		s.pass(20 * time.Second)
		s.stepFor(one, store.Deleting, lost("it was hurt"))
		s.innocent()
	}
}

func TestAMachineThatIsBackHasItsTime(t *testing.T) {
	back := func(after time.Duration, seen bool) *story {
		s := web(t)
		s.harm(one, history.Cut)
		s.pass(10 * time.Second)
		s.silent(one)
		s.over(one, history.Cut)
		if seen {
			s.shows(one, true)
		}
		s.pass(after)
		s.silent(one)
		s.stepFor(one, store.Deleting, lost("its lease ended"))
		return s
	}
	back(time.Second, true).innocent()
	back(15*time.Second, true).broken("SAFE-1")
	back(15*time.Second, false).innocent()
	back(2*time.Minute, false).broken("SAFE-1")
}

func TestThereAreReasonsToTakeDownWhatIsWell(t *testing.T) {
	for name, prepare := range map[string]func(s *story){
		"surplus":  func(s *story) { s.group("web", 1) },
		"stopped":  func(s *story) { s.group("web", 2, func(g *store.Group) { g.Stopped = true }) },
		"deleted":  func(s *story) { s.group("web", 2, func(g *store.Group) { g.Deleting = true }) },
		"outdated": func(s *story) { s.group("web", 2, func(g *store.Group) { g.Vars = map[string]string{"a": "b"} }) },
		"relaunch": func(s *story) { s.group("web", 2, func(g *store.Group) { g.Relaunch.Number = 1 }) },
		"ordered": func(s *story) {
			s.txn(s.record(one, func(r *store.Instance) { r.Condemned = &store.Condemned{By: "me"} }))
		},
		"doomed": func(s *story) {
			s.txn(s.record(one, func(r *store.Instance) { r.Doomed = &store.Doom{Rule: "SPOT-2"} }))
		},
		"evacuated": func(s *story) {
			s.operator(put(s.keys.Shard(),
				store.Shard{Schema: 1, ID: "s", Evacuated: map[string]store.Evacuation{"z": {}}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := web(t)
			prepare(s)
			s.step(one, store.Deleting)
			s.innocent()
		})
	}
}

func TestATemplateIsNoReasonWhereItWaitsForAnother(t *testing.T) {
	s := web(t)
	s.group("web", 2, func(g *store.Group) {
		g.Vars, g.Rollout.Strategy = map[string]string{"a": "b"}, store.StrategyOpportunistic
	})
	s.step(one, store.Deleting)
	s.broken("SAFE-4")
}

func TestAReplacementOfOneThatIsWellIsAViolationOfItsOwn(t *testing.T) {
	s := web(t)
	s.requested("web", "web-0-bbbbbb", 0, one)
	s.step("web-0-bbbbbb", store.Deleting) // called off
	s.broken("DET-9")

	s = web(t)
	s.txn(s.record(one, func(r *store.Instance) { r.Condemned = &store.Condemned{By: "me"} }))
	s.requested("web", "web-0-bbbbbb", 0, one)
	s.innocent()
}

// A replacement whose record was lost with etcd's last minutes is adopted again by an operator:
// that requests nothing.
func TestAReplacementThatIsAdoptedAgainIsNoRequest(t *testing.T) {
	s := web(t)
	r := s.fresh("web", "web-0-bbbbbb", 0, one)
	r.Phase = store.Booting
	s.txn(put(s.keys.Instance(r.ID), r), s.entry(store.JournalEntry{
		Rule: "REC-8", What: "adopted into slot 0", Instance: r.ID, Group: "web", To: r.Phase,
	}))
	s.innocent()
}

func TestOneOfTwoThatAreWellMayGo(t *testing.T) {
	s := web(t)
	s.harm(one, history.Sick)
	s.shows(one, false)
	s.requested("web", "web-0-bbbbbb", 0, one)
	s.over(one, history.Sick)
	s.shows(one, true)
	s.made("web-0-bbbbbb")
	s.healthy("web-0-bbbbbb")
	s.pass(time.Minute)
	s.step("web-0-bbbbbb", store.Deleting)
	s.removed("web-0-bbbbbb")
	s.innocent()
}

func TestOneThatReturnsFromADrainStays(t *testing.T) {
	drained := func(failures int) *story {
		s := web(t)
		s.harm(one, history.Cut)
		s.pass(15 * time.Second)
		s.silent(one)
		s.step(one, store.Draining, func(r *store.Instance) { r.Drain = &store.Drain{Lost: true} })
		s.over(one, history.Cut)
		s.shows(one, true)
		slot := store.Slot{Schema: 1, Group: "web"}
		for range failures {
			slot.Failures = append(slot.Failures, store.Failure{})
		}
		s.txn(put(s.keys.Slot("web", 0), slot))
		s.pass(time.Minute)
		s.step(one, store.Deleting)
		return s
	}
	drained(1).broken("DET-15")
	drained(3).innocent()
}
