package capacity

import (
	"slices"
	"time"
)

// Limit is how many agents one resource can carry.
type Limit struct {
	By     string `json:"by"`
	Agents int    `json:"agents"`
	Why    string `json:"why"` // the calculation, in words
}

// Leasehold's use of its store per agent.
const (
	// reserve is the share of the store's maximum that normal operation may use. The rest is for
	// bursts.
	reserve = 0.5
	// persistEvery is how often an unchanged report is stored (DET-16).
	persistEvery = time.Minute
	// leaseSlack is what a lease lasts beyond three intervals (DET-2).
	leaseSlack = 2 * time.Second
	// startLimit is how long a new leader may take to read all records.
	startLimit = 10 * time.Second
)

// Limits returns how many agents the store can carry at an interval, the tightest limit first. Each
// agent has three records: its instance, its last report, and that it is alive.
func Limits(r *Result, interval time.Duration) []Limit {
	lease := 3*interval + leaseSlack
	at := func(name string) float64 { return r.Get(name).PerSecond }
	all := []Limit{
		{
			"renewals", int(at(Renewed) * reserve * interval.Seconds()),
			"half of the renewals, one for each agent in each interval",
		},
		{
			"storing reports", int(at(Noted) * reserve * persistEvery.Seconds()),
			"half of the possible reports, one for each agent in each minute",
		},
		{
			"registering agents", int(at(TakenUp) * lease.Seconds()),
			"all agents of a replica that died, by another, before their leases of " + lease.String() + " end",
		},
		{
			"a leader's start", int(at(Listed) * startLimit.Seconds() / 3),
			"three records for each agent, listed within " + startLimit.String(),
		},
	}
	slices.SortStableFunc(all, func(a, b Limit) int { return a.Agents - b.Agents })
	return all
}

// slow is the latency from which on failures are noticed late.
const slow = time.Second / 2

// Slow returns the measurements whose latency delays the detection of failures, whatever the rate.
func Slow(r *Result) []Measured {
	var all []Measured
	for _, name := range []string{RenewPaced, Seen} {
		if m := r.Get(name); m.P99 > inMs(slow) {
			all = append(all, m)
		}
	}
	return all
}
