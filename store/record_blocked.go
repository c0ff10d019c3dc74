package store

import "time"

// Blocked is work that is due and cannot be done yet, and why. The planner sets Kind, Work and Of,
// and package coordinator/reason renders them. What, Why, Until hold the same as text: releases
// without Kind read only these, and what they wrote has only these.
type Blocked struct {
	Rule     string `json:"rule"`
	What     string `json:"what"`
	Why      string `json:"why"`
	Until    string `json:"until,omitempty"` // what frees it
	Instance string `json:"instance,omitempty"`

	Kind    BlockedKind  `json:"kind,omitempty"`
	Work    Work         `json:"work,omitempty"`
	Of      BlockedFacts `json:"of,omitzero"`
	Turn    bool         `json:"turn,omitempty"`    // it only waits for its turn, as intended
	Command string       `json:"command,omitempty"` // frees it; "" if no single command does
}

// BlockedFacts are the values of a Blocked. The kind and the work determine which of them are set.
type BlockedFacts struct {
	Group string    `json:"group,omitempty"`
	Other string    `json:"other,omitempty"` // another instance: a replacement, or one that leaves first
	Phase Phase     `json:"phase,omitempty"` // of Other; with WorkPhase of the instance itself
	Slot  int       `json:"slot,omitempty"`
	Zone  string    `json:"zone,omitempty"`
	To    string    `json:"to_zone,omitempty"`
	Name  string    `json:"name,omitempty"` // a provider, a template or an operator
	Count int       `json:"count,omitempty"`
	Limit int       `json:"limit,omitempty"`
	For   Duration  `json:"for,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Opens time.Time `json:"opens,omitzero"` // when it may begin; zero: not known
	// Budgets: max_expansion and max_unavailable, and how much of each is in use.
	Expansion     int `json:"max_expansion,omitempty"`
	ExpansionUsed int `json:"expansion_used,omitempty"`
	Down          int `json:"max_unavailable,omitempty"`
	DownUsed      int `json:"unavailable_used,omitempty"`

	Flag bool   `json:"flag,omitempty"` // see the kind for its meaning
	Text string `json:"text,omitempty"` // a provider's error or an operator's words

	Balancer BalancerState `json:"balancer,omitempty"` // how load balancer Name has the instance
	// Work that was decided before, and waits too.
	Creations int `json:"creations,omitempty"`
	Removals  int `json:"removals,omitempty"`
	Restarts  int `json:"restarts,omitempty"`
	// Cause is a judgment, a doom, or why an instance goes, a slot is given up or a template is
	// blamed. A release before wrote it as Text.
	Cause Cause `json:"cause,omitzero"`
}

// Work is the work that is blocked.
type Work string

// The kinds of work. Where a comment names no field, the work is that on Blocked.Instance.
const (
	WorkAll             Work = "all"              // all changes of the group
	WorkInstance        Work = "instance"         // all work on the instance
	WorkSlot            Work = "slot"             // all work on Slot
	WorkCreateAll       Work = "create_all"       // creation of all instances
	WorkCreateMissing   Work = "create_missing"   // creation of the missing instances
	WorkCreateRemaining Work = "create_remaining" // creation of the missing instances that remain
	WorkFill            Work = "fill"             // an instance in Slot
	WorkRemove          Work = "remove"
	WorkReplace         Work = "replace"
	WorkUpdate          Work = "update"
	WorkRestart         Work = "restart"
	WorkExpire          Work = "expire"
	WorkWithdraw        Work = "withdraw"
	WorkDelete          Work = "delete"
	WorkForget          Work = "forget" // the removal of its record
	WorkHealth          Work = "health"
	WorkPhase           Work = "phase" // Phase, for which a provider is asked
	WorkScaleDown       Work = "scale_down"
	WorkScaleDownWell   Work = "scale_down_healthy" // scale-down by a healthy instance
	WorkRoll            Work = "roll"
	WorkRebalance       Work = "rebalance" // from Zone to To
	WorkToSpot          Work = "to_spot"   // of one instance
	WorkToOnDemand      Work = "to_on_demand"
	WorkUpgrade         Work = "agent_upgrade" // of the group's agents
	WorkMore            Work = "more"          // Count more, which the list leaves out
)

// BlockedKind is why work is blocked.
type BlockedKind string

// The kinds of Blocked, with the fields of BlockedFacts that they use.
const (
	BlockedByHold             BlockedKind = "hold"              // Name: who; Since; Text: why
	BlockedByPause            BlockedKind = "pause"             // Creations, Removals, Restarts that were decided before
	BlockedByStaleState       BlockedKind = "stale_state"       // Cause
	BlockedByDamage           BlockedKind = "damage"            // Cause
	BlockedByMissingList      BlockedKind = "missing_list"      // Name: the provider
	BlockedNotStarted         BlockedKind = "not_started"       //
	BlockedByEvacuation       BlockedKind = "evacuation"        // Name: the group's zones, separated by commas
	BlockedByMaxCreating      BlockedKind = "max_creating"      // Other: makes room
	BlockedByMaxDeleting      BlockedKind = "max_deleting"      //
	BlockedByBudget           BlockedKind = "budget"            // the budgets; Other: makes room
	BlockedByMaxUnavailable   BlockedKind = "max_unavailable"   // Limit
	BlockedByMaxExpansion     BlockedKind = "max_expansion"     // Limit
	BlockedByNoExpansion      BlockedKind = "no_expansion"      // Cause: why the instance goes
	BlockedByCapacity         BlockedKind = "capacity"          // Count machines, Limit
	BlockedByReplacement      BlockedKind = "replacement"       // Other, Phase; Cause: why the instance goes
	BlockedByHealing          BlockedKind = "healing"           // Other
	BlockedByUnhealthy        BlockedKind = "unhealthy"         // Count slots; Flag: heal.policy is none
	BlockedByScaleHealing     BlockedKind = "scale_healing"     // Other: the replacement in progress
	BlockedByRoll             BlockedKind = "roll"              //
	BlockedByUnprovedTemplate BlockedKind = "unproved_template" // Name: the template
	BlockedByUnsettled        BlockedKind = "unsettled"         // Flag: the work may wait; Opens: when a grace ends
	BlockedByWithdrawal       BlockedKind = "withdrawal"        // Cause; For
	BlockedByNoSpot           BlockedKind = "no_spot"           // Count on demand instead; Text; For
	BlockedByFullZone         BlockedKind = "full_zone"         // To
	BlockedByProtectedZone    BlockedKind = "protected_zone"    // Zone
	BlockedByProtectedShare   BlockedKind = "protected_share"   //
	BlockedByProtection       BlockedKind = "protection"        // Name: who; Text: why; Opens
	BlockedByHealProtection   BlockedKind = "heal_protection"   // Cause: the judgment
	BlockedByProtectedRest    BlockedKind = "protected_rest"    //
	BlockedByHealPolicy       BlockedKind = "heal_policy"       // Cause: the judgment
	BlockedByAgent            BlockedKind = "agent"             // Cause: the judgment
	BlockedByConfirmations    BlockedKind = "confirmations"     // Count
	BlockedByBlamedTemplate   BlockedKind = "blamed_template"   // Cause; Name is used; Text: why the good one is not
	BlockedByDrain            BlockedKind = "drain"             // Cause; For; Flag: it has a hook
	BlockedByChecks           BlockedKind = "checks"            // Text; For: the limit
	BlockedByChecksGivenUp    BlockedKind = "checks_given_up"   // Text: its report; Slot; Cause: why it is given up
	BlockedByProvider         BlockedKind = "provider"          // Text: its error; Flag: of the template
	BlockedByCopies           BlockedKind = "copies"            // Count machines; Text: some of their refs
	BlockedByEarlierCalls     BlockedKind = "earlier_calls"     //
	BlockedByAgentStop        BlockedKind = "agent_stop"        //
	BlockedByUnconfigured     BlockedKind = "unconfigured"      // Name: the provider; Text: the site; Opens: for an order
	BlockedByFlapping         BlockedKind = "flapping"          // Slot, Count failures; For
	BlockedByGivenUpSlot      BlockedKind = "given_up"          // Slot; Cause
	BlockedByStartup          BlockedKind = "startup"           // Other
	BlockedByOnDemand         BlockedKind = "on_demand"         // Cause: why it has to go
	BlockedByNewDoom          BlockedKind = "new_doom"          // Cause; Other: what it replaces; For
	BlockedByStorm            BlockedKind = "storm"             // Count of Limit lost; For
	BlockedByStormEnd         BlockedKind = "storm_end"         // For
	BlockedByStormProbe       BlockedKind = "storm_probe"       // the budgets; Other: makes room
	BlockedByOpening          BlockedKind = "opening"           // Name: the load balancer; Balancer, Text; For
	BlockedByTraffic          BlockedKind = "traffic"           // Name: the load balancer; Balancer, Text; Count; For
	BlockedByBalancer         BlockedKind = "balancer"          // Name: the load balancer; Text: its error
	// Count instances fail, Limit; For: until one is healed as a probe, 0: never
	BlockedByBreaker BlockedKind = "breaker"
	// Count of Limit canaries are healthy; For: 0 waits for promotion; Opens: when a grace ends that
	// lasts longer
	BlockedByCanary BlockedKind = "canary"
	BlockedByBake   BlockedKind = "bake" // Zone: that is done; For; Opens as of canaries
	// Opens: zero is never
	BlockedByWindow BlockedKind = "window"
	// Opens; Name: who ordered it, "" is the group's file; Text: why
	BlockedByFreeze BlockedKind = "freeze"
	// For: how long it is waited for; Opens: until when
	BlockedByBusy BlockedKind = "busy"
	// For: by how much the replicas' clocks differ
	BlockedByClocks BlockedKind = "clocks"
	// Name: the provider; Count machines; Text: its error; Flag: it refuses credentials, else a quota
	BlockedByRefusal BlockedKind = "refusal"
	// Name: the provider; Since; Text: its first error
	BlockedByOutage BlockedKind = "outage"
	// Name: the setting; Limit; Count: instances that slots wait for
	BlockedByLimit BlockedKind = "limit"
	// Name: the source of the number; Text: what it is, or why it is missing
	BlockedByAnalysis BlockedKind = "analysis"
	// Name: the version, which no coordinator serves, signed
	BlockedByNoRelease BlockedKind = "no_release"
	// Name: the version; Other: a coordinator; Text: its version, which is earlier
	BlockedByOldCoordinator BlockedKind = "old_coordinator"
	// Name: the version; Other: the instance that is not of it; Text: why
	BlockedByUpgradeStopped BlockedKind = "upgrade_stopped"
	// Name: the budget_group; Limit; Count instances down; Text: in which groups
	BlockedBySharedBudget BlockedKind = "shared_budget"
)

// BlockedKinds are all kinds.
var BlockedKinds = []BlockedKind{
	BlockedByHold, BlockedByPause, BlockedByStaleState, BlockedByDamage, BlockedByMissingList, BlockedNotStarted,
	BlockedByEvacuation, BlockedByMaxCreating, BlockedByMaxDeleting, BlockedByBudget, BlockedByMaxUnavailable,
	BlockedByMaxExpansion, BlockedByNoExpansion, BlockedByCapacity, BlockedByReplacement, BlockedByHealing,
	BlockedByUnhealthy, BlockedByScaleHealing, BlockedByRoll, BlockedByUnprovedTemplate, BlockedByUnsettled,
	BlockedByWithdrawal, BlockedByNoSpot, BlockedByFullZone, BlockedByProtectedZone, BlockedByProtectedShare,
	BlockedByProtection, BlockedByHealProtection,
	BlockedByProtectedRest, BlockedByHealPolicy, BlockedByAgent, BlockedByConfirmations, BlockedByBlamedTemplate,
	BlockedByDrain, BlockedByChecks, BlockedByChecksGivenUp, BlockedByProvider, BlockedByRefusal,
	BlockedByCopies, BlockedByEarlierCalls, BlockedByAgentStop, BlockedByUnconfigured,
	BlockedByFlapping, BlockedByGivenUpSlot, BlockedByStartup, BlockedByOnDemand, BlockedByNewDoom, BlockedByStorm,
	BlockedByStormEnd, BlockedByStormProbe, BlockedByOpening, BlockedByTraffic, BlockedByBalancer, BlockedByLimit,
	BlockedByCanary, BlockedByBake, BlockedByBreaker, BlockedByWindow, BlockedByFreeze, BlockedByClocks, BlockedByBusy,
	BlockedBySharedBudget, BlockedByAnalysis, BlockedByOutage, BlockedByNoRelease, BlockedByOldCoordinator,
	BlockedByUpgradeStopped,
}

// Works are all kinds of work.
var Works = []Work{
	WorkAll, WorkInstance, WorkSlot, WorkCreateAll, WorkCreateMissing, WorkCreateRemaining, WorkFill, WorkRemove,
	WorkReplace, WorkUpdate, WorkRestart, WorkExpire, WorkWithdraw, WorkDelete, WorkForget, WorkHealth, WorkPhase,
	WorkScaleDown, WorkScaleDownWell, WorkRoll, WorkRebalance, WorkToSpot, WorkToOnDemand, WorkUpgrade, WorkMore,
}
