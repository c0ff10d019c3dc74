package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// healed is the group of two after all troubles, complete or as a trouble left it, and quiet after
// a time; never, if that is 0.
func healed(t *testing.T, after time.Duration, change func(*story)) *story {
	s := web(t)
	s.accepted()
	s.mark(history.Mark{What: history.Healed, Groups: map[string]int{"web": 2}})
	if change != nil {
		change(s)
	}
	if after > 0 {
		s.pass(after)
		s.mark(history.Mark{
			What: history.Quiet, Groups: map[string]int{"web": 2},
			Machines: []string{one, "web-1-aaaaaa"},
		})
	}
	return s
}

// accepted: the leader says that all is well, and goes by the spec that there is.
func (s *story) accepted() {
	var spec store.Revision
	for _, e := range s.events {
		if e.Change != nil && e.Change.Key == s.keys.Group("web") {
			spec = e.Change.Revision
		}
	}
	s.txn(put(s.keys.Status("web"),
		store.Status{Schema: 1, Group: "web", Health: 100, OK: true, AcceptedRevision: spec}))
}

func TestAllComesRightInTime(t *testing.T) {
	healed(t, time.Minute, nil).innocent()
	healed(t, time.Hour, nil).broken("HEAL-6")
	healed(t, 0, nil).broken("HEAL-6")
	healed(t, time.Minute, func(s *story) { s.silent(one) }).broken("HEAL-6")
	healed(t, time.Minute, func(s *story) { s.group("web", 2); s.accepted() }).innocent()
	healed(t, time.Minute, func(s *story) { s.group("web", 2) }).broken("HEAL-6")
	healed(t, time.Minute, func(s *story) {
		s.txn(put(s.keys.Status("web"), store.Status{Schema: 1, Group: "web", Health: 50, AcceptedRevision: 2}))
	}).broken("HEAL-6")
	healed(t, time.Minute, func(s *story) {
		s.harm(one, history.Crashed)
		s.machine(one, history.Ended, history.ByFault)
	}).broken("HEAL-6")
}

func TestItIsSaidWhatIsMissing(t *testing.T) {
	s := healed(t, 0, func(s *story) {
		s.harm(one, history.Sick)
		s.shows(one, false)
		s.txn(put(s.keys.Status("web"), store.Status{
			Schema: 1, Group: "web", Health: 50, State: store.GroupStarted,
			Blocked: []store.Blocked{{Rule: "HEAL-2", What: "replacement of " + one, Why: "both budgets are used up"}},
		}))
	})
	found := Judge(s.events, Terms{})
	told := Tell(found)
	if len(found) != 1 || !strings.Contains(told, one+" does not report that it is healthy") ||
		!strings.Contains(told, "both budgets are used up") {
		t.Fatal(told)
	}
}
