package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// shares is a world with a group of ten, of which two are on demand and half of the others spot.
type shares struct {
	t *testing.T
	*sim.World
	least int // that worked at once since the last reset
}

func newShares(t *testing.T, seed uint64, change func(*store.Group), provider ...sim.Provider) *shares {
	g := web(10)
	g.Capacity = store.CapacitySpec{OnDemandBase: 2, Spot: 50}
	if change != nil {
		change(&g)
	}
	g.Complete()
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &shares{t: t}
	s.World = sim.New(sim.Config{Seed: seed, Groups: []store.Group{g}, Providers: provider, Observer: sim.Observer{
		Stirred: func(string) {
			if s.World != nil {
				s.least = min(s.least, s.Working("web"))
			}
		},
		Machine: func(_ time.Time, m sim.Machine) {
			if m.Event == fake.Doubled {
				t.Errorf("a second machine was made for %s", m.Instance)
			}
		},
		Committed: func(at time.Time, a *plan.Action, _ store.Revision) {
			if a.Rule == "SPOT-4" {
				t.Logf("%s %s %s: %s", at.Sub(sim.Epoch), a.Instance, a.What(), a.Why)
			}
		},
	}})
	s.pass(2 * time.Minute)
	s.are(4, 6, 0)
	return s
}

func (s *shares) pass(d time.Duration) { s.RunUntil(s.Now().Add(d)) }

// dry sets whether there are no spot machines anywhere.
func (s *shares) dry(none bool) {
	s.NoSpot("cloud", "a", none)
	s.NoSpot("cloud", "b", none)
}

// are fails unless the group has so many instances of each kind, and its status says so.
func (s *shares) are(spot, onDemand, fallback int) {
	s.t.Helper()
	var have store.Shares
	for _, id := range s.Instances() {
		switch rec := s.Instance(id).Record; {
		case rec.Spec.Spot:
			have.Spot++
		default:
			have.OnDemand++
			if rec.Fallback {
				have.Fallback++
			}
		}
	}
	told := s.told()
	if want := (store.Shares{Spot: spot, OnDemand: onDemand, Fallback: fallback}); have != want ||
		told.Spot != spot || told.OnDemand != onDemand || told.Fallback != fallback {
		s.t.Fatalf("%s: the group has %+v and its status says %+v, want %+v", s.Elapsed(), have, *told, want)
	}
}

func (s *shares) told() *store.Shares {
	st := sim.Read[store.Status](s.World, s.Keys().Status("web")).Record
	if st.Shares == nil {
		s.t.Fatal("the status says nothing of shares")
	}
	return st.Shares
}

// kill kills n machines, spot ones or others.
func (s *shares) kill(spot bool, n int) {
	for _, id := range s.Instances() {
		if s.Instance(id).Record.Spec.Spot == spot && n > 0 {
			s.Kill(id)
			n--
		}
	}
	if n > 0 {
		s.t.Fatalf("%d machines more were to be killed", n)
	}
}

// Without spot capacity instances are made on demand after capacity.fallback_after, and at once
// while it is known that there is none. They return one at a time, after a wait that doubles with
// each failure, and nothing is missing while they do.
//
// proves SPOT-4
func TestInstancesFallBackToOnDemandAndReturnToSpot(t *testing.T) {
	for seed := range uint64(5) {
		s := newShares(t, seed, nil)
		s.dry(true)
		s.kill(true, 2)
		s.pass(100 * time.Second)
		s.are(4, 6, 0) // being tried still
		if n := s.Working("web"); n != 8 {
			t.Fatalf("%d work, though spot is to be tried for two minutes", n)
		}
		s.pass(time.Minute)
		s.are(2, 8, 2)
		s.kill(true, 1)
		s.pass(40 * time.Second)
		s.are(1, 9, 3)
		if n := s.Working("web"); n != 10 {
			t.Fatalf("%d work, though it is known that there is no spot capacity", n)
		}
		s.least = 10
		s.pass(32 * time.Minute) // the first return fails
		s.are(1, 9, 3)
		if told := s.told(); told.Failed != 2 || told.Wait == nil || told.Wait.For.D() != time.Hour {
			t.Fatalf("after a failed return the status says %+v", *told)
		}
		s.dry(false)
		s.pass(50 * time.Minute)
		s.are(1, 9, 3) // it waits for twice as long
		s.pass(20 * time.Minute)
		s.are(4, 6, 0)
		if told := s.told(); told.Failed != 0 || told.Wait != nil || told.Why != "" {
			t.Errorf("after the return the status says %+v", *told)
		}
		if s.least < 10 {
			t.Errorf("only %d worked during the return", s.least)
		}
	}
}

// proves SPOT-4
func TestSharesThatAreChangedAreBroughtAbout(t *testing.T) {
	for spot, want := range map[int][2]int{100: {8, 2}, 0: {4, 6}, 10: {0, 10}, 25: {2, 8}} {
		t.Run(fmt.Sprint(spot), func(t *testing.T) {
			s := newShares(t, 1, nil)
			s.least = 10
			s.Edit("web", func(g *store.Group) { g.Capacity.Spot = spot })
			s.pass(10 * time.Minute)
			if spot > 0 {
				s.are(want[0], want[1], 0)
			}
			if s.least < 10 {
				t.Errorf("only %d worked meanwhile", s.least)
			}
		})
	}
}

// A scale-down takes the kind of which there is too much.
//
// proves SPOT-4
func TestAScaleDownKeepsTheShares(t *testing.T) {
	s := newShares(t, 1, nil)
	s.Edit("web", func(g *store.Group) { g.Size = 4 })
	s.pass(3 * time.Minute)
	s.are(1, 3, 0)
	s.Edit("web", func(g *store.Group) { g.Size = 12 })
	s.pass(3 * time.Minute)
	s.are(5, 7, 0)
}

// proves SPOT-4
func TestAGroupThatWaitsForSpotHasNoFallback(t *testing.T) {
	s := newShares(t, 1, func(g *store.Group) { g.Capacity.Fallback = store.FallbackWait })
	s.dry(true)
	s.kill(true, 2)
	s.pass(time.Hour)
	s.are(4, 6, 0)
	if n := s.Working("web"); n != 8 {
		t.Errorf("%d work", n)
	}
	s.dry(false)
	s.pass(5 * time.Minute)
	if n := s.Working("web"); n != 10 {
		t.Errorf("%d of 10 work after spot capacity is back", n)
	}
}

// proves SPOT-4
func TestNothingReturnsToSpotWhereThatIsOff(t *testing.T) {
	never := store.Duration(0)
	s := newShares(t, 1, func(g *store.Group) { g.Capacity.ReturnAfter = &never })
	s.dry(true)
	s.kill(true, 1)
	s.pass(4 * time.Minute)
	s.are(3, 7, 1)
	s.dry(false)
	s.pass(25 * time.Hour)
	s.are(3, 7, 1)
}

// A zone that has spot machines is used before anything falls back, and machines on demand are made
// in zones that have no spot machines.
//
// proves SPOT-4, REC-17
func TestSpotIsSoughtInEveryZone(t *testing.T) {
	s := newShares(t, 1, nil)
	s.NoSpot("cloud", "a", true)
	s.kill(true, 4)
	s.pass(3 * time.Minute)
	s.are(4, 6, 0)
	zones := map[string]int{}
	for _, id := range s.Instances() {
		rec := s.Instance(id).Record
		zones[rec.Zone]++
		if rec.Spec.Spot && rec.Zone != "b" {
			t.Errorf("spot machine %s is in zone %s", id, rec.Zone)
		}
	}
	s.kill(false, 2)
	s.pass(3 * time.Minute)
	s.are(4, 6, 0)
}

// Whatever happens to leaders and to the answers of calls, no machine is doubled, and the shares
// are right in the end.
//
// proves SPOT-4, SAFE-8
func TestFallbackSurvivesLeadersAndLostAnswers(t *testing.T) {
	for seed := range uint64(20) {
		s := newShares(t, seed, nil, sim.Provider{
			Name: "cloud", Config: fake.Config{
				Call: fake.Between(time.Second, 12*time.Second), CallTimeout: 10 * time.Second,
				Consistency: 3 * time.Second,
			},
		})
		for i := range 20 {
			s.dry(i%3 != 2)
			if i%2 == 0 {
				s.kill(false, 1)
			}
			s.pass(time.Duration(20+i*7%60) * time.Second)
			switch i % 4 {
			case 1:
				s.KillLeader(20*time.Second, 0)
			case 3:
				s.Resign(0)
			}
		}
		s.dry(false)
		s.pass(3 * time.Hour)
		s.are(4, 6, 0)
		if n := s.Working("web"); n != 10 || len(s.Machines()) != 10 {
			t.Fatalf("seed %d: %d work, and there are %d machines", seed, n, len(s.Machines()))
		}
	}
}
