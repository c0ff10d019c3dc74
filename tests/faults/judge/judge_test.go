package judge

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// long is a history of many events: machines fail and are replaced, again and again.
func long(t *testing.T, events int) *story {
	s := web(t)
	id := one
	for n := 0; len(s.events) < events; n++ {
		next := fmt.Sprintf("web-0-%06d", n)
		s.harm(id, history.Sick)
		s.shows(id, false)
		s.requested("web", next, 0, id)
		s.made(next)
		s.healthy(next)
		for range 20 {
			s.shows("web-1-aaaaaa", true)
			s.call(history.List, "")
		}
		s.step(id, store.Deleting)
		s.removed(id)
		id = next
	}
	return s
}

func TestAJudgeIsFastAndChangesNothing(t *testing.T) {
	s := long(t, 50_000)
	before := append([]history.Event(nil), s.events...)
	begun := time.Now()
	s.innocent()
	t.Logf("%d events took %s", len(s.events), time.Since(begun).Round(time.Millisecond))
	if !reflect.DeepEqual(before, s.events) {
		t.Fatal("the history is another one now")
	}
	if found := Judge(nil, Terms{}); len(found) != 0 {
		t.Fatal(Tell(found))
	}
}

func TestTheSameHistoryIsJudgedTheSame(t *testing.T) {
	s := web(t)
	s.held(true)
	for _, id := range []string{one, "web-1-aaaaaa"} {
		s.stepFor(id, store.Deleting, lost("it was not"))
		s.machine(id, history.Made)
	}
	first := Tell(Judge(s.events, Terms{}))
	for range 10 {
		if again := Tell(Judge(s.events, Terms{})); again != first {
			t.Fatalf("first:\n%s\nthen:\n%s", first, again)
		}
	}
	t.Log("\n" + first)
}
