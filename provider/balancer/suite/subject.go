package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/proof"
)

// subject is a balancer under test, with a shard of its own.
type subject struct {
	Harness
	*findings
	base  context.Context
	b     balancer.Balancer
	shard string
	word  string // of the IDs in this case

	lock     sync.Mutex
	recorded map[string]balancer.Member // recorded before Add, as coordinators do
}

// findings are the results of a case, and its cleanup.
type findings struct {
	proof.Findings
	mu      sync.Mutex
	closers []func()
}

// later adds a function to the cleanup at the end of the case.
func (s *subject) later(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, do)
}

// clear removes the case's members, even if the suite is interrupted.
func (s *subject) clear() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.base), s.Patience)
	defer cancel()
	for _, m := range s.records() {
		if err := s.b.Remove(ctx, s.shard, m); err != nil {
			s.Errorf("remove what the case left: %v", err)
		}
	}
	for _, do := range slices.Backward(s.closers) {
		do()
	}
}

// records returns all members that were ever recorded.
func (s *subject) records() []balancer.Member {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Collect(maps.Values(s.recorded))
}

// member returns an instance of this case at a backend.
func (s *subject) member(n int, at *backend) balancer.Member {
	return balancer.Member{Instance: fmt.Sprintf("%s-%d", s.word, n), Address: s.Host, Port: at.port, Use: s.Use}
}

func (s *subject) record(m balancer.Member) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.recorded[fmt.Sprintf("%s %s %d", m.Instance, m.Address, m.Port)] = m
}

// ctx returns the context of one call.
func (s *subject) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.base, s.b.Capabilities().CallTimeout+s.Patience)
	s.later(cancel)
	return ctx
}

func (s *subject) add(m balancer.Member) {
	s.record(m)
	if err := s.b.Add(s.ctx(), s.shard, m); err != nil {
		s.Fatalf("Add(%s): %v", m.Instance, err)
	}
}

func (s *subject) drain(m balancer.Member) {
	if err := s.b.Drain(s.ctx(), s.shard, m); err != nil {
		s.Fatalf("Drain(%s): %v", m.Instance, err)
	}
}

func (s *subject) remove(m balancer.Member) {
	if err := s.b.Remove(s.ctx(), s.shard, m); err != nil {
		s.Fatalf("Remove(%s): %v", m.Instance, err)
	}
}

func (s *subject) list() balancer.Listing {
	l, err := s.b.List(s.ctx(), s.shard, s.records())
	if err != nil {
		s.Fatalf("List: %v", err)
	}
	if err := balancer.Failure(l.Targets); err != nil {
		s.Fatalf("List: %v", err)
	}
	if len(l.Targets) == 0 {
		s.Fatalf("List has no target")
	}
	return l
}

// poll repeats a look until it is done, or fails the case with the last observation.
func (s *subject) poll(look func() (done bool, saw string)) {
	s.Await(s.base, s.Poll, s.Patience+s.b.Capabilities().Consistency, look)
}

// await polls List until the instance's membership meets a condition.
func (s *subject) await(m balancer.Member, what string, so func(balancer.Membership) bool) {
	s.poll(func() (bool, string) {
		l := s.list()
		return so(l.Of(m)), fmt.Sprintf("%s: %s; listed is %+v", m.Instance, what, l.Targets)
	})
}

func (s *subject) awaitServed(m balancer.Member) {
	s.await(m, "in service", balancer.Membership.Confirmed)
}

func (s *subject) awaitGone(m balancer.Member) { s.await(m, "gone", balancer.Membership.Gone) }

// serve adds members and waits until they are in service.
func (s *subject) serve(members ...balancer.Member) {
	for _, m := range members {
		s.add(m)
	}
	for _, m := range members {
		s.awaitServed(m)
	}
}

// patient is a balancer whose caller waits when it is throttled, as coordinators do.
type patient struct{ balancer.Balancer }

func (p patient) Add(ctx context.Context, shard string, m balancer.Member) error {
	return patiently(ctx, func() error { return p.Balancer.Add(ctx, shard, m) })
}

func (p patient) Drain(ctx context.Context, shard string, m balancer.Member) error {
	return patiently(ctx, func() error { return p.Balancer.Drain(ctx, shard, m) })
}

func (p patient) Remove(ctx context.Context, shard string, m balancer.Member) error {
	return patiently(ctx, func() error { return p.Balancer.Remove(ctx, shard, m) })
}

func (p patient) List(ctx context.Context, shard string, recorded []balancer.Member) (l balancer.Listing, err error) {
	err = patiently(ctx, func() error { l, err = p.Balancer.List(ctx, shard, recorded); return err })
	return l, err
}

func patiently(ctx context.Context, call func() error) error {
	for {
		err := call()
		if !errors.Is(err, provider.ErrThrottled) {
			return err
		}
		after, _ := provider.RetryAfter(err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(after):
		}
	}
}
