package trouble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Step is a fault in a plan.
type Step struct {
	Kind  Kind
	After time.Duration // the beginning of the run
	Lasts time.Duration
	Seed  uint64 // of its own random numbers
}

// Plan is the plan of a seed.
type Plan struct {
	Seed  uint64
	Steps []Step
}

// Terms bound a plan.
type Terms struct {
	Troubles int           // how many
	Within   time.Duration // in which they begin
	Only     []string      // kinds; none: all
	Without  []string      // kinds
	Servers  bool          // on hosts of leasehold server
	Often    []string      // kinds that are to come again and again: half of all
}

// Make makes the plan of a seed.
func Make(seed uint64, t Terms) (Plan, error) {
	rng := rand.New(rand.NewPCG(seed, 0x1ea5e))
	for _, name := range slices.Concat(t.Only, t.Without, t.Often) {
		if _, err := Named(name); err != nil {
			return Plan{}, err
		}
	}
	var from, often []Kind
	other := Servers
	if t.Servers {
		other = Separate
	}
	for _, k := range Catalogue() {
		if k.On == other || len(t.Only) > 0 && !slices.Contains(t.Only, k.Name) || slices.Contains(t.Without, k.Name) {
			continue
		}
		for range k.Weight {
			from = append(from, k)
		}
		if slices.Contains(t.Often, k.Name) {
			often = append(often, k)
		}
	}
	if len(from) == 0 && t.Troubles > 0 {
		return Plan{}, errors.New("none of these troubles applies to such a cluster")
	}
	p := Plan{Seed: seed}
	for i := range t.Troubles {
		k := from[rng.IntN(len(from))]
		if len(often) > 0 && i%2 == 0 {
			k = often[rng.IntN(len(often))]
		}
		s := Step{Kind: k, After: time.Duration(rng.Int64N(int64(t.Within))), Lasts: k.Least, Seed: rng.Uint64()}
		if k.Most > k.Least {
			s.Lasts += time.Duration(rng.Int64N(int64(k.Most - k.Least)))
		}
		p.Steps = append(p.Steps, s)
	}
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return int(a.After - b.After) })
	return p, nil
}

// String prints the plan, one fault per line.
func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%6.1fs  %-28s %s\n", s.After.Seconds(), s.Kind.Name, s.Lasts.Round(100*time.Millisecond))
	}
	return b.String()
}
