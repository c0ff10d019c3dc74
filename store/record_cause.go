package store

// Cause is why something was decided, as far as a reader needs more than the text: it is empty
// where the text says all. Package coordinator/reason renders it.
type Cause struct {
	Kind CauseKind `json:"kind,omitempty"`
	By   string    `json:"by,omitempty"`   // the operator, of CauseOrder
	Text string    `json:"text,omitempty"` // what the other fields do not say
	Heir string    `json:"heir,omitempty"` // the healthy instance that takes its place
}

// CauseKind is the kind of a Cause.
type CauseKind string

// The kinds of Cause.
const (
	CauseOrder     CauseKind = "order"       // an operator ordered it
	CauseOutdated  CauseKind = "outdated"    // Text: what differs from the group
	CauseAge       CauseKind = "age"         // the instance is too old
	CauseUnneeded  CauseKind = "unneeded"    // another instance serves in its slot
	CauseSmaller   CauseKind = "smaller"     // the group has more slots than its size
	CauseGroupEnds CauseKind = "group_ends"  // the group is stopped or being deleted
	CauseCalm      CauseKind = "slot_steady" // a slot has been healthy for long enough
)

// Counterfactual is what would have prevented a decision.
type Counterfactual string

// The kinds of Counterfactual.
const (
	UnlessReported      Counterfactual = "reported"       // its agent
	UnlessChecksPassed  Counterfactual = "checks_passed"  //
	UnlessListedRunning Counterfactual = "listed_running" // by its provider
	UnlessReady         Counterfactual = "ready"          // in time
	UnlessDown          Counterfactual = "original_down"  // the original had not recovered
	UnlessRoom          Counterfactual = "room"           // there was room for both
	UnlessSize          Counterfactual = "size"           // size was not lowered
	UnlessProvider      Counterfactual = "provider"       // it had not failed for so long
	UnlessFilled        Counterfactual = "filled"         // the slot of a new instance
	UnlessKept          Counterfactual = "kept"           // the group is not being deleted
	UnlessAdopted       Counterfactual = "adopted"        //
	UnlessStarted       Counterfactual = "started"        // the group is not stopped
	UnlessEndedBadly    Counterfactual = "ended_badly"    // the workload
	UnlessOrdered       Counterfactual = "ordered"        // it was an order
	UnlessUneven        Counterfactual = "uneven"         // the zones
	UnlessShared        Counterfactual = "shares"         // of spot and on demand
	UnlessStrategy      Counterfactual = "strategy"       // opportunistic, or protection
	UnlessProgress      Counterfactual = "progress"       // of a roll
	UnlessSteady        Counterfactual = "steady"         // the slot
	UnlessTemplateWorks Counterfactual = "template_works" // on one instance
	UnlessYounger       Counterfactual = "younger"        //
	UnlessNoticed       Counterfactual = "noticed"        // by a provider's notice
	UnlessDrained       Counterfactual = "drained"        //
	UnlessEvacuated     Counterfactual = "evacuated"      //
	UnlessManyLost      Counterfactual = "many_lost"      //
	UnlessDamaged       Counterfactual = "damaged"        //
	UnlessUnrecorded    Counterfactual = "unrecorded"     //
)

// Counterfactuals are all of them.
var Counterfactuals = []Counterfactual{
	UnlessReported, UnlessChecksPassed, UnlessListedRunning, UnlessReady, UnlessDown, UnlessRoom, UnlessSize,
	UnlessProvider, UnlessFilled, UnlessKept, UnlessAdopted, UnlessStarted, UnlessEndedBadly, UnlessOrdered,
	UnlessUneven, UnlessShared, UnlessStrategy, UnlessProgress, UnlessSteady, UnlessTemplateWorks, UnlessYounger,
	UnlessNoticed,
	UnlessDrained, UnlessEvacuated, UnlessManyLost, UnlessDamaged, UnlessUnrecorded,
}

// Awaited is what a suspicion waits for.
type Awaited string

// What a suspicion may wait for. Empty: the end of a lease.
const (
	AwaitsList Awaited = "list" // of the provider's machines
	AwaitsCalm Awaited = "calm" // no disturbance of etcd or of a replica
)

// EntryKind is what an entry of the journal is, where a reader treats it differently.
type EntryKind string

// The kinds of JournalEntry.
const (
	EntryVerdict EntryKind = "verdict" // What is the verdict
	EntryRefusal EntryKind = "refusal" // of an order
	EntryCall    EntryKind = "call"    // of a provider
)
