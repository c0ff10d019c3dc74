package suite

import (
	"github.com/leasehold/leasehold/provider/balancer"
)

// proves LB-1, DRAIN-1
func drainKeepsWhatIsInUse(s *subject) {
	one, two := s.start("one"), s.start("two")
	m1, m2 := s.member(1, one), s.member(2, two)
	s.serve(m1, m2)
	var under *slow
	if !s.noTraffic() {
		under = s.begin(one, 2)
		if s.b.Capabilities().Connections {
			s.await(m1, "one connection", func(st balancer.Membership) bool { return st.Connections == 1 })
		}
	}
	s.drain(m1)
	s.await(m1, "leaving", balancer.Membership.Leaving)
	if under == nil {
		return
	}
	asked := one.asked.Load()
	if got := s.traffic(20); got["two"] != 20 || one.asked.Load() != asked {
		s.Errorf("20 requests went to %v while the other drained", got)
	}
	select {
	case <-under.done:
		s.Errorf("the drain ended a request: %q, %v", under.name, under.err)
	default:
	}
	if membership := s.list().Of(m1); membership.Drained() {
		s.Errorf("drained with a request under way: %+v", membership)
	}
	one.release()
	<-under.done
	if under.err != nil || under.name != "one" {
		s.Errorf("the request that was under way: %q, %v", under.name, under.err)
	}
	if s.b.Capabilities().DrainEnds {
		s.await(m1, "drained", balancer.Membership.Drained)
	}
	s.remove(m1)
	s.awaitGone(m1)
}

func drainAgain(s *subject) {
	one := s.start("one")
	m := s.member(1, one)
	s.drain(m)
	s.remove(m)
	s.serve(m)
	for range 2 {
		s.drain(m)
	}
	if err := s.another().Drain(s.ctx(), s.shard, m); err != nil {
		s.Errorf("Drain by another coordinator: %v", err)
	}
	s.await(m, "leaving", balancer.Membership.Leaving)
	s.remove(m)
	s.drain(m)
	s.awaitGone(m)
}

// proves LB-3
func addEndsADrain(s *subject) {
	one := s.start("one")
	m := s.member(1, one)
	s.serve(m)
	s.drain(m)
	s.await(m, "leaving", balancer.Membership.Leaving)
	s.add(m)
	s.awaitServed(m)
	if !s.noTraffic() {
		if got := s.traffic(5); got["one"] != 5 {
			s.Errorf("5 requests went to %v", got)
		}
	}
}

// proves LB-1
func removeDuringADrain(s *subject) {
	one, two := s.start("one"), s.start("two")
	m1, m2 := s.member(1, one), s.member(2, two)
	s.serve(m1, m2)
	var under *slow
	if !s.noTraffic() {
		under = s.begin(one, 2)
	}
	s.drain(m1)
	s.remove(m1)
	s.await(m1, "leaving", balancer.Membership.Leaving)
	if !s.b.Capabilities().Leaves {
		s.awaitGone(m1)
	}
	if under == nil {
		return
	}
	asked := one.asked.Load()
	if got := s.traffic(20); got["two"] != 20 || one.asked.Load() != asked {
		s.Errorf("20 requests went to %v after the other was removed", got)
	}
	one.release()
	<-under.done // cut or answered
	s.awaitGone(m1)
}

func removeAgain(s *subject) {
	one := s.start("one")
	m := s.member(1, one)
	s.remove(m)
	s.serve(m)
	for range 2 {
		s.remove(m)
	}
	if err := s.another().Remove(s.ctx(), s.shard, m); err != nil {
		s.Errorf("Remove by another coordinator: %v", err)
	}
	s.awaitGone(m)
}
