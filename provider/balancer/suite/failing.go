package suite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// proves LB-3
func forgottenIsPutBack(s *subject) {
	if s.Forget == nil {
		s.Without("nothing here has it start again")
	}
	one, two := s.start("one"), s.start("two")
	stays, leaves := s.member(1, one), s.member(2, two)
	s.serve(stays, leaves)
	s.drain(leaves)
	if err := s.Forget(); err != nil {
		s.Fatalf("have it forget: %v", err)
	}
	// In any of these states, one pass of a coordinator corrects the members.
	s.poll(func() (bool, string) {
		l, err := s.b.List(s.ctx(), s.shard, s.records())
		if err != nil || len(l.Silent()) > 0 {
			return false, fmt.Sprintf("it does not answer after it started again: %v, %v", err, l.Silent())
		}
		if !l.Of(stays).InPlace() {
			s.add(stays)
		}
		if !l.Of(leaves).Leaving() {
			s.drain(leaves)
		}
		return l.Of(stays).Confirmed() && l.Of(leaves).Leaving(), fmt.Sprintf("one in service, one leaving: %+v", l.Targets)
	})
	if !s.noTraffic() {
		if got := s.traffic(10); got["one"] != 10 {
			s.Errorf("10 requests went to %v", got)
		}
	}
}

func endedContext(s *subject) {
	one, two := s.start("one"), s.start("two")
	m, other := s.member(1, one), s.member(2, two)
	s.serve(m)
	s.record(other)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, call := range map[string]func() error{
		"Add":    func() error { return s.b.Add(ctx, s.shard, other) },
		"Drain":  func() error { return s.b.Drain(ctx, s.shard, m) },
		"Remove": func() error { return s.b.Remove(ctx, s.shard, m) },
		"List":   func() error { _, err := s.b.List(ctx, s.shard, s.records()); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			s.Errorf("%s with an ended context: %v, want context.Canceled", name, err)
		}
	}
	l := s.list()
	if !l.Of(m).Confirmed() || l.Of(other).Has > 0 {
		s.Errorf("calls with an ended context changed something: %+v", l.Targets)
	}
}

// broken returns the case of one failure: calls return an error in time, and nothing is concluded.
//
// proves LB-2, LB-3
func broken(way Way) func(*subject) {
	return func(s *subject) {
		if s.Break[way] == nil {
			s.Without("nothing here has it fail in this way")
		}
		one, two := s.start("one"), s.start("two")
		m, other := s.member(1, one), s.member(2, two)
		s.serve(m)
		s.record(other)
		mended := sync.OnceFunc(s.Break[way]())
		s.later(mended)
		timely := s.b.Capabilities().CallTimeout + 10*time.Second // and some time for a loaded machine
		calls := []struct {
			name string
			do   func(context.Context) error
		}{
			{"List", func(ctx context.Context) error {
				l, err := s.b.List(ctx, s.shard, s.records())
				if err == nil && way == Refuses && l.Of(m).Confirmed() {
					return provider.ErrCredentials // a client without the right to change may have the right to read
				}
				if err == nil {
					s.Errorf("a balancer of which no target answers listed %+v", l)
				}
				return err
			}},
			{"Add", func(ctx context.Context) error { return s.b.Add(ctx, s.shard, other) }},
			{"Drain", func(ctx context.Context) error { return s.b.Drain(ctx, s.shard, m) }},
			{"Remove", func(ctx context.Context) error { return s.b.Remove(ctx, s.shard, m) }},
		}
		for _, call := range calls {
			ctx, cancel := context.WithTimeout(s.base, s.Patience)
			begun := time.Now()
			err := call.do(ctx)
			cancel()
			switch took := time.Since(begun); {
			case err == nil:
				s.Errorf("%s succeeded", call.name)
			case way == Refuses && provider.KindOf(err) != provider.Credentials:
				s.Errorf("%s: %v, want refused credentials", call.name, err)
			case way != Refuses && provider.KindOf(err) != provider.Temporary && provider.KindOf(err) != provider.Throttled:
				s.Errorf("%s: %v is of kind %s, and proves something", call.name, err, provider.KindOf(err))
			case took > timely:
				s.Errorf("%s took %s", call.name, took)
			}
		}
		mended()
		// Add, Drain and Remove may have had their effect. A pass corrects the members.
		s.poll(func() (bool, string) {
			l, err := s.b.List(s.ctx(), s.shard, s.records())
			if err != nil || len(l.Silent()) > 0 {
				return false, fmt.Sprintf("it does not answer after it was mended: %v, %v", err, l.Silent())
			}
			if !l.Of(m).InPlace() {
				s.add(m)
			}
			return l.Of(m).Confirmed(), fmt.Sprintf("in service again: %+v", l.Targets)
		})
	}
}
