package store

// Fact is something that a decision rests on. The kind says which fields are set. Package
// coordinator/reason renders it.
//
// Journal entries hold the rendered text beside it (JournalEntry.Evidence), for the release before.
// What that release wrote has the text alone.
type Fact struct {
	Kind  FactKind `json:"kind,omitempty"`
	Name  string   `json:"name,omitempty"`
	Zone  string   `json:"zone,omitempty"`
	By    string   `json:"by,omitempty"` // a replica, or an operator
	Count int      `json:"count,omitempty"`
	Rev   Revision `json:"rev,omitempty"`
	For   Duration `json:"for,omitempty"`
	// Text is the words of a provider or an agent.
	Text     string        `json:"text,omitempty"`
	Balancer BalancerState `json:"balancer,omitempty"`
	// Cause is why the instance Name is judged as it is.
	Cause *Cause `json:"cause,omitempty"`
}

// FactKind is the kind of a Fact.
type FactKind string

// The kinds of Fact, with the fields that they use. A fact without a kind is its Text.
const (
	FactStream        FactKind = "stream"         // Name: its state, since Rev; Count: the epoch; By
	FactNoSession     FactKind = "no_session"     // Name: the last state of its stream, if that counts
	FactNoList        FactKind = "no_list"        // no provider has listed its machines yet
	FactByHand        FactKind = "by_hand"        // no provider lists it
	FactUnconfigured  FactKind = "unconfigured"   // no coordinator has had provider Name, at site Zone, For so long
	FactListed        FactKind = "listed"         // Name: its state
	FactUnlisted      FactKind = "unlisted"       // Count: how often, if more than once
	FactMachine       FactKind = "machine"        // provider Name, which may be ""; Text: its reference
	FactCheck         FactKind = "check"          // Name; Text: its report
	FactReport        FactKind = "report"         // Rev
	FactNotice        FactKind = "notice"         // Name: its kind
	FactRequest       FactKind = "request"        // Name: its ID; By, if it was refused; of a drill Text: its kind, Zone
	FactInstance      FactKind = "instance"       // Name: another one that is decided about with it
	FactJudged        FactKind = "judged"         // instance Name; Cause
	FactSpec          FactKind = "spec"           // of group Name, Rev
	FactSpecStays     FactKind = "spec_stays"     // Rev stays in force
	FactGoodSpec      FactKind = "good_spec"      // Rev: the whole group was healthy with it
	FactGoodTemplate  FactKind = "good_template"  // Name of group By, of Rev
	FactOrphanGrace   FactKind = "orphan_grace"   // For
	FactClaim         FactKind = "claim"          // of slot Count, template Name
	FactBalancer      FactKind = "balancer"       // load balancer Name; Balancer, Text
	FactListAfter     FactKind = "list_after"     // For: begun so long after the removal
	FactListAfterFail FactKind = "list_after_try" // For: begun so long after a removal failed
	FactFrom          FactKind = "from"           // address Name; a sum: Count, the last said it is By; "": others
	FactCertificate   FactKind = "certificate"    // of instance Name
	FactSays          FactKind = "says"           // a client says that it is Name
	FactKey           FactKind = "key"            // Name: its hash
	FactBoot          FactKind = "boot"           // Name; if By is set: has epoch Count there
	FactReplica       FactKind = "replica"        // Name
	FactKeptHistory   FactKind = "kept_history"   // of etcd: at least For
)

// FactKinds are all of them.
var FactKinds = []FactKind{
	FactStream, FactNoSession, FactNoList, FactByHand, FactUnconfigured, FactListed, FactUnlisted, FactMachine,
	FactCheck, FactReport, FactNotice, FactRequest, FactInstance, FactJudged, FactSpec, FactSpecStays,
	FactGoodSpec, FactGoodTemplate, FactOrphanGrace, FactClaim, FactBalancer, FactListAfter, FactListAfterFail,
	FactFrom, FactCertificate, FactSays, FactKey, FactBoot, FactReplica, FactKeptHistory,
}
