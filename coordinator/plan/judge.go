package plan

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// confirmLost is how long a deletion of alive must persist if its last value already reported
// trouble (DET-17).
const confirmLost = 500 * time.Millisecond

// absenceStands is how long after the break of its stream a List must begin to prove an instance
// gone. Lists may have been wrong for long: if such an instance were dead at once, the first of
// many that are cut off would be dead before the others show that it is a storm. Such a List is
// under way by then, since DET-3 asks again after a second.
const absenceStands = time.Second

// judge returns what the evidence proves about an instance.
func judge(in *Instance, s *Snapshot, now time.Time) Judgment {
	j := proved(in, s, now)
	if j.Verdict == store.Suspect {
		says := providerSays(in)
		j.Provider = &says
	}
	return j
}

// proved returns the judgment of an instance. It is a table: the first line that applies counts.
func proved(in *Instance, s *Snapshot, now time.Time) Judgment {
	rec := &in.Record
	switch rec.Phase {
	case store.Pending, store.Creating:
		return Judgment{Verdict: store.Unborn, Rule: "REC-3", Cause: of(store.CauseBeingMade)}
	case store.Deleting:
		return Judgment{Verdict: store.Unborn, Rule: "HEAL-14", Cause: of(store.CauseBeingRemoved)}
	case store.Finished:
		return Judgment{Verdict: store.Live, Rule: "REC-12", Cause: of(store.CauseFinished)}
	default: // there is, or should be, a machine: the evidence decides
	}
	if rec.Phase == store.Stopping || rec.Phase == store.Starting {
		return judgeRestarting(in, s, now)
	}
	// the provider lists nearly all as running, which proves nothing
	if see := &in.Sighting; !see.Listed || see.Down {
		if j, ok := judgeMachine(in, s, now); ok {
			return j
		}
	}
	if in.AliveUnreadable != "" {
		return Judgment{
			Verdict: store.Suspect, Rule: "SAFE-16",
			Cause: store.Cause{Kind: store.CauseAliveUnreadable, Text: in.AliveUnreadable},
			Facts: []store.Fact{providerSays(in)},
		}
	}
	if !in.Alive.Present() {
		if !rec.Phase.Registered() {
			return judgeUnregistered(in, s, now)
		}
		return judgeSilent(in, s, now)
	}
	return judgeReporting(in, s, now)
}

// judgeMachine applies DET-4: what the provider says. Absence from a List proves less: it counts
// only if the agent is certainly gone. So even wrong Lists together with an etcd that drops live
// leases destroy nothing (DET-17, SAFE-1).
func judgeMachine(in *Instance, s *Snapshot, now time.Time) (Judgment, bool) {
	see := &in.Sighting
	if see.Begun.IsZero() {
		return Judgment{}, false
	}
	open := in.Alive.Present() && in.Alive.Record.State == store.StreamOpen
	if see.Listed && see.Down && !upSince(in, see.Begun) {
		j := Judgment{
			Verdict: store.Dead, Rule: "DET-4", Cause: store.Cause{Kind: store.CauseDown, Name: see.State},
			Facts: []store.Fact{providerSays(in), streamSays(in)},
		}
		// Its agent may have come back since that List began, or the List describes an earlier
		// boot.
		otherBoot := see.BootID != "" && see.BootID != in.Alive.Record.BootID
		switch {
		case open && (see.Times < 2 || see.Begun.Before(in.StreamSince) || otherBoot):
			j.Verdict, j.Awaits = store.Suspect, store.AwaitsList
			j.Cause.Kind = store.CauseDownStreamOpen
		case askedOnce(in, now):
			j.Verdict, j.Awaits, j.Cause.Kind = store.Suspect, store.AwaitsList, store.CauseDownFenced
			j.Until = see.Begun.Add(in.Record.Spec.Report.LeaseTTL.D())
		case dropped(in, s, now) && (see.Times < 2 || see.Begun.Before(in.AliveGone) || see.BootID != "" &&
			see.BootID != in.Report.Record.BootID):
			j.Verdict, j.Awaits, j.Cause.Kind = store.Suspect, store.AwaitsList, store.CauseDownLeaseEnded
			j.Until = in.AliveGone.Add(confirmWait(in, s))
		}
		return j, true
	}
	if !see.Listed && !in.Calls.AbsentFrom.After(see.Begun) {
		j := Judgment{
			Verdict: store.Suspect, Rule: "DET-4", Cause: of(store.CauseUnlisted), Awaits: store.AwaitsList,
			Facts: []store.Fact{providerSays(in), streamSays(in)},
		}
		streamGone := in.Alive.Present() && in.Alive.Record.State == store.StreamLost
		if !in.Alive.Present() {
			gone := confirmedFrom(in, s)
			streamGone = !now.Before(gone)
			if now.Before(gone) {
				j.Until = gone
			}
		}
		switch {
		case !streamGone || see.Times < 2:
		case !see.Begun.Before(troubledSince(in).Add(absenceStands)):
			j.Verdict, j.Awaits, j.Absent = store.Dead, "", true
			j.Cause = of(store.CauseGone)
		case in.Alive.Present():
			j.Cause = of(store.CauseUnlistedNow)
		default:
			return Judgment{}, false // no List came since, so only its lease decides
		}
		return j, true
	}
	return Judgment{}, false
}

// askedOnce reports whether only one List has shown that a machine that stops itself without a
// lease is down. It may be the first of many, and a storm is recognized only once the others have
// been listed (SAFE-9). Without another List, the length of a lease is enough.
func askedOnce(in *Instance, now time.Time) bool {
	report := &in.Record.Spec.Report
	return report.OnLeaseLost.Fences() && in.Sighting.Times < 2 &&
		now.Before(in.Sighting.Begun.Add(report.LeaseTTL.D()))
}

// troubledSince returns since when an agent is known to be gone, or may be gone.
func troubledSince(in *Instance) time.Time {
	switch {
	case in.Alive.Present():
		return in.StreamSince
	case !in.SilentSince.IsZero():
		return in.SilentSince
	default:
		return in.AliveGone
	}
}

// dropped reports whether a lease ended without earlier trouble and this is not confirmed yet: the
// stream may still be open (DET-17).
func dropped(in *Instance, s *Snapshot, now time.Time) bool {
	registered := in.Record.Phase == store.Checking || in.Record.Phase == store.Running ||
		in.Record.Phase == store.Draining
	return registered && !in.Alive.Present() && !in.LastState.Troubled() &&
		now.Before(in.AliveGone.Add(confirmWait(in, s)))
}

// upSince reports whether the agent has reported since a List began: the List may be outdated, for
// example from before a restart.
func upSince(in *Instance, begun time.Time) bool {
	return (in.Record.Phase == store.Checking || in.Record.Phase == store.Running) && begun.Before(in.PhaseStart)
}

// judgeUnregistered waits for the agent of a new machine: DET-11.
func judgeUnregistered(in *Instance, s *Snapshot, now time.Time) Judgment {
	due := in.PhaseStart.Add(in.Record.Spec.RegistrationTimeout.D())
	if due.Before(s.GraceEnd) {
		due = s.GraceEnd // SAFE-13: no timer fires in grace
	}
	if now.Before(due) {
		return Judgment{Verdict: store.Unborn, Rule: "DET-11", Cause: of(store.CauseUnregistered), Until: due}
	}
	return Judgment{
		Verdict: store.Stuck, Rule: "DET-11",
		Cause: store.Cause{Kind: store.CauseNeverRegistered, For: in.Record.Spec.RegistrationTimeout},
		Facts: []store.Fact{providerSays(in), {Kind: store.FactNoSession}},
	}
}

// confirmWait returns how long a deletion of alive must persist before it counts (DET-17).
func confirmWait(in *Instance, s *Snapshot) time.Duration {
	if in.LastState.Troubled() && !endedEarly(in) {
		return confirmLost
	}
	return max(in.Record.Spec.Report.LeaseTTL.D(), s.SessionTTL+time.Second)
}

// endedEarly reports whether a lease ended before its time, because etcd dropped it. The last
// report was accepted at most one and a half intervals before alive reported trouble, or it would
// have reported it sooner; half an interval allows for delays.
func endedEarly(in *Instance) bool {
	report := in.Record.Spec.Report
	return in.AliveGone.Sub(in.SilentSince) < report.LeaseTTL.D()-2*report.Interval.D()
}

// confirmedFrom returns the earliest time at which the absence of alive counts: confirmed, and not
// in grace.
func confirmedFrom(in *Instance, s *Snapshot) time.Time {
	at := in.AliveGone.Add(confirmWait(in, s))
	if at.Before(s.GraceEnd) {
		at = s.GraceEnd
	}
	return at
}

// judgeSilent judges a registered instance whose lease has ended: DET-5, DET-17, SAFE-1.
func judgeSilent(in *Instance, s *Snapshot, now time.Time) Judgment {
	wait, last := confirmWait(in, s), in.LastState
	if last == "" {
		last = "unknown"
	}
	facts := []store.Fact{{Kind: store.FactNoSession, Name: string(last)}, providerSays(in)}
	due := in.AliveGone.Add(wait)
	if now.Before(due) {
		return Judgment{
			Verdict: store.Suspect, Rule: "DET-17",
			Cause: store.Cause{Kind: store.CauseLeaseEnded, For: store.Duration(wait)}, Facts: facts, Until: due,
		}
	}
	if now.Before(s.GraceEnd) {
		return Judgment{
			Verdict: store.Suspect, Rule: "SAFE-1", Awaits: store.AwaitsCalm,
			Cause: store.Cause{Kind: store.CauseGrace, Text: s.GraceWhy}, Facts: facts,
			Until: s.GraceEnd,
		}
	}
	if until := upgradingUntil(in); now.Before(until) {
		return Judgment{
			Verdict: store.Suspect, Rule: "PROV-7", Awaits: store.AwaitsCalm,
			Cause: store.Cause{Kind: store.CauseUpgrading, Name: in.Record.Upgrade.Version},
			Facts: facts, Until: until,
		}
	}
	return Judgment{
		Verdict: store.Lost, Rule: "DET-17",
		Cause: store.Cause{Kind: store.CauseNoReturn, For: in.Record.Spec.Report.LeaseTTL},
		Facts: facts,
	}
}

// judgeRestarting gives a restart its time: the agent's restart of the workload, then the
// provider's restart of the machine (HEAL-1).
func judgeRestarting(in *Instance, s *Snapshot, now time.Time) Judgment {
	rec := &in.Record
	r, see := rec.Restart, &in.Sighting
	if r == nil {
		r = &store.Restart{Level: store.RestartMachine}
	}
	ownDoing := r.Level == store.RestartMachine &&
		(rec.Phase == store.Stopping || !see.Begun.After(in.PhaseStart) || see.Times < 2)
	if j, ok := judgeMachine(in, s, now); ok && (j.Absent || j.Verdict == store.Dead && !ownDoing) {
		return j
	}
	if in.Calls.Missing {
		return Judgment{
			Verdict: store.Stuck, Rule: "HEAL-1",
			Cause: of(store.CauseUnknown),
			Facts: []store.Fact{providerSays(in), streamSays(in)},
		}
	}
	limit, from := restartLimit(rec, r), in.PhaseStart
	if rec.Phase == store.Stopping && r.Level == store.RestartMachine && !r.Heals {
		from = store.Later(from, putOff(in, now))
	}
	due := from.Add(limit)
	if due.Before(s.GraceEnd) {
		due = s.GraceEnd
	}
	if now.Before(due) {
		return Judgment{
			Verdict: store.Unborn, Rule: "HEAL-1", Cause: store.Cause{Kind: store.CauseRestarting, Name: r.Level},
			Until: due,
		}
	}
	j := Judgment{
		Verdict: store.Stuck, Rule: "HEAL-1",
		Cause: store.Cause{
			Kind: store.CauseNoRestart, Name: r.Level, For: store.Duration(limit), Text: in.Calls.Problem,
		},
		Facts: []store.Fact{providerSays(in), streamSays(in)},
	}
	return j
}

// putOff returns until when a restart was put off. The machine works as long as its agent has an
// open stream, so no longer than that.
func putOff(in *Instance, now time.Time) time.Time {
	until := in.Calls.PutOff
	if in.asksAfterList() {
		until = store.Later(until, now)
	}
	open := in.Alive.Present() && in.Alive.Record.State == store.StreamOpen
	if since := troubledSince(in); !open && since.Before(until) {
		return since
	}
	return until
}

// restartLimit returns how long each half of a restart may take.
func restartLimit(rec *store.Instance, r *store.Restart) time.Duration {
	if r.Level == store.RestartWorkload {
		return rec.Spec.StopTimeout.D() + max(10*time.Second, 3*rec.Spec.Report.Interval.D())
	}
	return rec.Spec.RegistrationTimeout.D()
}

// judgeReporting judges an instance whose agent holds its lease: DET-3, DET-6, DET-8, DET-10.
func judgeReporting(in *Instance, s *Snapshot, now time.Time) Judgment {
	alive := &in.Alive.Record
	if alive.State == store.StreamOpen && in.Record.Phase == store.Running && reportIsCurrent(in) &&
		in.Report.Record.Healthy {
		// as nearly all are: see member.facts
		return Judgment{Verdict: store.Live, Rule: "DET-5", Cause: of(store.CauseHealthy)}
	}
	facts := []store.Fact{streamSays(in)}
	switch alive.State {
	case store.StreamLost:
		return Judgment{
			Verdict: store.Suspect, Rule: "DET-3", Cause: store.Cause{Kind: store.CauseStreamLost, Text: alive.Why},
			Facts: append(facts, providerSays(in)),
		}
	case store.StreamOverdue:
		return Judgment{
			Verdict: store.Suspect, Rule: "DET-6", Cause: of(store.CauseOverdue),
			Facts: append(facts, providerSays(in)),
		}
	case store.StreamLeft:
		if alive.Goodbye == store.GoodbyeRefused {
			return Judgment{
				Verdict: store.Suspect, Rule: "DET-8",
				Cause: store.Cause{Kind: store.CauseRefused, Text: alive.Why},
				Facts: append(facts, providerSays(in)),
			}
		}
		return Judgment{
			Verdict: store.Suspect, Rule: "DET-8",
			Cause: store.Cause{Kind: store.CauseGoodbye, Name: string(alive.Goodbye)},
			Facts: append(facts, providerSays(in)),
		}
	default: // open, or moving to another replica
	}
	notYet := store.Cause{Kind: store.CauseNotYetHealthy, Name: reason.NoReport}
	if reportIsCurrent(in) {
		notYet.Name, notYet.Text = "", in.Report.Record.Why
		switch {
		case in.Report.Record.Healthy && !restartConfirmed(in):
			notYet.Name, notYet.Text = reason.Unconfirmed, ""
		case in.Report.Record.Healthy:
			return Judgment{Verdict: store.Live, Rule: "DET-5", Cause: of(store.CauseHealthy), Facts: facts}
		case rebooted(in):
			notYet.Kind = store.CauseRebooted
			return Judgment{Verdict: store.Live, Rule: "DET-10", Cause: notYet, Facts: facts}
		case in.Record.Phase == store.Running || in.Record.Phase == store.Draining:
			return Judgment{
				Verdict: store.Unhealthy, Rule: "DET-9",
				Cause: store.Cause{Kind: store.CauseUnhealthy, Text: in.Report.Record.Why},
				Facts: append(facts, checksSay(in.Report.Record)...),
			}
		case in.Record.Phase == store.Checking && restartConfirmed(in) && ended(in) && !endedWell(in):
			// more time will not make it healthy
			return Judgment{
				Verdict: store.Unhealthy, Rule: "DET-9",
				Cause: store.Cause{Kind: store.CauseWorkloadEnded, Text: in.Report.Record.Why},
				Facts: append(facts, checksSay(in.Report.Record)...),
			}
		}
	}
	limit := in.Record.Spec.MaxChecking.D()
	if in.Record.Phase != store.Checking || limit == 0 {
		return Judgment{Verdict: store.Live, Rule: "DET-5", Cause: of(store.CauseReports), Facts: facts}
	}
	due := in.PhaseStart.Add(limit)
	if due.Before(s.GraceEnd) {
		due = s.GraceEnd
	}
	if now.Before(due) {
		return Judgment{
			Verdict: store.Live, Rule: "DET-10", Cause: notYet, Facts: facts, Until: due,
		}
	}
	notYet.Kind, notYet.For = store.CauseNeverHealthy, in.Record.Spec.MaxChecking
	return Judgment{
		Verdict: store.Stuck, Rule: "DET-10", Cause: notYet,
		Facts: append(facts, checksSay(in.Report.Record)...),
	}
}

// rebooted reports whether a running instance has come back with another boot than the one that
// became healthy, without a restart of ours.
func rebooted(in *Instance) bool {
	return in.Record.Phase == store.Running && in.Record.Boot != "" && in.Alive.Present() &&
		in.Alive.Record.State == store.StreamOpen &&
		in.Alive.Record.BootID != in.Record.Boot
}

// ended reports whether the workload of the present boot has ended by itself.
func ended(in *Instance) bool { return reportIsCurrent(in) && in.Report.Record.Workload != nil }

// endedWell reports whether the workload has ended and nothing more is expected of it: it is a task
// with exit code 0 (REC-12).
func endedWell(in *Instance) bool {
	w := in.Report.Record.Workload
	return ended(in) && in.Record.Spec.Lifecycle == store.LifecycleTask && w.Code == 0 && w.Signal == ""
}

// restartConfirmed reports whether the agent has confirmed the last restart that it was asked for.
func restartConfirmed(in *Instance) bool {
	r := in.Record.Restart
	return r == nil || in.Record.Phase != store.Checking || !r.ByAgent() || in.Report.Record.Restarted == r.Token
}

// reportIsCurrent reports whether the persisted report is of the machine's present boot. Within a
// boot the gateway persists every change of the verdict, so the last one is valid.
func reportIsCurrent(in *Instance) bool {
	return in.Report.Present() && in.Report.Record.BootID == in.Alive.Record.BootID
}

// providerSays returns the provider's list entry of the machine as a fact.
func providerSays(in *Instance) store.Fact {
	see := &in.Sighting
	switch {
	case in.byHand():
		return store.Fact{Kind: store.FactByHand}
	case see.Begun.IsZero():
		return store.Fact{Kind: store.FactNoList}
	case !see.Listed:
		f := store.Fact{Kind: store.FactUnlisted}
		if see.Times > 1 {
			f.Count = 2 // the count is left out: the next list would make it another fact
		}
		return f
	default:
		return store.Fact{Kind: store.FactListed, Name: see.State}
	}
}

// streamSays returns the state of the agent's session as a fact.
func streamSays(in *Instance) store.Fact {
	if !in.Alive.Present() {
		return store.Fact{Kind: store.FactNoSession}
	}
	a := &in.Alive.Record
	return store.Fact{
		Kind: store.FactStream, Name: string(a.State), Rev: in.Alive.Modified, Count: int(a.Epoch), By: a.Replica,
	}
}

// reportIs returns the agent's last report as a fact.
func reportIs(in *Instance) store.Fact {
	return store.Fact{Kind: store.FactReport, Rev: in.Report.Modified}
}

// inWords returns a fact with the provider's own words.
func inWords(text string) []store.Fact { return []store.Fact{{Text: text}} }

// facts returns the facts that a verdict is based on. For a healthy member they are computed only
// here, when an operator asks.
func (m *member) facts() []store.Fact {
	if m.judgment.Facts == nil && m.Alive.Present() {
		return []store.Fact{streamSays(m.Instance)}
	}
	return m.judgment.Facts
}

// checksSay returns the failing checks that make an instance unhealthy, without optional ones.
func checksSay(r store.Report) []store.Fact {
	var out []store.Fact
	for _, c := range r.Checks {
		if !c.Healthy && !c.Optional {
			out = append(out, store.Fact{Kind: store.FactCheck, Name: c.Name, Text: c.Why})
		}
	}
	return out
}

// The use of max_unavailable is counted from the evidence (REC-18): a member counts as down from
// the first evidence on, long before that evidence is enough to destroy anything.

// up reports whether a member has fully booted and there is no evidence that it is down.
func (f *fleet) up(m *member) bool { return f.booted(m) && !m.seemsDown() }

// crashed reports whether the agent says that the workload has ended although it should run.
// Starting it again takes nothing down.
func (m *member) crashed() bool {
	return m.Alive.Present() && ended(m.Instance) && !endedWell(m.Instance)
}

// seemsDown reports whether the provider's newest List says that the machine is down, confirmed or
// not (DET-4). A List does not count if the agent reported after it, or if it describes another
// boot.
func (m *member) seemsDown() bool {
	see := &m.Sighting
	if !see.Listed || !see.Down || upSince(m.Instance, see.Begun) {
		return false
	}
	if m.Alive.Present() && m.Alive.Record.State == store.StreamOpen {
		return !see.Begun.Before(m.StreamSince) && (see.BootID == "" || see.BootID == m.Alive.Record.BootID)
	}
	return true
}
