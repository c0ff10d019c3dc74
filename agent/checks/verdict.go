package checks

import "time"

// notYet is the reason why a check is unhealthy before its first result.
const notYet = "not checked yet"

// Rules say when a verdict changes.
type Rules struct {
	Unhealthy int // failures in a row
	Healthy   int // passes in a row
}

// Verdict is the conclusion from a check's results. It outlives the agent.
type Verdict struct {
	Healthy bool      `json:"healthy"`
	Pending bool      `json:"pending,omitempty"` // no threshold was reached yet: Healthy is an assumption
	Why     string    `json:"why,omitempty"`     // the last failure; "" if Healthy and no result contradicts it
	Since   time.Time `json:"since"`             // of Healthy
	// Against counts the latest consecutive results that contradict Healthy.
	Against int  `json:"-"`
	passing bool // the last result
	run     int  // consecutive results like the last one
}

// Assume returns the verdict of a check before its first result.
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
	next.run = min(next.run, needed) // else it would grow as long as the machine runs
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

// Kept returns the verdict for a later run of the agent: it keeps the conclusion and resets the
// count of consecutive results.
func (v Verdict) Kept() Verdict {
	v.Against, v.passing, v.run = 0, false, 0
	return v
}
