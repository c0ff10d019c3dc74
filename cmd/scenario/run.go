package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
)

// stage is a scenario being played.
type stage struct {
	sc        *Scenario
	w         *sim.World
	rec       *recorder
	chance    *rand.Rand // random choice of events' targets; the world has a generator of its own
	providers []string
	extras    int
	rolls     int
	numbers   map[string]*series // external metrics, by source
}

// stepsBetween is the number of steps between two checks of the context.
const stepsBetween = 512

// Play plays the scenario to its end, or until ctx ends. It reports its progress at intervals.
func (s *Scenario) Play(ctx context.Context, progress func(time.Duration)) *Result {
	st := newStage(s)
	for i, e := range s.Events {
		if !st.runUntil(ctx, e.At, progress) {
			break
		}
		if e.For > 0 {
			end := e.At + e.For
			st.rec.ends[end] = true
			st.w.At(sim.Epoch.Add(end), func() { st.rec.over(i) })
		}
		st.rec.begin(e)
		st.rec.end(e.play(st))
	}
	st.runUntil(ctx, s.Length, progress)
	return st.rec.result()
}

func newStage(s *Scenario) *stage {
	st := &stage{sc: s, providers: s.providers, chance: rand.New(rand.NewPCG(s.Seed, 0x5ce7a210))}
	st.rec = newRecorder(s)
	cfg := sim.Config{
		Seed: s.Seed, Settings: s.Settings, Replicas: s.Replicas, SessionTTL: s.Session, Groups: s.groups,
		Observer: st.rec.observer(), Sources: st.sources(),
	}
	for _, name := range s.providers {
		p := s.Provider
		p.Name = name
		cfg.Providers = append(cfg.Providers, p)
	}
	st.w = sim.New(cfg)
	st.follow(s.all)
	st.rec.attach(st.w)
	return st
}

// runUntil advances the time; false if the context has ended.
func (st *stage) runUntil(ctx context.Context, end time.Duration, progress func(time.Duration)) bool {
	for n := 1; ; n++ {
		next, any := st.w.Next()
		if !any || next > end {
			break
		}
		if n%stepsBetween == 0 {
			if ctx.Err() != nil {
				st.rec.cut = true
				return false
			}
			progress(st.w.Elapsed())
		}
		st.w.Step()
		st.rec.look()
	}
	st.w.RunUntil(sim.Epoch.Add(end))
	return ctx.Err() == nil
}

// groupsMeant returns the groups of a name: one or, without a name, all.
func (st *stage) groupsMeant(name string) []string {
	if name != "" {
		return []string{name}
	}
	return st.rec.names
}
