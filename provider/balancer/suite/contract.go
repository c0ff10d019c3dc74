package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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

// noTraffic notes that no client can reach the balancer.
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

// another is the balancer as another coordinator has it.
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
	// Calls for the old address that come late find nothing.
	s.drain(before)
	s.remove(before)
	if standing := s.list().Of(after); !standing.Confirmed() {
		s.Errorf("calls for the address before changed the member: %+v", standing)
	}
	for _, t := range s.list().Targets {
		if s.b.Capabilities().Leaves {
			break // what was removed may still be leaving
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
	s.await(heavy, "with its new weight", balancer.Standing.InPlace)
}

// proves LB-2
func healthIsProved(s *subject) {
	if !s.b.Capabilities().Health {
		s.Without("it checks no members")
	}
	one := s.start("one")
	m := s.member(1, one)
	one.stop() // now nothing listens there
	s.add(m)
	s.poll(func() (bool, string) {
		l := s.list()
		standing := l.Of(m)
		if standing.Up > 0 || standing.Confirmed() {
			s.Fatalf("a member at which nothing listens is up: %+v", l.Targets)
		}
		return standing.Down == len(l.Targets), fmt.Sprintf("down: %+v", l.Targets)
	})
	if !s.list().Of(m).Unhealthy() {
		s.Errorf("a member that is down is not unhealthy")
	}
	again := s.startAt("one", m.Port)
	s.awaitServed(m)
	again.stop()
	s.await(m, "down again", balancer.Standing.Unhealthy)
	s.remove(m)
	s.awaitGone(m)
	// What the balancer has seen of an address before counts for nothing.
	s.add(m)
	s.poll(func() (bool, string) {
		l := s.list()
		standing := l.Of(m)
		if standing.Up > 0 {
			s.Fatalf("a member that was added again is up by an old check: %+v", l.Targets)
		}
		return standing.Down == len(l.Targets), fmt.Sprintf("down: %+v", l.Targets)
	})
}

// proves LB-1, DRAIN-1
func drainKeepsWhatIsInUse(s *subject) {
	one, two := s.start("one"), s.start("two")
	m1, m2 := s.member(1, one), s.member(2, two)
	s.serve(m1, m2)
	var under *slow
	if !s.noTraffic() {
		under = s.begin(one, 2)
		if s.b.Capabilities().Connections {
			s.await(m1, "one connection", func(st balancer.Standing) bool { return st.Connections == 1 })
		}
	}
	s.drain(m1)
	s.await(m1, "leaving", balancer.Standing.Leaving)
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
	if standing := s.list().Of(m1); standing.Drained() {
		s.Errorf("drained with a request under way: %+v", standing)
	}
	one.release()
	<-under.done
	if under.err != nil || under.name != "one" {
		s.Errorf("the request that was under way: %q, %v", under.name, under.err)
	}
	if s.b.Capabilities().DrainEnds {
		s.await(m1, "drained", balancer.Standing.Drained)
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
	s.await(m, "leaving", balancer.Standing.Leaving)
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
	s.await(m, "leaving", balancer.Standing.Leaving)
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
	s.await(m1, "leaving", balancer.Standing.Leaving)
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
	<-under.done // cut or answered, but ended
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
	// Whatever is left of them: a pass of a coordinator makes it right.
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
		Harness: s.Harness, findings: s.findings, base: s.base, b: s.b, shard: "sh" + word(), word: s.word,
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
	if standing := other.list().Of(theirs); !standing.Confirmed() {
		s.Errorf("the member of the other shard: %+v", standing)
	}
}

// Two coordinators act at once: one was deposed and does not know it. Each passes over all members
// until they are as they should be.
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
				wg.Go(func() { _ = do(b, m) }) // what fails is done again at the next pass
			}
		}
		wg.Wait()
	}
	ctx := s.ctx()
	pass := func(what string, do func(b balancer.Balancer, m balancer.Member) error, so func(balancer.Standing) bool) {
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
		balancer.Standing.InPlace)
	for _, t := range s.list().Targets {
		if len(t.Members) != n {
			s.Errorf("%d members were added, and listed are %+v", n, t)
		}
	}
	for _, m := range members {
		s.awaitServed(m)
	}
	pass("Drain", func(b balancer.Balancer, m balancer.Member) error { return b.Drain(ctx, s.shard, m) },
		balancer.Standing.Leaving)
	every(func(b balancer.Balancer, m balancer.Member) error { return b.Remove(ctx, s.shard, m) })
	for _, m := range members {
		s.remove(m)
		s.awaitGone(m)
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

// broken is the case of one way to fail: calls fail in time, and nothing is concluded.
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
		timely := s.b.Capabilities().CallTimeout + 10*time.Second // and some time for this machine
		calls := []struct {
			name string
			do   func(context.Context) error
		}{
			{"List", func(ctx context.Context) error {
				l, err := s.b.List(ctx, s.shard, s.records())
				if err == nil && way == Refuses && l.Of(m).Confirmed() {
					return provider.ErrCredentials // who may change nothing may perhaps read
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
		// Drain and Remove may have had their effect, and so may Add. A pass makes it right.
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
