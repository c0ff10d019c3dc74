package suite

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/proof"
)

// proves LB-3, PROV-8
func foreignIsLeftAlone(s *subject) {
	if s.Foreign == nil || s.ForeignStands == nil {
		s.Without("nothing here adds an entry by hand")
	}
	one, two := s.start("one"), s.start("two")
	if err := s.Foreign(s.Host, two.port); err != nil {
		s.Fatalf("add an entry by hand: %v", err)
	}
	m := s.member(1, one)
	s.serve(m)
	for _, t := range s.list().Targets {
		if len(t.Members) != 1 || t.Foreign == 0 {
			s.Errorf("listed: %+v", t)
		}
	}
	s.drain(m)
	s.remove(m)
	s.awaitGone(m)
	if stands, err := s.ForeignStands(s.Host, two.port); err != nil || !stands {
		s.Errorf("another client's entry stands: %v, %v", stands, err)
	}
}

// proves LB-3, PROV-8
func anotherShardIsLeftAlone(s *subject) {
	one, two := s.start("one"), s.start("two")
	ours, theirs := s.member(1, one), s.member(1, two)
	other := &subject{
		Harness: s.Harness, findings: s.findings, base: s.base, b: s.b, shard: "sh" + proof.Word(), word: s.word,
		recorded: map[string]balancer.Member{},
	}
	s.later(func() {
		if err := s.b.Remove(context.WithoutCancel(s.base), other.shard, theirs); err != nil {
			s.Errorf("remove what the case left: %v", err)
		}
	})
	s.serve(ours)
	other.serve(theirs)
	for _, side := range []struct {
		*subject
		m balancer.Member
	}{{s, ours}, {other, theirs}} {
		for _, t := range side.list().Targets {
			if len(t.Members) != 1 || t.Members[0].Port != side.m.Port || t.Foreign == 0 {
				s.Errorf("listed: %+v", t)
			}
		}
	}
	s.drain(ours)
	s.remove(ours)
	s.awaitGone(ours)
	if membership := other.list().Of(theirs); !membership.Confirmed() {
		s.Errorf("the member of the other shard: %+v", membership)
	}
}

// Two coordinators act at once: one was deposed and has not noticed. Each makes passes over all
// members until they are correct.
//
// proves LB-3
func manyAtOnce(s *subject) {
	const n = 4
	var members []balancer.Member
	for i := range n {
		members = append(members, s.member(i, s.start(fmt.Sprintf("b%d", i))))
		s.record(members[i])
	}
	coordinators := []balancer.Balancer{s.b, s.another()}
	every := func(do func(b balancer.Balancer, m balancer.Member) error) {
		var wg sync.WaitGroup
		for _, b := range coordinators {
			for _, m := range members {
				wg.Go(func() { _ = do(b, m) }) // the next pass repeats failed calls
			}
		}
		wg.Wait()
	}
	ctx := s.ctx()
	pass := func(what string, do func(b balancer.Balancer, m balancer.Member) error, so func(balancer.Membership) bool) {
		every(do)
		s.poll(func() (bool, string) {
			l := s.list()
			wrong := slices.DeleteFunc(slices.Clone(members), func(m balancer.Member) bool { return so(l.Of(m)) })
			for _, m := range wrong {
				if err := do(s.b, m); err != nil {
					s.Errorf("%s %s: %v", what, m.Instance, err)
				}
			}
			return len(wrong) == 0, fmt.Sprintf("%s: %d members are wrong: %+v", what, len(wrong), l.Targets)
		})
	}
	pass("Add", func(b balancer.Balancer, m balancer.Member) error { return b.Add(ctx, s.shard, m) },
		balancer.Membership.InPlace)
	for _, t := range s.list().Targets {
		if len(t.Members) != n {
			s.Errorf("%d members were added, and listed are %+v", n, t)
		}
	}
	for _, m := range members {
		s.awaitServed(m)
	}
	pass("Drain", func(b balancer.Balancer, m balancer.Member) error { return b.Drain(ctx, s.shard, m) },
		balancer.Membership.Leaving)
	every(func(b balancer.Balancer, m balancer.Member) error { return b.Remove(ctx, s.shard, m) })
	for _, m := range members {
		s.remove(m)
		s.awaitGone(m)
	}
}
