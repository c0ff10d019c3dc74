package store

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Request is an operator's order to the leader (REC-16).
type Request struct {
	Schema   int         `json:"schema"`
	ID       string      `json:"id"`
	Kind     RequestKind `json:"kind"`
	Group    string      `json:"group,omitempty"`
	Instance string      `json:"instance,omitempty"`
	Zone     string      `json:"zone,omitempty"` // of RequestEvacuate, RequestReturn and RequestDrill
	Mode     string      `json:"mode,omitempty"` // of RequestProtect: ProtectRemoval, ProtectHeal or ProtectOff
	// of RequestAdopt: the slot to take; nil: the slot that the machine had, else a free one
	Slot *int `json:"slot,omitempty"`
	// of RequestBootstrap: the hash of the join token that the operator has, and how long it may be
	// used
	Token string   `json:"token,omitempty"`
	Valid Duration `json:"valid,omitempty"`
	// of RequestProtect: for how long, 0 is until another order, and why
	For Duration  `json:"for,omitempty"`
	Why string    `json:"why,omitempty"`
	By  string    `json:"by"`
	At  time.Time `json:"at"`
}

// once begins the IDs of orders whose giver may repeat them.
const once = "once-"

// OnceID returns the ID of an order whose giver may repeat it, since the answer may get lost: the
// same giver gets the same ID for the same key. The leader notes the end of such an order as it
// notes deletions (Keys.Gone), so that it is known for as long as the journal.
func OnceID(giver, key string) string {
	sum := sha256.Sum256([]byte(giver + "\x00" + key))
	return once + hex.EncodeToString(sum[:16])
}

// IsOnce reports whether an ID is one of OnceID.
func IsOnce(id string) bool { return strings.HasPrefix(id, once) }

// RequestKind is what an operator wants.
type RequestKind string

// The kinds of request.
const (
	// RequestReplace: a replacement first, then the instance goes.
	RequestReplace RequestKind = "replace"
	// RequestDelete: the instance goes now; its slot is filled again.
	RequestDelete RequestKind = "delete"
	// RequestRestart: the machine is restarted in its place.
	RequestRestart RequestKind = "restart"
	// RequestDrain: the instance drains and goes; its slot is filled again.
	RequestDrain RequestKind = "drain"
	// RequestDrained: its work has been taken over; the drain need not be waited for any
	// more.
	RequestDrained RequestKind = "drained"
	// RequestProtect: see Request.Mode.
	RequestProtect RequestKind = "protect"
	// RequestCreate: another instance of the group, on demand (REC-2).
	RequestCreate RequestKind = "create"
	// RequestBootstrap: an instance on demand, whose machine an operator sets up by hand (PROV-9).
	RequestBootstrap RequestKind = "bootstrap"
	// RequestGone: the operator vouches that the machine of an instance is gone, which no provider
	// can prove: it was set up by hand (PROV-9), or no coordinator is configured with its provider
	// (PROV-10).
	RequestGone RequestKind = "gone"
	// RequestAdopt: an extra machine is taken into the group that its tag names (REC-8).
	RequestAdopt RequestKind = "adopt"
	// RequestRetry: flapping and errored slots of the group, or the instance's, start over
	// (FLAP-3).
	RequestRetry RequestKind = "retry"
	// RequestOverrideStorm: the group's storm is over by the operator's word (SAFE-2).
	RequestOverrideStorm RequestKind = "override-storm"
	// RequestPromote: the group's canaries are good, and the roll goes on (ROLL-5).
	RequestPromote RequestKind = "promote"
	// RequestEvacuate: the zone's instances are replaced elsewhere, and none is made there
	// (DRAIN-3).
	RequestEvacuate RequestKind = "evacuate"
	// RequestDrill: the machine of the instance, or of each instance of the group in the zone, is
	// ended as if it had failed (DAY-6).
	RequestDrill RequestKind = "drill"
	// RequestDrillAgent and RequestDrillWorkload: the agent or the workload of the instance is killed
	// (DAY-6).
	RequestDrillAgent    RequestKind = "drill-agent"
	RequestDrillWorkload RequestKind = "drill-workload"
	// RequestReturn: the zone may be used again.
	RequestReturn RequestKind = "return"
)

// Drill returns the name of the kind of drill that is ordered, one of DrillKinds; "": it is another
// order.
func (k RequestKind) Drill() string {
	switch k {
	case RequestDrill:
		return DrillKinds[0]
	case RequestDrillAgent:
		return string(DrillAgent)
	case RequestDrillWorkload:
		return string(DrillWorkload)
	default:
		return ""
	}
}

// MaxBootstrapValid is the longest Request.Valid.
const MaxBootstrapValid = 30 * 24 * time.Hour

// The modes of RequestProtect, as Instance.Protected has them.
const (
	ProtectRemoval = "removal" // never chosen for scale-down, expiry or a roll
	ProtectHeal    = "heal"    // nor healed
	ProtectOff     = "off"
)

// JournalEntry is one entry of the journal: what was decided, by which rule, on what evidence.
type JournalEntry struct {
	Schema   int       `json:"schema"`
	At       time.Time `json:"at"`
	By       string    `json:"by"` // the replica
	Rule     string    `json:"rule"`
	What     string    `json:"what"` // a sentence for people, rendered from Effect where there is one
	Effect   Effect    `json:"effect,omitzero"`
	Why      string    `json:"why,omitempty"`
	Group    string    `json:"group,omitempty"`
	Instance string    `json:"instance,omitempty"`
	Kind     EntryKind `json:"kind,omitempty"`
	Cause    Cause     `json:"cause,omitzero"`
	// Replacement is the instance that was requested in place of Instance.
	Replacement string `json:"replacement,omitempty"`
	// Awaits is what a suspicion waits for, other than the end of a lease.
	Awaits Awaited `json:"awaits,omitempty"`
	// Claimed: Instance is only the name given by a client that was refused. Nothing proves that it
	// was this instance.
	Claimed bool    `json:"claimed,omitempty"`
	Slot    *int    `json:"slot,omitempty"`
	From    Phase   `json:"from,omitempty"`
	To      Phase   `json:"to,omitempty"`
	Verdict Verdict `json:"verdict,omitempty"`
	// Facts are what it rests on. Evidence is the same as text: a release without Facts reads that.
	Facts    []Fact   `json:"facts,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
	// Counterfactual is what would have prevented it. Otherwise is the same as text: a release
	// without Counterfactual reads that.
	Counterfactual Counterfactual `json:"counterfactual,omitempty"`
	Otherwise      string         `json:"otherwise,omitempty"`
	Revision       Revision       `json:"revision"` // of the cache it was decided on
	// Workload is how a failed workload ended, with its last words (DET-19).
	Workload *WorkloadExit `json:"workload_exit,omitempty"`
	// Console is the end of a dead machine's console output, where it is not known how its workload
	// ended (DET-19).
	Console string `json:"console,omitempty"`
}

// Status is the state of a group as its leader writes it.
type Status struct {
	Schema int    `json:"schema"`
	Group  string `json:"group"`
	// the spec in force; its size is the one in force, which load or an operator may have chosen
	// (AUTO-1)
	Accepted         *Group          `json:"accepted,omitempty"`
	AcceptedRevision Revision        `json:"accepted_revision,omitempty"`
	Beside           *Beside         `json:"beside,omitempty"` // the part of it that was set beside a static group
	Invalid          *InvalidSpec    `json:"invalid,omitempty"`
	State            GroupState      `json:"state"`
	Health           int             `json:"health_percent"`
	Healthy          int             `json:"healthy"` // instances that run and are healthy
	OK               bool            `json:"ok"`
	Since            time.Time       `json:"since"`            // of State, Health and Invalid
	Phases           map[Phase]int   `json:"phases,omitempty"` // of the managed instances
	OnDemand         int             `json:"on_demand,omitempty"`
	Verdicts         map[Verdict]int `json:"verdicts,omitempty"`
	Outdated         int             `json:"outdated,omitempty"`
	Flapping         int             `json:"flapping,omitempty"` // slots
	Errored          int             `json:"errored,omitempty"`  // slots
	Storm            *Storm          `json:"storm,omitempty"`
	Breaker          *Breaker        `json:"breaker,omitempty"`
	// HealNext is an instance that has to be replaced and waited while forced expiry began to
	// replace others: it comes before further forced expiry (REC-5).
	HealNext string     `json:"heal_next,omitempty"`
	Rollout  *Rollout   `json:"rollout,omitempty"`
	LastGood *GoodSpec  `json:"last_good,omitempty"`
	History  []PastSpec `json:"history,omitempty"` // newest first
	Blocked  []Blocked  `json:"blocked,omitempty"`
	// instances by zone, if zones differ by two or more (REC-17)
	Uneven    string     `json:"uneven,omitempty"`
	Rebalance *Rebalance `json:"rebalance,omitempty"`
	Shares    *Shares    `json:"shares,omitempty"` // of a group with capacity.spot
	Scale     *Scale     `json:"scale,omitempty"`  // of a group with scale
	Agents    *AgentWave `json:"agents,omitempty"` // of a group with agent.version
	// DrillDue is the time of the last scheduled drill that was begun or left out (DAY-6).
	DrillDue time.Time `json:"drill_due,omitzero"`
	// Records is how many instances of the group have a record, on demand and being deleted
	// included: fewer records, without a gone note newer than this status, mean that some were lost
	// (SAFE-15). Nil in what the release before wrote.
	Records *int `json:"records,omitempty"`
	// of the cache in which Records were counted: gone notes count from there on
	Counted Revision  `json:"counted,omitempty"`
	Damaged []Damaged `json:"damaged,omitempty"` // ordered by key
}

// Rebalance remembers that instances which were made to even the zones were withdrawn: the next one
// waits (REC-17).
type Rebalance struct {
	Withdrawn int    `json:"withdrawn"` // in a row
	Last      string `json:"last"`      // the instance that was withdrawn last
	Why       string `json:"why"`
	Cause     Cause  `json:"cause,omitzero"` // why, in fields
	Wait      *Timer `json:"wait,omitempty"`
}

// Shares is how a group is divided between spot machines and others, and since when there was no
// spot capacity (SPOT-4).
type Shares struct {
	Spot     int `json:"spot"` // slots
	OnDemand int `json:"on_demand"`
	Fallback int `json:"fallback,omitempty"` // of those on demand: because there was no spot capacity
	Wanted   int `json:"wanted"`             // slots that are to be spot
	// Failed is how many tries in a row found no spot capacity.
	Failed int    `json:"failed,omitempty"`
	Last   string `json:"last,omitempty"` // the instance for which there was none last
	Why    string `json:"why,omitempty"`  // the provider's words
	Wait   *Timer `json:"wait,omitempty"` // until then spot is not tried
}

// Storm is a period in which so many instances are lost at once that the machines are unlikely to
// be the cause (SAFE-2).
type Storm struct {
	Since     time.Time `json:"since"`
	Lost      int       `json:"lost"`  // at its height
	Of        int       `json:"of"`    // instances that had registered then
	Shard     bool      `json:"shard"` // it is one of the shard as a whole
	Calm      *Timer    `json:"calm,omitempty"`
	Probe     string    `json:"probe,omitempty"` // the lost instance that is being replaced to see whether that helps
	NextProbe *Timer    `json:"next_probe,omitempty"`
	// the storm is over; instances that are still lost are replaced step by step until then
	Resume *Timer `json:"resume,omitempty"`
	// How it ended, in fields and as text; Ended is "" while it lasts.
	EndedCause Cause  `json:"ended_cause,omitzero"`
	Ended      string `json:"ended,omitempty"`
	By         string `json:"overridden,omitempty"` // the operator who ended it
}

// Breaker is a period in which so many instances fail their checks that none is healed for that
// (ROLL-7).
type Breaker struct {
	Since time.Time `json:"since"`
	Count int       `json:"count"` // instances that fail now
	Limit int       `json:"limit"`
	Probe string    `json:"probe,omitempty"` // the instance that is healed to see whether that helps
	// The slot of the probe, which counts as failing until an instance in it is healthy.
	ProbeSlot *int   `json:"probe_slot,omitempty"`
	NextProbe *Timer `json:"next_probe,omitempty"`
	// The template of a roll is taken for the cause when Doubt ends, if until then only its instances
	// fail (ROLL-5).
	Doubt *Timer `json:"doubt,omitempty"`
}

// Rollout is how far a change has come through a group: ROLL-1 to ROLL-4.
type Rollout struct {
	Template string    `json:"template"`
	Relaunch int       `json:"relaunch,omitempty"`
	Since    time.Time `json:"since"`
	Done     int       `json:"done"`           // instances that are up to date and healthy
	Most     int       `json:"most,omitempty"` // that were so at once: only more of them are progress
	Total    int       `json:"total"`
	Progress time.Time `json:"progress"`         // when the last one became so
	Stalls   *Timer    `json:"stalls,omitempty"` // without progress until then it is stalled
	// Stood is how long it has made no progress, outages of its provider apart, before Stalls began.
	Stood Duration `json:"stood,omitempty"`
	// Why it is stalled, in fields and as text; Stalled is "" if it is not.
	StalledCause Cause  `json:"stalled_cause,omitzero"`
	Stalled      string `json:"stalled,omitempty"`
	// Why the template is taken for the cause, in fields and as text (FLAP-5): the roll has stopped.
	BlamedCause Cause  `json:"blamed_cause,omitzero"`
	Blamed      string `json:"blamed,omitempty"`
	Proved      bool   `json:"proved,omitempty"` // an instance on the template was healthy (ROLL-9)
	// the template that all but the roll create from; "": Template (ROLL-9)
	Fallback string `json:"fallback,omitempty"`
	// Canary is how many slots get the template before it is promoted, settled when the roll began
	// (ROLL-5); 0: there is no canary. Canaries are these slots, as far as they have it.
	Canary   int   `json:"canary,omitempty"`
	Canaries []int `json:"canaries,omitempty"`
	// Why it was promoted, in fields and as text; Promoted is "" if it was not.
	PromotedCause Cause  `json:"promoted_cause,omitzero"`
	Promoted      string `json:"promoted,omitempty"`
	Zone          string `json:"zone,omitempty"` // that it is in, if it goes zone by zone (ROLL-8)
	// Rests is the wait after its canaries or a zone, rollout.canary_duration or rollout.bake: it
	// goes on when this ends.
	Rests *Timer `json:"rests,omitempty"`
	// GraceUntil is when it goes on at the earliest, if a grace ends after Rests: no timer fires in
	// grace (SAFE-13).
	GraceUntil time.Time `json:"grace_until,omitzero"`
	// Doubt is how long the analysis of the source Doubted has to be out of its bounds for the roll to
	// stop; Failed: an analysis or the breaker has stopped the roll, until an operator retries it.
	Doubt   *Timer `json:"doubt,omitempty"`
	Doubted string `json:"doubted,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	Retried bool   `json:"retried,omitempty"` // an operator has: the breaker no longer stops it
	// Back names the template from which it leads back, if the coordinator began it (ROLL-5).
	Back string `json:"back,omitempty"`
	// FallbackUnusable is why the last good template can no longer be used.
	FallbackUnusable string `json:"fallback_unusable,omitempty"`
}

// RestsTo returns when a roll that rests goes on; zero if it does not rest.
func (r *Rollout) RestsTo() time.Time {
	if r.Rests == nil {
		return time.Time{}
	}
	return Later(r.Rests.End(), r.GraceUntil)
}

// GoodSpec is the last template with which the whole group was healthy.
type GoodSpec struct {
	Revision Revision     `json:"revision"` // of the spec
	Template string       `json:"template"`
	At       time.Time    `json:"at"`
	Spec     InstanceSpec `json:"spec"`
}

// PastSpec is a spec that was in force.
type PastSpec struct {
	Revision Revision  `json:"revision"`
	At       time.Time `json:"at"`
	Template string    `json:"template"`
	Size     int       `json:"size"`
	Good     bool      `json:"good,omitempty"` // the whole group was healthy with it
}

// Turn is the value of turns/<group>, the right to the next change of a group that uses its
// budgets. Each such change compares the key and writes it, so that two of them cannot both use the
// whole budget.
type Turn struct {
	Schema   int    `json:"schema"`
	Rule     string `json:"rule"`
	Instance string `json:"instance,omitempty"`
}

// Timers returns the timers in the record, by name: see Timer.
func (s *Status) Timers() []NamedTimer {
	var out []NamedTimer
	add := func(name string, t *Timer) {
		if t != nil {
			out = append(out, NamedTimer{name, *t})
		}
	}
	if s.Storm != nil {
		add(TimerStorm, s.Storm.Calm)
		add(TimerProbe, s.Storm.NextProbe)
		add(TimerResume, s.Storm.Resume)
	}
	if s.Breaker != nil {
		add(TimerBreaker, s.Breaker.NextProbe)
		add(TimerBlame, s.Breaker.Doubt)
	}
	if s.Rollout != nil {
		add(TimerProgress, s.Rollout.Stalls)
		add(TimerRests, s.Rollout.Rests)
		add(TimerDoubt, s.Rollout.Doubt)
	}
	if s.Rebalance != nil {
		add(TimerRebalance, s.Rebalance.Wait)
	}
	if s.Shares != nil {
		add(TimerSpot, s.Shares.Wait)
	}
	s.Scale.timers(add)
	return out
}

// InvalidSpec is why the spec in groups/ is not in force (SAFE-10).
type InvalidSpec struct {
	Revision Revision `json:"revision"` // 0: the key is missing
	Why      string   `json:"why"`
}

// GroupState is the state of a group as a whole (REC-11).
type GroupState string

// The states of a group.
const (
	GroupReady    GroupState = "ready" // applied and never started
	GroupStarted  GroupState = "started"
	GroupStopped  GroupState = "stopped"
	GroupPaused   GroupState = "paused"
	GroupDeleting GroupState = "deleting"
	GroupErrored  GroupState = "errored"  // every slot that is not healthy is given up, and one is
	GroupFinished GroupState = "finished" // all tasks are done
	GroupRefused  GroupState = "refused"  // its spec is wrong, and none was ever in force
)
