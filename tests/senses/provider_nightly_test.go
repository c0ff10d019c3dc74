//go:build nightly

package senses

import (
	"testing"

	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/stage"
)

// A provider whose List is as it was before the group grew.
//
// proves DET-4
func TestProviderIsBehind(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 1})
	s.Apply("web", 10)
	s.lie(fake.Lie{Kind: fake.Stale})
	s.listed(2)
	s.Leasehold("group", "scale", "web", "20")
	s.Await("ten more", func() bool { return len(s.Instances("web")) == 20 && s.Open() == 20 })
	before := s.Mark()
	s.listed(10)
	if c := s.Since(before); c.Created != 0 || c.Destroyed != 0 || c.Judged != 0 {
		t.Fatalf("List shows nothing of the ten newest: %s", c)
	}
	s.lie(fake.Lie{Kind: fake.Truth})
	s.Await("web being complete", func() bool { return s.Complete("web", 20) })
	s.AwaitCalm()
	if n := len(stage.Records[store.Instance](s.Stage, store.KindInstances)); n != 20 {
		t.Fatalf("there are %d instances", n)
	}
	s.Sees("web")
}
