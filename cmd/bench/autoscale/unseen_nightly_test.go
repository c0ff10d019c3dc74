//go:build nightly

package autoscale

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// unseen is how many random loads each table compares.
const unseen = 24

var unseenKinds = []string{"ramps", "bursts", "random walk"}

// unseenCurve is a random load of six hours: ramps, bursts or a random walk, with noise of 0 to
// 12 %, and on a quarter of them with machines that start slowly.
func unseenCurve(seed uint64) (c Curve, kind string) {
	r := rand.New(rand.NewPCG(seed, 4711))
	noise := []float64{0, 0.03, 0.06, 0.12}[seed%4]
	kind = unseenKinds[seed/4%3]
	c = Curve{Name: fmt.Sprint(kind, seed), Length: 6 * time.Hour}
	if r.IntN(4) == 0 {
		c.Boot = time.Duration(60+r.IntN(240)) * time.Second
	}
	height := float64(150 + r.IntN(900))
	c.Steps = []Step{{Load: height}}
	for at := time.Duration(15+r.IntN(20)) * time.Minute; at < c.Length; {
		var over time.Duration
		switch kind {
		case "ramps":
			height = float64(150 + r.IntN(1700))
			over = time.Duration(20+r.IntN(100)) * time.Minute
		case "bursts":
			if height > 500 {
				height = float64(120 + r.IntN(300))
			} else {
				height = float64(600 + r.IntN(1200))
			}
			over = time.Duration(30+r.IntN(240)) * time.Second
		default:
			height = max(130, min(2000, height*(0.7+0.65*r.Float64())))
			over = time.Duration(3+r.IntN(15)) * time.Minute
		}
		c.Steps = append(c.Steps, Step{At: at, Load: height, Over: over})
		at += over + time.Duration(5+r.IntN(40))*time.Minute
	}
	if noise == 0 {
		return c, kind
	}
	smooth := c
	c.Steps = nil
	for at := time.Duration(0); at < c.Length; at += 40 * time.Second {
		s := Step{At: at, Load: smooth.at(at) * (1 + noise*(2*r.Float64()-1))}
		if at > 0 {
			s.Over = 10 * time.Second
		}
		c.Steps = append(c.Steps, s)
	}
	return c, kind
}

// The second table on the page is what random loads give. The band of the size was chosen with them
// in view. The loads of the third were played only afterwards.
//
// proves AUTO-2
func TestTheTableOfUnseenLoads(t *testing.T) {
	for name, first := range map[string]uint64{"unseen": 100, "fresh": 1000} {
		checkTable(t, name, Table(unseenRows(t, first)))
	}
}

// unseenRows compares the random loads from a seed on, by kind and together.
func unseenRows(t *testing.T, first uint64) []Row {
	names := append(slices.Clone(unseenKinds), "together")
	rows := make([]Row, len(names))
	for n := range uint64(unseen) {
		c, kind := unseenCurve(first + n)
		own, err := leasehold(t.Context(), &c)
		if err != nil {
			t.Fatal(err)
		}
		all := []Outcome{own, play(&c, &tracking{}), play(&c, &horizontal{})}
		for i, name := range names {
			rows[i].Curve = name
			if name != kind && name != "together" {
				continue
			}
			for k, sum := range []*Outcome{&rows[i].Leasehold, &rows[i].Tracking, &rows[i].Horizontal} {
				sum.Below, sum.Machines = sum.Below+all[k].Below, sum.Machines+all[k].Machines
				sum.Turns, sum.Changes = sum.Turns+all[k].Turns, sum.Changes+all[k].Changes
			}
		}
	}
	return rows
}
