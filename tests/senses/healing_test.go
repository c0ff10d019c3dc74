package senses

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What is not fooled must still heal: groups of one and of two whose machines are gone, all of them.
//
// proves SAFE-6
func TestSmallGroupsHeal(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 1})
	s.apply("one", 1)
	s.apply("two", 2)
	s.apply("many", 20) // else three lost of three were a storm of the shard
	before := s.settle()
	victims := slices.Concat(s.members("one"), s.members("two"))
	if err := s.control.Cut(victims...); err != nil {
		t.Fatal(err)
	}
	s.await("both being healed", func() bool {
		for _, v := range victims {
			if slices.Contains(s.members("one"), v) || slices.Contains(s.members("two"), v) {
				return false
			}
		}
		return s.complete("one", 1) && s.complete("two", 2)
	})
	if c := s.since(before); c.Created != 3 || c.Destroyed != 3 || c.Judged != 3 {
		t.Fatalf("three machines were gone: %s", c)
	}
}

// A storm in one group keeps no other from healing, unless so many are lost in several that it is one of the shard.
//
// proves SAFE-2, SAFE-6
func TestStormOfOneGroup(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 1})
	s.apply("left", 6)
	s.apply("right", 40, "budget: {max_expansion: 10}") // so many that two of them may be late with a report beside those that are cut off
	before := s.settle()
	left := s.members("left")
	cut := func(instances ...string) {
		t.Helper()
		if err := s.control.Cut(instances...); err != nil {
			t.Fatal(err)
		}
	}
	cut(left...)
	s.await("all of left being lost", func() bool { return s.since(before).Judged == len(left) })
	s.statusSays("STORM: held")
	victim := s.members("right")[0]
	cut(victim)
	s.await("right being healed", func() bool { return !slices.Contains(s.members("right"), victim) && s.complete("right", 40) })
	if c := s.since(before); c.Created != 1 || c.Destroyed != 1 || c.Judged != len(left)+1 {
		t.Fatalf("a storm in left, and one lost in right: %s", c)
	}
	if now := s.members("left"); !slices.Equal(now, left) {
		t.Fatalf("left had %v and has %v in a storm", left, now)
	}
	// Five more of right: that makes more than a fifth of the shard, in two groups.
	more := s.members("right")[:5]
	cut(more...)
	s.await("a storm of the shard", func() bool {
		st := records[store.Status](s, store.KindStatus)["right"].Record.Storm
		return st != nil && st.Shard
	})
	s.await("five of right being lost", func() bool { return s.since(before).Judged == len(left)+1+len(more) })
	s.pass(2 * s.ttl)
	s.statusSays("STORM of the shard: held")
	if c := s.since(before); c.Created != 1 || c.Destroyed != 1 {
		t.Fatalf("a storm of the shard: %s", c)
	}
	if err := s.control.Mend(slices.Concat(left, more)...); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Second)
	s.awaitCalm()
	if c := s.since(before); c.Created != 1 || c.Destroyed != 1 {
		t.Fatalf("all are back: %s", c)
	}
}
