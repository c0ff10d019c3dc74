package suite

import (
	"fmt"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
)

func capabilities(s *subject) {
	c := s.b.Capabilities()
	if c.CallTimeout <= 0 || c.Consistency < 0 {
		s.Errorf("CallTimeout %s, Consistency %s", c.CallTimeout, c.Consistency)
	}
	if err := s.b.Validate(s.Use); err != nil {
		s.Errorf("Validate refuses the use of this suite: %v", err)
	}
	for _, u := range []balancer.Use{
		{Weight: -1, Settings: s.Use.Settings}, {Weight: balancer.MaxWeight + 1, Settings: s.Use.Settings},
	} {
		if err := s.b.Validate(u); provider.KindOf(err) != provider.Invalid {
			s.Errorf("Validate of weight %d: %v, want an invalid one", u.Weight, err)
		}
	}
	if c.Settings == nil {
		if err := s.b.Validate(balancer.Use{Settings: map[string]any{"x": 1}}); provider.KindOf(err) != provider.Invalid {
			s.Errorf("Validate of settings, without a schema: %v", err)
		}
	}
	if !c.Weights {
		if err := s.b.Validate(balancer.Use{Weight: 2, Settings: s.Use.Settings}); provider.KindOf(err) != provider.Invalid {
			s.Errorf("Validate of a weight, without weights: %v", err)
		}
	}
}

// proves LB-1
func addBringsTraffic(s *subject) {
	one, two := s.start("one"), s.start("two")
	m1, m2 := s.member(1, one), s.member(2, two)
	s.serve(m1, m2)
	for _, t := range s.list().Targets {
		if len(t.Members) != 2 {
			s.Errorf("listed: %+v", t)
		}
		for _, st := range t.Members {
			if st.State != balancer.Ready || st.Connections > 0 ||
				(st.Health == balancer.HealthUnknown) == s.b.Capabilities().Health {
				s.Errorf("listed: %+v", st)
			}
		}
	}
	if s.noTraffic() {
		return
	}
	if got := s.traffic(20); got["one"] == 0 || got["two"] == 0 {
		s.Errorf("20 requests went to %v", got)
	}
}

// noTraffic records that the harness has no address for clients.
func (s *subject) noTraffic() bool {
	if s.Front == "" {
		s.Unproved("nothing here sends traffic through it")
	}
	return s.Front == ""
}

// proves LB-1
func addTwice(s *subject) {
	one := s.start("one")
	m := s.member(1, one)
	s.serve(m)
	if s.Front != "" {
		defer func(r *slow) {
			one.release()
			<-r.done
			if r.err != nil {
				s.Errorf("the second Add cut a request: %v", r.err)
			}
		}(s.begin(one, 1))
	}
	s.add(m)
	other := s.another()
	if err := other.Add(s.ctx(), s.shard, m); err != nil {
		s.Errorf("Add by another coordinator: %v", err)
	}
	s.awaitServed(m)
	for _, t := range s.list().Targets {
		if len(t.Members) != 1 {
			s.Errorf("listed: %+v", t)
		}
	}
}

// another returns the balancer as another coordinator opens it.
func (s *subject) another() balancer.Balancer {
	b, err := s.Open()
	if err != nil {
		s.Fatalf("open the balancer: %v", err)
	}
	return patient{b}
}

// proves LB-3
func addAtAnotherAddress(s *subject) {
	one, two := s.start("one"), s.start("two")
	before, after := s.member(1, one), s.member(1, two)
	s.serve(before)
	if s.b.Capabilities().Named {
		s.add(after) // such a balancer finds the member by its instance
	} else {
		s.remove(before)
		s.add(after)
	}
	s.awaitServed(after)
	// Late calls for the old address find nothing.
	s.drain(before)
	s.remove(before)
	if membership := s.list().Of(after); !membership.Confirmed() {
		s.Errorf("calls for the address before changed the member: %+v", membership)
	}
	for _, t := range s.list().Targets {
		if s.b.Capabilities().Leaves {
			break // the removed member may still be leaving
		}
		if len(t.Members) != 1 || t.Members[0].Port != two.port {
			s.Errorf("listed: %+v", t)
		}
	}
	if !s.noTraffic() {
		if got := s.traffic(10); got["two"] != 10 {
			s.Errorf("10 requests went to %v", got)
		}
	}
	s.remove(after)
	s.awaitGone(after)
}

// proves SEC-7
func addOfWhatCannotBe(s *subject) {
	one := s.start("one")
	good := s.member(1, one)
	for what, change := range map[string]func(*balancer.Member){
		"no address":     func(m *balancer.Member) { m.Address = "" },
		"a name":         func(m *balancer.Member) { m.Address = "localhost" },
		"a command":      func(m *balancer.Member) { m.Address = "127.0.0.1;shutdown" },
		"a line":         func(m *balancer.Member) { m.Address = "127.0.0.1\nx" },
		"no port":        func(m *balancer.Member) { m.Port = 0 },
		"a large port":   func(m *balancer.Member) { m.Port += 65536 },
		"a large weight": func(m *balancer.Member) { m.Weight = 1000 },
		"no instance":    func(m *balancer.Member) { m.Instance = "" },
		"a path":         func(m *balancer.Member) { m.Instance = "../x" },
		"a space":        func(m *balancer.Member) { m.Instance = "a b" },
		"another line":   func(m *balancer.Member) { m.Instance = "a\nb" },
	} {
		m := good
		change(&m)
		if err := s.b.Add(s.ctx(), s.shard, m); provider.KindOf(err) != provider.Invalid || err == nil {
			s.Errorf("Add with %s: %v, want an invalid one", what, err)
		}
	}
	if err := s.b.Add(s.ctx(), "a shard", good); provider.KindOf(err) != provider.Invalid || err == nil {
		s.Errorf("Add for a shard that is none: %v", err)
	}
	for _, t := range s.list().Targets {
		if len(t.Members) > 0 {
			s.Errorf("listed: %+v", t)
		}
	}
}

func weightIsKept(s *subject) {
	if !s.b.Capabilities().Weights {
		s.Without("it knows no weights")
	}
	one, two := s.start("one"), s.start("two")
	heavy, light := s.member(1, one), s.member(2, two)
	heavy.Weight, light.Weight = 90, 10
	s.serve(heavy, light)
	for _, m := range []balancer.Member{heavy, light} {
		if !s.list().Of(m).InPlace() {
			s.Errorf("%s: listed %+v", m.Instance, s.list().Targets)
		}
	}
	if !s.noTraffic() {
		if got := s.traffic(50); got["one"] < 35 || got["two"] == 0 {
			s.Errorf("weights 90 and 10: 50 requests went to %v", got)
		}
	}
	heavy.Weight = 10
	if s.list().Of(heavy).InPlace() {
		s.Errorf("a weight that is not so is in place")
	}
	s.add(heavy)
	s.await(heavy, "with its new weight", balancer.Membership.InPlace)
}

// proves LB-2
func healthIsProved(s *subject) {
	if !s.b.Capabilities().Health {
		s.Without("it checks no members")
	}
	one := s.start("one")
	m := s.member(1, one)
	one.stop() // nothing listens there any more
	s.add(m)
	s.poll(func() (bool, string) {
		l := s.list()
		membership := l.Of(m)
		if membership.Up > 0 || membership.Confirmed() {
			s.Fatalf("a member at which nothing listens is up: %+v", l.Targets)
		}
		return membership.Down == len(l.Targets), fmt.Sprintf("down: %+v", l.Targets)
	})
	if !s.list().Of(m).Unhealthy() {
		s.Errorf("a member that is down is not unhealthy")
	}
	again := s.startAt("one", m.Port)
	s.awaitServed(m)
	again.stop()
	s.await(m, "down again", balancer.Membership.Unhealthy)
	s.remove(m)
	s.awaitGone(m)
	// Earlier health checks of an address do not count.
	s.add(m)
	s.poll(func() (bool, string) {
		l := s.list()
		membership := l.Of(m)
		if membership.Up > 0 {
			s.Fatalf("a member that was added again is up by an old check: %+v", l.Targets)
		}
		return membership.Down == len(l.Targets), fmt.Sprintf("down: %+v", l.Targets)
	})
}
