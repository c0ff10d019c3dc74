package sim

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// checking is the result of an agent's checks, which follows the truth with a delay: a check runs
// once per interval, and its verdict changes only after as many equal results in a row as its
// threshold says.
type checking struct {
	healthy bool
	begun   time.Duration // when the agent did its first checks
	turns   bool          // a change of the verdict is pending
	number  int           // number of that change: a later one, or a return of the truth before it, voids it
}

// wantedChecks returns the checks that make an instance unhealthy. A group without checks gets one
// that knows the truth at once, so that it can become unhealthy.
func (a *agent) wantedChecks() []store.Check {
	checks := a.spec.Checks
	if rec := a.w.instance(a.m.ID); rec.Present() {
		checks = rec.Record.Spec.Checks
	}
	return slices.DeleteFunc(slices.Clone(checks), func(c store.Check) bool { return c.Optional })
}

// check follows the truth.
func (a *agent) check() {
	truth, c := a.passing(), &a.checks
	if truth == c.healthy {
		c.turns = false
		c.number++
		return
	}
	checks := a.wantedChecks()
	if len(checks) == 0 || a.exit != nil { // the end of a workload needs no check
		c.healthy, c.turns = truth, false
		c.number++
		return
	}
	if c.turns {
		return
	}
	c.turns = true
	c.number++
	number := c.number
	a.later(a.turnTakes(checks, truth), func() {
		if c.number == number {
			c.healthy, c.turns = truth, false
			a.stir()
			a.report()
		}
	})
}

// turnTakes returns how long the checks take to notice the truth: all of them to become healthy,
// the first one to become unhealthy.
func (a *agent) turnTakes(checks []store.Check, truth bool) time.Duration {
	var takes []time.Duration
	for _, c := range checks {
		interval, results := c.Interval.D(), c.UnhealthyThreshold
		if truth {
			results = c.HealthyThreshold
		}
		next := time.Duration(0)
		if past := (a.w.clock - a.checks.begun) % interval; past > 0 {
			next = interval - past
		}
		takes = append(takes, next+time.Duration(max(0, results-1))*interval)
	}
	if truth {
		return slices.Max(takes)
	}
	return slices.Min(takes)
}

// checkReports returns the results of the checks in the form of a report.
func (a *agent) checkReports() []store.CheckReport {
	names := []string{"http"}
	if checks := a.wantedChecks(); len(checks) > 0 {
		names = names[:0]
		for _, c := range checks {
			names = append(names, c.Name)
		}
	}
	var out []store.CheckReport
	for _, name := range names {
		r := store.CheckReport{Name: name, Healthy: a.checks.healthy}
		if !r.Healthy {
			r.Why = "connection refused"
		}
		out = append(out, r)
	}
	return out
}
