package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/tier"
)

// served is a world with a group behind a load balancer, and its judge.
type served struct {
	*sim.World
	t      *testing.T
	what   string
	since  map[string]time.Time // since when an instance is in service that should not be
	silent time.Time            // the balancer has not answered until then
	story  []string
}

const drainTime = 20 * time.Second

func servedGroup(size int) store.Group {
	g := web(size)
	g.LoadBalancers = []store.LoadBalancer{{Name: "front"}}
	g.Drain.Timeout = store.Duration(drainTime)
	return g
}

// hooked has the group run a hook as well.
func hooked(g store.Group) store.Group {
	g.Drain.Hook = []string{"./leave"}
	return g
}

func newServed(t *testing.T, seed uint64, g store.Group) *served {
	s := &served{t: t, what: fmt.Sprintf("seed %d", seed), since: map[string]time.Time{}}
	note := func(at time.Time, format string, args ...any) {
		s.story = append(s.story,
			fmt.Sprintf("%9s "+format, append([]any{at.Sub(sim.Epoch).Round(time.Millisecond)}, args...)...))
	}
	s.World = sim.New(sim.Config{
		Seed: seed, Groups: []store.Group{g}, Balancers: []sim.Balancer{{Name: "front"}},
		Observer: sim.Observer{
			Removing:   s.removing,
			Membership: func(at time.Time, c plan.MemberCall) { note(at, "%s %s", c.Kind, c.Member.Instance); s.called(c) },
			Committed: func(at time.Time, a *plan.Action, _ store.Revision) {
				if a.Instance != "" {
					note(at, "%s %s %s: %s", a.Rule, a.Instance, a.What(), a.Why)
				}
			},
			Noted:  func(at time.Time, what string) { note(at, "%s", what) },
			Broken: func(_ time.Time, what string) { s.wrong("%s", what) },
		},
	})
	return s
}

func (s *served) wrong(format string, args ...any) {
	s.t.Helper()
	if s.t.Failed() {
		return
	}
	s.t.Errorf("%s, at %s: "+format, append([]any{s.what, s.Elapsed().Round(time.Millisecond)}, args...)...)
	for _, line := range s.story[max(0, len(s.story)-60):] {
		s.t.Log(line)
	}
}

// removing judges what is stopped: no living instance before its drain has ended or is over.
func (s *served) removing(at time.Time, rec store.Instance) {
	if _, inUse := s.InTraffic("front", rec.ID); !inUse || rec.Dead || at.Before(s.silent.Add(20*time.Second)) {
		return
	}
	for _, t := range rec.Traffic {
		if t.Timer != nil && !at.Before(t.Timer.Start.Add(t.Timer.For.D()-5*time.Second)) {
			return // clocks of leaders differ
		}
	}
	if d := rec.Drain; d != nil && !at.Before(d.Timer.Start.Add(d.Timer.For.D()-5*time.Second)) {
		return
	}
	s.wrong("%s is stopped while it is in use: %s", rec.ID, rec.Last.Why)
}

// called judges each call: no instance may be removed for an absence, a loss or a hold (SAFE-18).
func (s *served) called(c plan.MemberCall) {
	if c.Kind == plan.MemberAdd {
		return
	}
	rec := s.Instance(c.Member.Instance)
	switch {
	case s.Shard().Hold != nil:
		s.wrong("%s %s in a hold", c.Kind, c.Member.Instance)
	case rec.Present() && rec.Record.Phase != store.Draining && rec.Record.Phase != store.Deleting &&
		rec.Record.Address == c.Member.Address+":80":
		s.wrong("%s %s, which is %s", c.Kind, c.Member.Instance, rec.Record.Phase)
	}
}

// look judges which instances are in service now, and whose hook was begun: no instance's that
// still gets new connections, before half of the time is over.
func (s *served) look() {
	for _, id := range s.Instances() {
		rec := s.Instance(id).Record
		begins, _ := s.InTraffic("front", id)
		if d := rec.Drain; begins && rec.Phase == store.Draining && d != nil && d.Token != "" && !d.Lost &&
			len(rec.Spec.Drain.Hook) > 0 && s.Now().Before(d.Timer.Start.Add(d.Timer.For.D()/2-5*time.Second)) {
			s.wrong("the hook of %s is begun, and it is in service", id)
		}
	}
	for _, id := range s.Members("front") {
		rec := s.Instance(id)
		begins, _ := s.InTraffic("front", id)
		leaves := !rec.Present() || rec.Record.Phase == store.Deleting
		if s.Leader() == "" || !begins || !leaves || s.Now().Before(s.silent) || !s.Reachable() || s.Shard().Hold != nil {
			delete(s.since, id)
			continue
		}
		if s.since[id].IsZero() {
			s.since[id] = s.Now()
		}
		if d := s.Now().Sub(s.since[id]); d > 15*time.Second {
			s.wrong("%s is in service for %s, and should not be", id, d)
		}
	}
}

func (s *served) run(d time.Duration) {
	for end := s.Now().Add(d); s.Now().Before(end) && !s.t.Failed(); {
		s.RunUntil(s.Now().Add(time.Second))
		s.look()
	}
}

// inService reports whether all that work are in service, and nothing else.
func (s *served) inService(size int) bool {
	var working []string
	for _, id := range s.Instances() {
		if begins, _ := s.InTraffic("front", id); begins && s.Instance(id).Record.Phase == store.Running && s.Works(id) {
			working = append(working, id)
		}
	}
	return len(working) == size && slices.Equal(working, s.Members("front"))
}

// Instances join when they are healthy, and leave before they are stopped, whatever happens
// meanwhile to the balancer, etcd, leaders and machines. Only instances that drain or are deleted
// are removed. When all trouble has ended, the balancer has all working instances.
//
// proves LB-1, LB-2, LB-3, SAFE-18
func TestTrafficInTrouble(t *testing.T) {
	seeds := []uint64{325} // an Add under way when the drain began
	for seed := range uint64(tier.Pick(20, 2000)) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		g := servedGroup(5)
		if seed%2 == 1 {
			g = hooked(g)
		}
		s := newServed(t, seed, g)
		chance := rand.New(rand.NewPCG(seed, 7))
		s.run(2 * time.Minute)
		if !s.inService(5) {
			s.wrong("not in service at the beginning: %v of %v", s.Members("front"), s.Instances())
		}
		size := 5
		for range 15 {
			s.trouble(chance, &size)
			s.run(time.Duration(5+chance.IntN(60)) * time.Second)
		}
		s.Calm()
		if s.Shard().Hold != nil {
			s.Release()
		}
		s.run(30 * time.Minute)
		if !s.inService(size) {
			s.wrong("in service at the end: %v of %v", s.Members("front"), s.Instances())
		}
		if t.Failed() {
			return
		}
	}
}

// trouble has something happen.
func (s *served) trouble(chance *rand.Rand, size *int) {
	ids := s.Instances()
	some := ""
	if len(ids) > 0 {
		some = ids[chance.IntN(len(ids))]
	}
	long := time.Duration(1+chance.IntN(90)) * time.Second
	switch chance.IntN(16) {
	case 0:
		s.Kill(some)
	case 1:
		s.Cut(some)
	case 2:
		s.Notice(some, long)
	case 3:
		s.KillLeader(10*time.Second, 0)
	case 4:
		s.BalancerForgets("front")
	case 5:
		s.BalancerSilent("front", long)
		s.silent = store.Later(s.silent, s.Now().Add(long+10*time.Second))
	case 6:
		s.BalancerSlow("front", long)
		// A call takes five seconds, and the next one waits for a List.
		s.silent = store.Later(s.silent, s.Now().Add(long+30*time.Second))
	case 7:
		s.BalancerLies("front", long)
	case 8:
		s.RemoveMember("front", some)
	case 9:
		s.Edit("web", func(g *store.Group) { g.Template.InstanceType = fmt.Sprint("t", chance.IntN(100)) })
	case 10:
		*size = 3 + chance.IntN(4)
		s.Edit("web", func(g *store.Group) { g.Size = *size })
	case 11:
		s.StopEtcd(long, 0)
	case 12:
		s.BalancersFail(30)
	case 13:
		if s.Shard().Hold == nil {
			s.Hold()
		} else {
			s.Release()
		}
	case 14:
		s.LoseAnswers(20)
	case 15:
		s.BlindLeader(long, true)
		s.silent = store.Later(s.silent, s.Now().Add(long+10*time.Second)) // it plans nothing meanwhile
	}
}

// A balancer that never answers delays no healing: a dead instance and a lost one are replaced, and
// the replacements run; but nothing planned begins.
//
// proves LB-2, LB-3
func TestADeafBalancerHoldsUpNoHealing(t *testing.T) {
	s := newServed(t, 1, servedGroup(4))
	s.run(2 * time.Minute)
	before := s.Instances()
	s.BalancerSilent("front", time.Hour)
	s.silent = s.Now().Add(time.Hour)
	s.Kill(before[0])
	s.run(2 * time.Minute)
	s.Cut(before[1])
	s.run(3 * time.Minute)
	if n := s.Working("web"); n != 4 {
		t.Errorf("%d of 4 work: %v", n, s.Instances())
	}
	for _, id := range s.Instances() {
		if rec := s.Instance(id).Record; slices.Contains(before[:2], id) && rec.Phase != store.Deleting &&
			rec.Phase != store.Draining {
			t.Errorf("%s is %s", id, rec.Phase)
		}
	}
	kept := before[2:]
	s.Edit("web", func(g *store.Group) { g.Size = 3 })
	s.run(time.Minute)
	if n := s.Working("web"); n != 4 {
		t.Errorf("%d work: a scale down takes something out of a balancer that does not answer", n)
	}
	s.Edit("web", func(g *store.Group) { g.Size, g.Template.InstanceType = 4, "large" })
	s.run(5 * time.Minute)
	for _, id := range kept {
		if rec := s.Instance(id).Record; rec.Phase != store.Running {
			t.Errorf("%s is %s: a roll takes something out of a balancer that does not answer", id, rec.Phase)
		}
	}
	s.Calm()
	s.silent = s.Now()
	s.run(30 * time.Minute)
	if !s.inService(4) || slices.ContainsFunc(kept, func(id string) bool { return s.Instance(id).Present() }) {
		t.Errorf("after it answers again: %v of %v", s.Members("front"), s.Instances())
	}
}

// The opinion of a balancer of one instance counts where the group asks for it, and of all of them
// never: then something is wrong with the balancer.
//
// proves LB-2
func TestTheOpinionOfABalancer(t *testing.T) {
	for _, asks := range []bool{false, true} {
		g := servedGroup(5)
		g.Heal.OnLoadBalancer = asks
		s := newServed(t, 1, g)
		s.run(2 * time.Minute)
		before := s.Instances()
		s.BalancerLies("front", 5*time.Minute)
		s.run(4 * time.Minute)
		for _, id := range before {
			if j, _ := s.Judgment(id); j.Verdict != store.Live {
				t.Errorf("asks %t: all are called down, and %s is %s: %s", asks, id, j.Verdict, j.Why())
			}
		}
		s.run(5 * time.Minute)
		s.BalancerDislikes("front", before[0])
		s.run(5 * time.Minute)
		if there := s.Instance(before[0]).Present(); there == asks {
			t.Errorf("asks %t: %s is called down, and is there: %t", asks, before[0], there)
		}
		if !slices.Equal(s.Instances()[1:], before[1:]) {
			t.Errorf("%v were replaced by %v", before, s.Instances())
		}
	}
}

// An instance that is healthy and that its balancer does not confirm has failed after
// max_opening_traffic_duration, and never without one.
//
// proves LB-2, DET-10
func TestAnInstanceThatIsNeverConfirmed(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Minute} {
		g := servedGroup(1)
		g.MaxOpening = store.Duration(limit)
		s := newServed(t, 1, g)
		s.BalancerLies("front", 10*time.Minute)
		s.run(40 * time.Second)
		first := s.Instances()
		if rec := s.Instance(first[0]).Record; rec.Phase != store.Checking {
			t.Fatalf("it is %s, and nothing has confirmed it", rec.Phase)
		}
		s.run(70 * time.Second)
		j, _ := s.Judgment(first[0])
		if failed := j.Verdict == store.Stuck && j.Rule == "DET-10"; failed != (limit > 0) ||
			failed == (len(s.Instances()) == 1) {
			t.Errorf("limit %s: it is %s by %s, and there are %v", limit, j.Verdict, j.Rule, s.Instances())
		}
		s.run(30 * time.Minute)
		if !s.inService(1) {
			t.Errorf("limit %s: not in service at the end: %v", limit, s.Instances())
		}
	}
}
