package plan

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// confirmLost is how long a deletion must stand whose last value already told of trouble (DET-17).
const confirmLost = 500 * time.Millisecond

// Judgment is a verdict and what it rests on.
type Judgment struct {
	Verdict  store.Verdict
	Rule     string
	Why      string
	Evidence []string
	Until    time.Time // when it may change by the passing of time alone
}

// judge says what the evidence proves of an instance. It is a table: the first line that applies counts.
func judge(in Instance, s *Snapshot, spec *store.Group, now time.Time) Judgment {
	rec := in.Record
	switch rec.Phase {
	case store.Pending, store.Creating:
		return Judgment{Verdict: store.Unborn, Rule: "REC-3", Why: "being made"}
	case store.Deleting:
		return Judgment{Verdict: store.Unborn, Rule: "HEAL-14", Why: "being removed"}
	case store.Finished:
		return Judgment{Verdict: store.Live, Rule: "REC-12", Why: "finished"}
	default: // there is, or should be, a machine: the evidence decides
	}
	if j, ok := judgeMachine(in); ok {
		return j
	}
	if !in.Alive.Present() {
		if !rec.Phase.Registered() {
			return judgeUnregistered(in, s, now)
		}
		return judgeSilent(in, s, now)
	}
	return judgeReporting(in, s, now)
}

// judgeMachine applies the provider's word: DET-4.
func judgeMachine(in Instance) (Judgment, bool) {
	see := in.Sighting
	if see.Begun.IsZero() {
		return Judgment{}, false
	}
	open := in.Alive.Present() && in.Alive.Record.State == store.StreamOpen
	if see.Listed && see.Down {
		j := Judgment{Verdict: store.Dead, Rule: "DET-4", Why: "the provider says " + see.State, Evidence: []string{providerSays(see), streamSays(in)}}
		if open && see.Times < 2 {
			j.Verdict, j.Why = store.Suspect, "the provider says "+see.State+", and its stream is open: asking again"
		}
		return j, true
	}
	if !see.Listed && !in.Calls.AbsentFrom.After(see.Begun) {
		j := Judgment{Verdict: store.Suspect, Rule: "DET-4", Why: "the provider does not list it", Evidence: []string{providerSays(see), streamSays(in)}}
		streamGone := !in.Alive.Present() || in.Alive.Record.State == store.StreamLost
		if streamGone && see.Times >= 2 {
			j.Verdict, j.Why = store.Dead, "the provider does not list it any more"
		}
		return j, true
	}
	return Judgment{}, false
}

// judgeUnregistered waits for the agent of a new machine: DET-11.
func judgeUnregistered(in Instance, s *Snapshot, now time.Time) Judgment {
	due := in.PhaseStart.Add(in.Record.Spec.RegistrationTimeout.D())
	if due.Before(s.GraceEnd) {
		due = s.GraceEnd // SAFE-13: no timer fires in grace
	}
	if now.Before(due) {
		return Judgment{Verdict: store.Unborn, Rule: "DET-11", Why: "its agent has not registered yet", Until: due}
	}
	return Judgment{
		Verdict: store.Stuck, Rule: "DET-11", Why: fmt.Sprintf("its agent did not register within %s", in.Record.Spec.RegistrationTimeout),
		Evidence: []string{providerSays(in.Sighting), "alive absent"},
	}
}

// judgeSilent judges a registered instance whose lease has ended: DET-5, DET-17, SAFE-1.
func judgeSilent(in Instance, s *Snapshot, now time.Time) Judgment {
	wait, last := confirmLost, in.LastState
	switch last {
	case store.StreamOverdue, store.StreamLost, store.StreamLeft:
	default:
		wait = max(in.Record.Spec.Report.LeaseTTL.D(), s.SessionTTL+time.Second)
		if last == "" {
			last = "unknown"
		}
	}
	evidence := []string{
		fmt.Sprintf("alive absent, last state %s", last),
		providerSays(in.Sighting),
	}
	due := in.AliveGone.Add(wait)
	if now.Before(due) {
		return Judgment{Verdict: store.Suspect, Rule: "DET-17", Why: fmt.Sprintf("its lease ended; to be confirmed for %s", wait), Evidence: evidence, Until: due}
	}
	if now.Before(s.GraceEnd) {
		return Judgment{Verdict: store.Suspect, Rule: "SAFE-1", Why: "its lease ended, but agents have time to return: " + s.GraceWhy, Evidence: evidence, Until: s.GraceEnd}
	}
	return Judgment{Verdict: store.Lost, Rule: "DET-17", Why: fmt.Sprintf("its lease (%s) ended and it did not return", in.Record.Spec.Report.LeaseTTL), Evidence: evidence}
}

// judgeReporting judges an instance whose agent holds its lease: DET-3, DET-6, DET-8, DET-10.
func judgeReporting(in Instance, s *Snapshot, now time.Time) Judgment {
	alive := in.Alive.Record
	evidence := []string{streamSays(in)}
	switch alive.State {
	case store.StreamLost:
		return Judgment{Verdict: store.Suspect, Rule: "DET-3", Why: "its stream was lost: " + alive.Why, Evidence: append(evidence, providerSays(in.Sighting))}
	case store.StreamOverdue:
		return Judgment{Verdict: store.Suspect, Rule: "DET-6", Why: "its report is overdue", Evidence: append(evidence, providerSays(in.Sighting))}
	case store.StreamLeft:
		return Judgment{Verdict: store.Suspect, Rule: "DET-8", Why: "its agent said goodbye: " + string(alive.Goodbye), Evidence: append(evidence, providerSays(in.Sighting))}
	default: // open, or on its way to another replica
	}
	if reportIsCurrent(in) {
		if in.Report.Record.Healthy {
			return Judgment{Verdict: store.Live, Rule: "DET-5", Why: "it reports and is healthy", Evidence: evidence}
		}
		if in.Record.Phase == store.Running || in.Record.Phase == store.Draining {
			return Judgment{Verdict: store.Unhealthy, Rule: "DET-9", Why: in.Report.Record.Why, Evidence: append(evidence, checksSay(in.Report.Record)...)}
		}
	}
	limit := in.Record.Spec.MaxChecking.D()
	if in.Record.Phase != store.Checking || limit == 0 {
		return Judgment{Verdict: store.Live, Rule: "DET-5", Why: "it reports", Evidence: evidence}
	}
	due := in.PhaseStart.Add(limit)
	if due.Before(s.GraceEnd) {
		due = s.GraceEnd
	}
	if now.Before(due) {
		return Judgment{Verdict: store.Live, Rule: "DET-10", Why: "not healthy yet: " + in.Report.Record.Why, Evidence: evidence, Until: due}
	}
	return Judgment{Verdict: store.Stuck, Rule: "DET-10", Why: fmt.Sprintf("not healthy within %s: %s", in.Record.Spec.MaxChecking, in.Report.Record.Why), Evidence: append(evidence, checksSay(in.Report.Record)...)}
}

// reportIsCurrent says whether the persisted report is of the machine's present boot. Within a boot the gateway persists
// every change of the verdict, so the last one stands.
func reportIsCurrent(in Instance) bool {
	return in.Report.Present() && in.Report.Record.BootID == in.Alive.Record.BootID
}

func providerSays(see Sighting) string {
	switch {
	case see.Begun.IsZero():
		return "provider: no list yet"
	case !see.Listed && see.Times > 1:
		return "provider: not listed, again"
	case !see.Listed:
		return "provider: not listed"
	default:
		return "provider: " + see.State
	}
}

func streamSays(in Instance) string {
	if !in.Alive.Present() {
		return "alive absent"
	}
	a := in.Alive.Record
	return fmt.Sprintf("stream %s since rev %d, epoch %d at %s", a.State, in.Alive.Modified, a.Epoch, a.Replica)
}

func checksSay(r store.Report) []string {
	var out []string
	for _, c := range r.Checks {
		if !c.Healthy {
			out = append(out, "check "+c.Name+": "+c.Why)
		}
	}
	return out
}
