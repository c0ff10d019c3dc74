package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Verdict is the conclusion of a trial.
type Verdict struct {
	Carries bool `json:"carries"` // all promises were kept
	// how many agents a shard can carry on this machine at this interval; 0: unknown
	About  int      `json:"about"`
	Limit  string   `json:"limit"` // what limits it
	Failed []string `json:"failed,omitempty"`
	Text   string   `json:"text"`
}

// Shares of the machine that a shard may use, so that there is room for bursts.
const (
	maxCPU    = 0.7
	maxMemory = 0.8
)

// judge checks whether the promises were kept, and estimates how many agents the machine could
// carry from the cost of each.
func (r *Agents) judge() Verdict {
	v := Verdict{Failed: r.broken()}
	v.Carries = len(v.Failed) == 0
	every := time.Duration(r.Interval * float64(time.Second))
	if !v.Carries {
		v.Text = fmt.Sprintf("this shard cannot carry %d agents at %s: %s", r.Agents, every,
			strings.Join(v.Failed, "; "))
		return v
	}
	n := float64(r.Agents)
	consider := func(limit string, most float64) {
		if most > 0 && (v.About == 0 || int(most) < v.About) {
			v.About, v.Limit = int(most), limit
		}
	}
	if r.CoresOfTheShard > 0 {
		consider(fmt.Sprintf("its %d processors, with %.0f%% of them for replica and etcd", r.Machine.Processors,
			100*maxCPU),
			n*float64(r.Machine.Processors)*maxCPU/r.CoresOfTheShard)
	}
	if r.MemoryPerAgent > 0 {
		consider("its memory", maxMemory*float64(r.Machine.Memory)/r.MemoryPerAgent)
	}
	if r.Connections == OwnConnections {
		if most, err := MostOwnConnections(); err == nil {
			consider(fmt.Sprintf("the %d connections for which a replica has descriptors (ulimit -Hn), "+
				"so more with more replicas", most), float64(most))
		}
	}
	v.About = rounded(max(v.About, r.Agents))
	v.Text = fmt.Sprintf("this shard can carry about %d agents at %s, limited by %s", v.About, every, v.Limit)
	if v.About > 2*r.Agents {
		v.Text += fmt.Sprintf("; estimated from %d: measure with more", r.Agents)
	}
	return v
}

// said formats the verdict.
func (v Verdict) said(kept, broken string) Verdict {
	v.Carries, v.Text = len(v.Failed) == 0, kept
	if !v.Carries {
		v.Text = broken + ": " + strings.Join(v.Failed, "; ")
	}
	return v
}

// named returns some of the wrongly judged instances, with the reasons.
func named(wrongly map[string]string) (some []string) {
	for _, id := range slices.Sorted(maps.Keys(wrongly)) {
		if len(some) < maxNamed {
			some = append(some, id+" "+wrongly[id])
		}
	}
	return some
}

// broken returns the promises that were not kept.
func (r *Agents) broken() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if r.FalsePositives > 0 {
		say("%d instances were judged failed that had not failed", r.FalsePositives)
	}
	if r.LeasesLost > 0 {
		say("%d leases ended though their agents reported", r.LeasesLost)
	}
	if r.Detection.Seen < r.Detection.Failed {
		say("%d of %d failures were not noticed", r.Detection.Failed-r.Detection.Seen, r.Detection.Failed)
	}
	if r.Detection.Lag.P99 > r.Detection.Bound {
		say("failures were noticed after %.1fs at p99, the bound is %.1fs", r.Detection.Lag.P99/1000,
			r.Detection.Bound/1000)
	}
	if least := r.Agents - r.Detection.Failed; r.Registered < least {
		say("%d of %d agents were served at the end", r.Registered, least)
	}
	if due := float64(r.Agents-r.Detection.Failed) / r.Interval; r.Reports < 0.9*due {
		say("%.0f reports came in a second, %.0f were due", r.Reports, due)
	}
	return all
}

// rounded keeps two significant digits.
func rounded(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return n / unit * unit
}
