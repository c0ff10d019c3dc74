package checks

import "time"

// notYet is why a check is unhealthy before it has been done.
const notYet = "not checked yet"

// Rules say when a verdict changes.
type Rules struct {
	Unhealthy int // failures in a row
	Healthy   int // passes in a row
}

// Verdict is what the results of a check amount to. It is what outlives the agent, too.
type Verdict struct {
	Healthy bool      `json:"healthy"`
	Pending bool      `json:"pending,omitempty"` // no threshold has been reached: Healthy is what was assumed
	Why     string    `json:"why,omitempty"`     // the last failure; "" where Healthy and nothing speaks against it
	Since   time.Time `json:"since"`             // of Healthy
	// Against counts the last results in a row that speak against Healthy.
	Against int  `json:"-"`
	passing bool // the last result
	run     int  // results like the last one in a row
}

// Assume returns the verdict of a check before it was done.
func Assume(healthy bool, at time.Time) Verdict {
	v := Verdict{Healthy: healthy, Pending: true, Since: at}
	if !healthy {
		v.Why = notYet
	}
	return v
}

// Result is the outcome of one run: "" passes.
type Result string

// After returns the verdict after one more result. decided reports whether that changed Healthy or
// Pending.
func (v Verdict) After(r Result, rules Rules, at time.Time) (next Verdict, decided bool) {
	pass := r == ""
	next = v
	if next.run == 0 || next.passing != pass {
		next.run = 0
	}
	next.passing, next.run = pass, next.run+1
	needed := rules.Unhealthy
	if pass {
		needed = rules.Healthy
	}
	reached := next.run >= needed
	if reached {
		if next.Healthy != pass {
			next.Healthy, next.Since = pass, at
		}
		next.Pending = false
	}
	next.run = min(next.run, needed) // else it would grow for as long as the machine runs
	next.Against = 0
	if pass != next.Healthy {
		next.Against = next.run
	}
	switch {
	case !pass:
		next.Why = string(r)
	case next.Healthy:
		next.Why = ""
	}
	return next, next.Healthy != v.Healthy || next.Pending != v.Pending
}

// Kept returns the verdict for a later run of the agent: it keeps the verdict and resets the count
// of results in a row.
func (v Verdict) Kept() Verdict {
	v.Against, v.passing, v.run = 0, false, 0
	return v
}
