package senses

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/stage"
)

// What is not fooled must still heal: groups of one and of two whose machines are gone, all of
// them.
//
// proves SAFE-6
func TestSmallGroupsHeal(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 1})
	s.Apply("one", 1)
	s.Apply("two", 2)
	s.Apply("many", 20) // otherwise three lost of three would be a storm of the shard
	before := s.Settle()
	victims := slices.Concat(s.Instances("one"), s.Instances("two"))
	if err := s.Control.Cut(victims...); err != nil {
		t.Fatal(err)
	}
	s.Await("both being healed", func() bool {
		for _, v := range victims {
			if slices.Contains(s.Instances("one"), v) || slices.Contains(s.Instances("two"), v) {
				return false
			}
		}
		return s.Complete("one", 1) && s.Complete("two", 2)
	})
	if c := s.Since(before); c.Created != 3 || c.Destroyed != 3 || c.Judged != 3 {
		t.Fatalf("three machines were gone: %s", c)
	}
}

// A storm in one group keeps no other from healing, unless so many are lost in several that it is
// one of the shard.
//
// proves SAFE-2, SAFE-6
func TestStormOfOneGroup(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 1})
	s.Apply("left", 6)
	// so many that two of them may be late with a report beside those that are cut off
	s.Apply("right", 40, "budget: {max_expansion: 10}")
	before := s.Settle()
	left := s.Instances("left")
	cut := func(instances ...string) {
		t.Helper()
		if err := s.Control.Cut(instances...); err != nil {
			t.Fatal(err)
		}
	}
	cut(left...)
	s.Await("all of left being lost", func() bool { return s.Since(before).Judged == len(left) })
	s.statusSays("STORM: held")
	victim := s.Instances("right")[0]
	cut(victim)
	s.Await("right being healed", func() bool {
		return !slices.Contains(s.Instances("right"), victim) && s.Complete("right", 40)
	})
	if c := s.Since(before); c.Created != 1 || c.Destroyed != 1 || c.Judged != len(left)+1 {
		t.Fatalf("a storm in left, and one lost in right: %s", c)
	}
	if now := s.Instances("left"); !slices.Equal(now, left) {
		t.Fatalf("left had %v and has %v in a storm", left, now)
	}
	// Five more of right: that makes more than a fifth of the shard, in two groups.
	more := s.Instances("right")[:5]
	cut(more...)
	s.Await("a storm of the shard", func() bool {
		st := stage.Records[store.Status](s.Stage, store.KindStatus)["right"].Record.Storm
		return st != nil && st.Shard
	})
	s.Await("five of right being lost", func() bool { return s.Since(before).Judged == len(left)+1+len(more) })
	s.Pass(2 * s.TTL)
	s.statusSays("STORM of the shard: held")
	if c := s.Since(before); c.Created != 1 || c.Destroyed != 1 {
		t.Fatalf("a storm of the shard: %s", c)
	}
	if err := s.Control.Mend(slices.Concat(left, more)...); err != nil {
		t.Fatal(err)
	}
	s.Pass(time.Second)
	s.AwaitCalm()
	if c := s.Since(before); c.Created != 1 || c.Destroyed != 1 {
		t.Fatalf("all are back: %s", c)
	}
}
