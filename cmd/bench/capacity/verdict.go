package capacity

import (
	"slices"
	"time"
)

// Limit is how many agents one thing is enough for.
type Limit struct {
	By     string `json:"by"`
	Agents int    `json:"agents"`
	Why    string `json:"why"` // the arithmetic, in words
}

// What Leasehold asks of its store for each agent.
const (
	// reserve is the share of what the store can do at most that an agent's everyday may take: the
	// rest is for bad days.
	reserve = 0.5
	// persistEvery is how often an agent's report is written down though it says nothing new
	// (DET-16).
	persistEvery = time.Minute
	// leaseSlack is what a lease lasts beyond three intervals (DET-2).
	leaseSlack = 2 * time.Second
	// startLimit is how long a new leader may take to read all records.
	startLimit = 10 * time.Second
)

// Limits are how many agents at an interval a store is enough for that can do so much, the
// narrowest first. With each agent come three records: its instance, what it last reported, and
// that it is alive.
func Limits(r *Result, interval time.Duration) []Limit {
	lease := 3*interval + leaseSlack
	at := func(name string) float64 { return r.Get(name).PerSecond }
	all := []Limit{
		{
			"renewals", int(at(Renewed) * reserve * interval.Seconds()),
			"half of the renewals, one for each agent in each interval",
		},
		{
			"writing reports down", int(at(Noted) * reserve * persistEvery.Seconds()),
			"half of the reports that can be, one of each agent in each minute",
		},
		{
			"taking agents up", int(at(TakenUp) * lease.Seconds()),
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

// slow is when something takes so long that failures are noticed late.
const slow = time.Second / 2

// Slow are the measurements that were slower than they may be for failures to be noticed in time,
// whatever the rate.
func Slow(r *Result) []Measured {
	var all []Measured
	for _, name := range []string{RenewPaced, Seen} {
		if m := r.Get(name); m.P99 > inMs(slow) {
			all = append(all, m)
		}
	}
	return all
}
