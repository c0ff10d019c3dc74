package judge

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// left is the group of two, quiet a minute after something was left.
func left(t *testing.T, change func(*story), leases map[string][]string) *story {
	s := web(t)
	if change != nil {
		change(s)
	}
	s.pass(time.Minute)
	s.mark(history.Mark{What: history.Quiet, Machines: []string{one, "web-1-aaaaaa"}, Leases: leases})
	return s
}

func TestWhatIsNotReleasedIsReported(t *testing.T) {
	s := web(t)
	s.add(history.Event{Left: &history.Left{What: "a process"}})
	s.broken("ELECT-3")
}

func TestKeysOfWhatIsGoneGo(t *testing.T) {
	left(t, nil, nil).innocent()
	for name, w := range map[string]func(store.Keys) write{
		"request": func(k store.Keys) write { return put(k.Request("r"), store.Request{Schema: 1, ID: "r"}) },
		"report":  func(k store.Keys) write { return put(k.Report("gone"), store.Report{Schema: 1}) },
		"alive":   func(k store.Keys) write { return put(k.Alive("gone"), store.Alive{Schema: 1}) },
		"joined":  func(k store.Keys) write { return put(k.Joined("gone"), store.Joined{Schema: 1}) },
		"slot":    func(k store.Keys) write { return put(k.Slot("gone", 0), store.Slot{Schema: 1}) },
		"turn":    func(k store.Keys) write { return put(k.Turn("gone"), store.Turn{Schema: 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			left(t, func(s *story) { s.operator(w(s.keys)) }, nil).broken("ELECT-3")
			s := left(t, func(s *story) { s.operator(w(s.keys)); s.operator(drop(w(s.keys).key)) }, nil)
			s.innocent()
			s = web(t)
			s.operator(w(s.keys)) // only just now
			s.mark(history.Mark{What: history.Quiet, Machines: []string{one, "web-1-aaaaaa"}})
			s.innocent()
		})
	}
	// it goes with its lease
	left(t, func(s *story) { s.operator(put(s.keys.Stray("gone"), store.Stray{Schema: 1})) }, nil).innocent()
	slots := func(n int) func(*story) {
		return func(s *story) {
			for i := range n {
				s.operator(put(s.keys.Slot("web", i), store.Slot{Schema: 1, Group: "web", Number: i}))
			}
		}
	}
	left(t, slots(2), nil).innocent()
	left(t, slots(3), nil).broken("ELECT-3")
}

func TestTokensDoNotPileUp(t *testing.T) {
	tokens := func(n int) func(*story) {
		return func(s *story) {
			for i := range n {
				s.operator(put(s.keys.Token(fmt.Sprint(i)), store.JoinToken{Schema: 1, Instance: one}))
			}
		}
	}
	left(t, tokens(2), nil).innocent() // one call, one that was never begun
	left(t, tokens(3), nil).broken("SEC-2")
}

func TestLeasesDoNotPileUp(t *testing.T) {
	leases := func(n int, keys ...string) map[string][]string {
		out := map[string][]string{}
		for i := range n {
			out[store.LeaseID(i+1).String()] = keys
		}
		return out
	}
	event := store.KeysOf("default").Event(time.Unix(1, 0), "x")
	left(t, nil, leases(6)).innocent()
	left(t, nil, leases(20)).broken("ELECT-3")
	left(t, nil, leases(6, event)).innocent()
	left(t, nil, leases(20, event)).broken("REC-15")
	left(t, nil, leases(20, store.KeysOf("default").Alive(one))).innocent()
	troubled := func(s *story) {
		for i := range 20 {
			s.add(history.Event{Trouble: &history.Trouble{ID: i, Kind: "etcd away"}})
		}
	}
	left(t, troubled, leases(20)).innocent()
}
