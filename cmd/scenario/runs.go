package scenario

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Runs is the result of one scenario with many seeds.
type Runs struct {
	Seeds    int       `json:"runs"` // number of runs
	First    uint64    `json:"first_seed"`
	Cut      bool      `json:"interrupted,omitempty"`
	Met      int       `json:"met"`       // runs in which all expectations were met
	Whole    int       `json:"converged"` // runs in which everything was as wanted at the end
	Worst    uint64    `json:"worst_seed"`
	Measures []Measure `json:"measures"`
	Missed   []Missed  `json:"not_met"` // by expectation
	Broken   []string  `json:"impossible,omitempty"`
}

// Measure is one number over all runs.
type Measure struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	Best   float64 `json:"best"`
	Median float64 `json:"median"`
	Worst  float64 `json:"worst"`
	Seed   uint64  `json:"worst_seed"` // the first seed with this value
}

// Missed is an expectation that some runs did not meet.
type Missed struct {
	Name  string   `json:"name"`
	Want  string   `json:"want"`
	Count int      `json:"count"`
	Seeds []uint64 `json:"seeds"` // the first few seeds
}

// fewSeeds is how many seeds are listed for a missed expectation.
const fewSeeds = 5

// PlayMany plays the scenario with n seeds, beginning with its own, or until ctx ends. It reports
// how many are done.
func (s *Scenario) PlayMany(ctx context.Context, n int, progress func(done int)) *Runs {
	results := make([]*Result, n)
	var mu sync.Mutex
	var wg sync.WaitGroup
	next, done := 0, 0
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n {
					return
				}
				run := *s
				run.Seed = s.Seed + uint64(i)
				res := run.Play(ctx, func(time.Duration) {})
				res.Timeline = nil
				mu.Lock()
				if !res.Cut {
					results[i] = res
				}
				done++
				progress(done)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return sumUp(s.Seed, n, slices.DeleteFunc(results, func(r *Result) bool { return r == nil }))
}

// measured are the figures that are summarized. For some the highest is the best.
var measured = []struct {
	name, unit string
	most       bool
	of         func(*Result) float64
}{
	{
		"worst availability", "%", true,
		func(r *Result) float64 { return leastOf(r, func(g GroupResult) int { return g.Availability }) },
	},
	{"worst serving", "%", true, func(r *Result) float64 {
		return leastOf(r, func(g GroupResult) int { return g.Serving })
	}},
	{"below 100%", "s", false, func(r *Result) float64 {
		most := 0.0
		for _, g := range r.Groups {
			most = max(most, g.Below)
		}
		return most
	}},
	{"slowest to converge", "s", false, func(r *Result) float64 { return slowestOf(r.Events) }},
	{"machines made", "", false, func(r *Result) float64 { return float64(r.Machines.Created) }},
	{"machines at once", "", false, func(r *Result) float64 { return float64(r.Machines.AtOnce) }},
	{"storms", "", false, func(r *Result) float64 { return float64(r.Storms) }},
}

func leastOf(r *Result, of func(GroupResult) int) float64 {
	least := 100
	for _, g := range r.Groups {
		least = min(least, of(g))
	}
	return float64(least)
}

// slowestOf returns the longest time to converge after an event, among the events after which the
// run converged.
func slowestOf(events []EventResult) float64 {
	longest := 0.0
	for _, e := range events {
		if e.Converged != nil {
			longest = max(longest, *e.Converged)
		}
	}
	return longest
}

func sumUp(first uint64, asked int, results []*Result) *Runs {
	runs := &Runs{
		Seeds: len(results), First: first, Cut: len(results) < asked, Measures: []Measure{},
		Missed: []Missed{},
	}
	if len(results) == 0 {
		return runs
	}
	for _, r := range results {
		if r.Met {
			runs.Met++
		}
		if r.Whole {
			runs.Whole++
		}
		runs.Broken = append(runs.Broken, r.Broken...)
		runs.miss(r)
	}
	for _, m := range measured {
		ranked := slices.Clone(results)
		slices.SortStableFunc(ranked, func(a, b *Result) int { // the best first; among equals, the last seed first
			if m.most {
				a, b = b, a
			}
			return cmp.Compare(m.of(a), m.of(b))
		})
		worst := m.of(ranked[len(ranked)-1])
		i := slices.IndexFunc(results, func(r *Result) bool { return m.of(r) == worst })
		runs.Measures = append(runs.Measures, Measure{
			Name: m.name, Unit: m.unit, Best: m.of(ranked[0]), Median: m.of(ranked[len(ranked)/2]), Worst: worst,
			Seed: results[i].Seed,
		})
	}
	runs.Worst = worstOf(results).Seed
	return runs
}

// worstOf returns the run that a person should look at first: one with the most missed
// expectations, then the lowest availability, then the longest time below it.
func worstOf(results []*Result) *Result {
	return slices.MinFunc(results, func(a, b *Result) int {
		return cmp.Or(
			cmp.Compare(len(b.Broken), len(a.Broken)), cmp.Compare(missedBy(b), missedBy(a)),
			cmp.Compare(measured[0].of(a), measured[0].of(b)), cmp.Compare(measured[2].of(b), measured[2].of(a)),
			cmp.Compare(a.Seed, b.Seed),
		)
	})
}

func missedBy(r *Result) (n int) {
	for _, k := range r.Checks {
		if !k.Met {
			n++
		}
	}
	return n
}

func (runs *Runs) miss(r *Result) {
	for _, k := range r.Checks {
		if k.Met {
			continue
		}
		i := slices.IndexFunc(runs.Missed, func(m Missed) bool { return m.Name == k.Name })
		if i < 0 {
			i = len(runs.Missed)
			runs.Missed = append(runs.Missed, Missed{Name: k.Name, Want: k.Want})
		}
		m := &runs.Missed[i]
		if m.Count++; len(m.Seeds) < fewSeeds {
			m.Seeds = append(m.Seeds, r.Seed)
		}
	}
}
