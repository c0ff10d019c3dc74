package scenario

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// groupHealth is the availability of a group, now and at worst.
type groupHealth struct {
	name  string
	size  int  // wanted now
	bar   int  // what availability is a percentage of: the size, but the previous size while a group grows
	best  int  // the most instances that were healthy at once before the group was first complete
	first bool // it was complete once
	last  time.Duration
	whole bool          // everything is as wanted
	since time.Duration // when it last ceased to be so

	healthy   int // percent of bar now
	worst     int // percent
	worstAt   time.Duration
	worstOf   [2]int // healthy, of bar
	serving   int    // percent at worst
	servingAt time.Duration
	below     time.Duration // total time below 100%
	longest   time.Duration // longest time below 100%
	fell      time.Duration // when it fell below
	storm     bool
	storms    int
}

// count has a group's numbers of instances.
type count struct {
	there   int // recorded
	settled int // running, or finished
	healthy int
	serving int
}

func (c *count) add(other count, times int) {
	c.there += times * other.there
	c.settled += times * other.settled
	c.healthy += times * other.healthy
	c.serving += times * other.serving
}

func (st *groupHealth) look(at time.Duration, w *sim.World, c, settled count) {
	if st.healthy < 100 {
		st.below += at - st.last
		st.longest = max(st.longest, at-st.fell)
	}
	st.last = at
	spec, there := w.Group(st.name)
	st.size = 0
	if there && !spec.Stopped && !spec.Unstarted && !spec.Deleting {
		st.size = w.SizeOf(st.name)
	}
	st.bar = min(st.bar, st.size)
	if st.best = max(st.best, c.healthy); c.healthy >= st.size {
		st.bar, st.first = st.size, true
	}
	was := st.healthy
	st.healthy = share(c.healthy, st.bar)
	if st.healthy < 100 && was >= 100 {
		st.fell = at
	}
	if st.healthy < st.worst {
		st.worst, st.worstAt, st.worstOf = st.healthy, at, [2]int{c.healthy, st.bar}
	}
	if s := share(c.serving, st.bar); s < st.serving {
		st.serving, st.servingAt = s, at
	}
	whole := settled.there == st.size && settled.settled == st.size && settled.healthy == st.size &&
		upToDate(w, st.name, spec, there)
	if st.whole && !whole {
		st.since = at
	}
	st.whole = whole
}

// upToDate reports whether the leader has applied the spec, and no instance needs a change.
func upToDate(w *sim.World, name string, spec store.Group, there bool) bool {
	status := sim.Read[store.Status](w, w.Keys().Status(name))
	if !there {
		return !status.Present()
	}
	if spec.Deleting {
		return false // it is gone when it is done
	}
	s := &status.Record
	return s.AcceptedRevision == sim.Read[store.Group](w, w.Keys().Group(name)).Modified &&
		(s.Outdated == 0 || spec.Rollout.Strategy == store.StrategyOpportunistic)
}

// share is a percentage, rounded down; a share of nothing is 100.
func share(n, of int) int {
	if of == 0 || n >= of {
		return 100
	}
	return n * 100 / of
}
