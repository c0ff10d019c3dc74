package story

import (
	"maps"
	"slices"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Group is the present situation of a group: deviations from its spec, and work in progress.
type Group struct {
	Rests bool         // it wants no instance, or no new one
	Storm *store.Storm // in progress: lost instances are not replaced
	// Aftermath is a storm that has ended; the instances lost in it are replaced gradually.
	Aftermath *store.Storm
	Breaker   *store.Breaker // if it is open, no instance is healed for failing checks
	Roll      *Roll
	Verdicts  []VerdictCount   // of instances that are not live, worst first
	Phases    []PhaseCount     // of instances that are being made or removed; stuck ones count by their verdict
	Outdated  int              // instances, if no roll updates them
	Flapping  int              // slots
	Errored   int              // slots
	Agents    *store.AgentWave // an upgrade of agents; nil: none
	Turns     []store.Blocked
	// Blocked is work that cannot be done, except what Storm, Roll, Errored, Lost or an uneven
	// spread explain, and except Turns, which only wait for their turn.
	Blocked []store.Blocked
	Lost    []string // instances whose records were lost
	// Acknowledged means that a release has acknowledged the loss, so that it blocks nothing any
	// longer.
	Acknowledged bool
}

// Roll is a roll in progress, or halted.
type Roll struct {
	store.Rollout
	State RollState
	Why   string // why it is halted
}

// RollState is the state of a roll.
type RollState int

// The states of a roll.
const (
	Rolling RollState = iota
	Stalled           // no instance became healthy for too long
	Stopped           // its template is blamed for failures
)

// Halted reports whether the roll does not continue by itself.
func (r *Roll) Halted() bool { return r != nil && r.State != Rolling }

// VerdictCount is the number of instances with a verdict.
type VerdictCount struct {
	Verdict store.Verdict
	N       int
}

// PhaseCount is the number of instances in a phase.
type PhaseCount struct {
	Phase store.Phase
	N     int
}

var worstFirst = []store.Verdict{store.Lost, store.Dead, store.Unhealthy, store.Stuck, store.Suspect, store.Doomed}

// Of derives the situation of a group from its status.
func Of(st store.Status) Group {
	g := Group{
		Rests:   st.State == store.GroupReady || st.State == store.GroupStopped || st.State == store.GroupFinished,
		Breaker: st.Breaker, Flapping: st.Flapping, Errored: st.Errored, Lost: lostRecords(st),
		Acknowledged: acknowledged(st),
		Agents:       st.Agents,
	}
	switch {
	case st.Storm == nil:
	case st.Storm.Ended == "":
		g.Storm = st.Storm
	default:
		g.Aftermath = st.Storm
	}
	g.Roll = rollOf(st)
	if g.Roll == nil {
		g.Outdated = st.Outdated
	}
	for _, v := range worstFirst {
		if n := st.Verdicts[v]; n > 0 {
			g.Verdicts = append(g.Verdicts, VerdictCount{v, n})
		}
	}
	phases := maps.Clone(st.Phases)
	withoutStuck(phases, st.Verdicts[store.Stuck])
	for _, p := range store.Phases {
		if n := phases[p]; n > 0 && p != store.Running && p != store.Finished {
			g.Phases = append(g.Phases, PhaseCount{p, n})
		}
	}
	for _, b := range st.Blocked {
		switch {
		case reason.TakesTurn(&b):
			g.Turns = append(g.Turns, b)
		case !g.explains(&b, &st):
			g.Blocked = append(g.Blocked, b)
		}
	}
	return g
}

// rollOf returns the roll of a group; nil if there is none, or none that changes instances for its
// own sake. A halted one is always returned.
func rollOf(st store.Status) *Roll {
	if st.Rollout == nil {
		return nil
	}
	r := &Roll{Rollout: *st.Rollout}
	switch {
	case r.Blamed != "":
		r.State, r.Why = Stopped, reason.Text(r.BlamedCause, r.Blamed)
	case r.Rollout.Stalled != "":
		r.State, r.Why = Stalled, reason.Text(r.StalledCause, r.Rollout.Stalled)
	case st.Accepted != nil && st.Accepted.Rollout.Strategy == store.StrategyOpportunistic:
		return nil
	}
	return r
}

// explains reports whether the other fields already explain why the work is blocked.
func (g *Group) explains(b *store.Blocked, st *store.Status) bool {
	switch reason.TopicOf(b) {
	case reason.TopicStorm:
		return g.Storm != nil
	case reason.TopicHaltedRoll:
		return g.Roll.Halted()
	case reason.TopicGivenUp:
		return g.Errored > 0
	case reason.TopicSpread:
		return st.Uneven != ""
	case reason.TopicSpot:
		return st.Shares != nil && st.Shares.Fallback > 0
	case reason.TopicDamage:
		more := b.Instance == "" && reason.Until(b) == "" // represents those that were not listed
		return len(g.Lost) > 1 && (more || slices.Contains(g.Lost, b.Instance))
	default:
		return false
	}
}

// NeedsAttention reports whether an operator must look after the group.
func (g *Group) NeedsAttention() bool {
	return len(g.Blocked) > 0 || g.Errored > 0 || g.Storm != nil || g.Breaker != nil || g.Roll.Halted()
}

// acknowledged reports whether none of the lost records blocks anything.
func acknowledged(st store.Status) bool {
	return len(lostRecords(st)) > 0 && !slices.ContainsFunc(st.Blocked,
		func(b store.Blocked) bool { return reason.TopicOf(&b) == reason.TopicDamage })
}

// lostRecords returns the instances of a group whose records were lost.
func lostRecords(st store.Status) []string {
	var ids []string
	for _, d := range st.Damaged {
		if d.What == store.DamageLost && d.Instance != "" {
			ids = append(ids, d.Instance)
		}
	}
	return ids
}

// withoutStuck subtracts stuck instances from the phases in which an instance can be stuck: they
// count by their verdict. The status does not say which of the two phases they are in; those in
// checking are subtracted first.
func withoutStuck(phases map[store.Phase]int, stuck int) {
	for _, p := range []store.Phase{store.Checking, store.Booting} {
		if taken := min(phases[p], stuck); taken > 0 {
			phases[p] -= taken
			stuck -= taken
		}
	}
}
