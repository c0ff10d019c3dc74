package planning

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// Storm is what many simultaneous losses cost, and what is decided for them.
type Storm struct {
	Lost   int  `json:"lost"`
	Groups int  `json:"groups"`
	Judged Cost `json:"judged"` // from the end of the leases until every group's plan has judged them
	// Longest is the longest single plan in that time. Other events wait that long.
	Longest time.Duration `json:"longest_plan_ns"`
	// Replaced are the instances for which anything was created or removed: none, if the planner
	// recognised the storm (SAFE-2).
	Replaced int  `json:"replaced"`
	Returned Cost `json:"returned"` // from the agents' return until all groups are as before
	Left     int  `json:"left"`     // groups that are not healthy then
}

// crowdOf returns the instances of the first groups: as many whole groups as are needed for so many
// losses.
func (s Size) crowdOf(lost int) (ids []string, groups int) {
	for g := 0; g < s.Groups && len(ids) < lost; g++ {
		groups++
		for slot := range s.of(g) {
			ids = append(ids, instanceID(groupName(g), slot))
		}
	}
	return ids, groups
}

// aBatch is how many changes one batch of the watch holds: as many leases as etcd ends at once (see
// the bench of etcd).
const aBatch = 500

// storm ends the leases of many instances at once, always of whole groups, and lets them return.
func (l *leader) storm(size Size, lost int) Storm {
	ids, groups := size.crowdOf(lost)
	s := Storm{Lost: len(ids), Groups: groups}
	batches := func(of func(id string) store.Event) {
		var events []store.Event
		for i, id := range ids {
			if events = append(events, of(id)); len(events) == aBatch || i == len(ids)-1 {
				l.happens(events)
				events = nil
			}
		}
	}
	carry := func() {
		for {
			begun := time.Now()
			p, n := l.step()
			if n == 0 {
				return
			}
			s.Longest = max(s.Longest, time.Since(begun))
			s.Replaced += drastic(p)
			l.carryOut()
		}
	}
	batches(func(id string) store.Event { return put(keys.Alive(id), aliveOf(id, store.StreamOverdue)) })
	l.pass(silence)
	carry()
	s.Longest = 0
	s.Judged = costOf(func() {
		batches(func(id string) store.Event { return deleted(keys.Alive(id)) })
		carry()
		l.pass(time.Second) // confirmed by the provider: DET-17
		carry()
	})
	longest := s.Longest
	s.Returned = costOf(func() {
		batches(func(id string) store.Event { return put(keys.Alive(id), aliveOf(id, store.StreamOpen)) })
		carry()
		l.pass(10 * time.Minute) // until the storm is over, and its effects are settled
		carry()
	})
	s.Longest = longest
	for g := range groups {
		if st := l.content.Status[groupName(g)].Record; !st.OK || st.Healthy != size.of(g) {
			s.Left++
		}
	}
	return s
}

// drastic counts the actions that create or remove a machine.
func drastic(p plan.Plan) (n int) {
	for i := range p.Actions {
		if slices.Contains([]store.Phase{store.Pending, store.Draining, store.Stopping, store.Deleting},
			p.Actions[i].To) {
			n++
		}
	}
	return n
}
