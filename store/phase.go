package store

import "fmt"

// Phase is how far an instance has come. It is recorded, and budgets are counted from it alone.
type Phase string

// The phases, in the order of an instance's life.
const (
	Pending  Phase = "pending"  // intent recorded, provider not asked
	Creating Phase = "creating" // provider asked; its answer may be lost, so ask again with the same ID
	Booting  Phase = "booting"  // the machine exists, its agent has not registered
	Checking Phase = "checking" // registered, not healthy yet
	Running  Phase = "running"  // healthy
	Stopping Phase = "stopping" // a restart in progress: going down
	Starting Phase = "starting" // a restart in progress: coming up
	Draining Phase = "draining" // leaving, may still come back (DET-15)
	Deleting Phase = "deleting" // the point of no return: stopped, then removed, then the record goes
	Finished Phase = "finished" // a task that is done
)

// Phases lists all phases in the order of an instance's life.
var Phases = []Phase{Pending, Creating, Booting, Checking, Running, Stopping, Starting, Draining, Deleting, Finished}

var follows = map[Phase][]Phase{
	Pending:  {Creating, Deleting},
	Creating: {Booting, Deleting},
	Booting:  {Checking, Stopping, Draining, Deleting},
	Checking: {Running, Stopping, Draining, Deleting, Finished},
	Running:  {Checking, Stopping, Draining, Deleting, Finished},
	Stopping: {Starting, Draining, Deleting},
	Starting: {Checking, Stopping, Draining, Deleting},
	Draining: {Running, Checking, Deleting},
	Finished: {Draining, Deleting},
	Deleting: {},
}

// ValidateTransition returns an error unless an instance may go from one phase to another. The
// empty phase stands for no record: a record begins as Pending, or, for an adopted machine (REC-8),
// as Booting to be kept or as Deleting to be removed.
func ValidateTransition(from, to Phase) error {
	if from == "" {
		if to == Pending || to == Booting || to == Deleting {
			return nil
		}
		return fmt.Errorf("illegal transition: a record cannot begin as %s", to)
	}
	next, ok := follows[from]
	if !ok {
		return fmt.Errorf("illegal transition: unknown phase %q", from)
	}
	for _, p := range next {
		if p == to {
			return nil
		}
	}
	return fmt.Errorf("illegal transition: %s to %s", from, to)
}

// Fills reports whether an instance in this phase can fill its slot.
func (p Phase) Fills() bool {
	switch p {
	case Pending, Creating, Booting, Checking, Running, Stopping, Starting:
		return true
	default:
		return false
	}
}

// Registered reports whether the instance's agent has been seen.
func (p Phase) Registered() bool {
	switch p {
	case Checking, Running, Stopping, Starting, Draining:
		return true
	default:
		return false
	}
}

// Verdict is what the evidence proves about an instance at the moment of planning. It is never
// stored as truth.
type Verdict string

// The verdicts.
const (
	Unborn    Verdict = "unborn"    // no agent expected yet
	Live      Verdict = "live"      // reporting
	Suspect   Verdict = "suspect"   // evidence is missing, nothing is proved
	Unhealthy Verdict = "unhealthy" // its checks say so
	Lost      Verdict = "lost"      // its lease ended and that was confirmed (DET-17)
	Dead      Verdict = "dead"      // by the provider's word (DET-4)
	Stuck     Verdict = "stuck"     // did not register, or did not get healthy, in time (DET-10, DET-11)
	Doomed    Verdict = "doomed"    // will end: by a notice, or by an evacuation
)

// Failed reports whether the verdict calls for healing.
func (v Verdict) Failed() bool {
	return v == Unhealthy || v == Lost || v == Dead || v == Stuck
}
