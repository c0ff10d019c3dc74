package judge

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

func TestARecordGoesAfterItsMachine(t *testing.T) {
	removed := func() *story {
		s := web(t)
		s.group("web", 1)
		s.step(one, store.Deleting)
		s.call(history.List, "") // begun too early
		s.removed(one)
		return s
	}
	s := removed()
	s.innocent()
	last := 0
	for i, e := range s.events {
		if e.Call != nil && e.Call.Method == history.List && !e.Call.Ended {
			last = i
		}
	}
	s.events = slices.Delete(s.events, last, last+1)
	s.broken("SAFE-8")
}

func TestALateCreateFindsItsRecord(t *testing.T) {
	s := web(t)
	s.group("web", 3)
	s.requested("web", "web-2-aaaaaa", 2, "")
	s.step("web-2-aaaaaa", store.Creating)
	s.call(history.Create, "web-2-aaaaaa") // fails, and is done later
	s.group("web", 2)
	s.step("web-2-aaaaaa", store.Deleting)
	late := *s
	late.events = slices.Clone(s.events)
	s.machine("web-2-aaaaaa", history.Made)
	s.removed("web-2-aaaaaa")
	s.innocent()

	late.removed("web-2-aaaaaa")
	late.machine("web-2-aaaaaa", history.Made)
	late.broken("SAFE-8", "SAFE-8") // of the machine that was removed already, and of its record
}

func TestARecordStaysWhileALateCreateMayCome(t *testing.T) {
	removed := func(after time.Duration) *story {
		s := web(t)
		s.group("web", 3)
		s.requested("web", "web-2-aaaaaa", 2, "")
		s.step("web-2-aaaaaa", store.Creating)
		s.begun(history.Create, "web-2-aaaaaa")
		s.add(history.Event{Call: &history.Call{
			ID: s.calls, Ended: true, Replica: "a", Method: history.Create,
			Instance: "web-2-aaaaaa", Err: "lost", Lie: "fails" + history.DoneLate,
		}})
		s.group("web", 2)
		s.step("web-2-aaaaaa", store.Deleting)
		s.pass(after)
		s.removed("web-2-aaaaaa")
		return s
	}
	removed(5 * time.Second).broken("SAFE-8")
	removed(time.Minute).innocent()
}
