package store

// Cause is why something was decided, or why an instance is judged as it is. The kind says which
// fields are set. Package coordinator/reason renders it; no other package writes such a sentence.
//
// Records hold the rendered text beside it, for the release before. What a release without a kind
// wrote has that text alone, or a kind without the fields that it needs now.
type Cause struct {
	Kind  CauseKind `json:"kind,omitempty"`
	By    string    `json:"by,omitempty"`    // an operator
	Other string    `json:"other,omitempty"` // another instance, or zone
	Name  string    `json:"name,omitempty"`
	Count int       `json:"count,omitempty"`
	Limit int       `json:"limit,omitempty"`
	For   Duration  `json:"for,omitempty"`
	Text  string    `json:"text,omitempty"` // the words of a provider, an agent or an operator

	Balancer BalancerState `json:"balancer,omitempty"`

	Revision Revision `json:"revision,omitempty"` // of etcd

	Heir string        `json:"heir,omitempty"` // the healthy instance that takes its place
	Load *CauseNumbers `json:"load,omitempty"`
	Also *CauseAlso    `json:"also,omitempty"`
}

// CauseNumbers are the numbers that a change of size rests on. They are never changed.
type CauseNumbers struct {
	Numbers []ScaleNumber `json:"numbers"`
}

// CauseAlso is what else a reader has to know, whatever the kind is. It is never changed.
type CauseAlso struct {
	Keeper string `json:"keeper,omitempty"` // the instance that keeps the slot
	Until  string `json:"until,omitempty"`  // as Keeper, until there is a better one
	Place  string `json:"place,omitempty"`  // it is made to take the place of this instance
	Left   string `json:"left,omitempty"`   // why it drained before this happened
	Made   string `json:"made,omitempty"`   // why it is made from another template than the wanted one
}

// PassedAgain is the Text of CausePassed if For counts from a restart.
const PassedAgain = "restart"

// CauseKind is the kind of a Cause.
type CauseKind string

// The kinds of Cause, with the fields that they use.
const (
	// Orders and the wanted state.
	CauseOrder     CauseKind = "order"             // By; Text: why
	CauseOutdated  CauseKind = "outdated"          // Text: what differs from the group
	CauseAge       CauseKind = "age"               // Name: the limit, For; Text: why no replacement is made
	CauseUnneeded  CauseKind = "unneeded"          // Other serves in its slot
	CauseUnwanted  CauseKind = "unwanted_template" // it fails, and its template is not wanted; Text: its report
	CauseSmaller   CauseKind = "smaller"           // Count slots above size Limit; Name: what its slot is
	CauseGroupEnds CauseKind = "group_ends"        // Name: stopped or deleted
	CauseCalm      CauseKind = "slot_steady"       // Other has been healthy For so long
	CauseUnfilled  CauseKind = "unfilled"          // Count of Limit slots are filled
	CauseAdopted   CauseKind = "adopted"           // By
	// the protection that By ordered For so long has ended
	CauseProtectionOver CauseKind = "protection_over"
	CauseTaskDone       CauseKind = "task_done"    // Other has finished the task of the slot
	CauseRollStopped    CauseKind = "roll_stopped" // Other serves
	CauseGivesWay       CauseKind = "gives_way"    // Other needs its room, Name serves
	CauseUnproved       CauseKind = "unproved"     // it is not known to be healthy
	CauseLostTooOften   CauseKind = "lost_too_often"
	CauseShares         CauseKind = "shares" // of spot machines and others
	CauseTooManySpot    CauseKind = "too_many_spot"
	CauseTooFewSpot     CauseKind = "too_few_spot"   // Count of Limit
	CauseNoSpot         CauseKind = "no_spot"        // For so long
	CauseNoSpotServes   CauseKind = "no_spot_serves" // what it replaces serves
	CauseEven           CauseKind = "even"
	CauseScheduled      CauseKind = "scheduled"      // by cron Name in zone Text, from size Count to Limit
	CauseLoad           CauseKind = "load"           // asks for Limit instead of Count: Load; Name: advise
	CauseUneven         CauseKind = "uneven"         // zone Name has Count instances, zone Other has Limit
	CauseFullZone       CauseKind = "full_zone"      // Name
	CauseFullZoneEven   CauseKind = "full_zone_even" // Name

	// Judgments.
	CauseBeingMade       CauseKind = "being_made"
	CauseBeingRemoved    CauseKind = "being_removed"
	CauseFinished        CauseKind = "finished"
	CauseHealthy         CauseKind = "healthy"
	CauseReports         CauseKind = "reports"
	CauseNotYetHealthy   CauseKind = "not_yet_healthy" // Name: what is missing; Text: its report
	CauseNeverHealthy    CauseKind = "never_healthy"   // within For; Name: what is missing; Text: its report
	CauseUnhealthy       CauseKind = "unhealthy"       // Text: its report
	CauseRebooted        CauseKind = "rebooted"        // Name: what is missing; Text: its report
	CauseWorkloadEnded   CauseKind = "workload_ended"  // before it was healthy; Text: its report
	CauseUnregistered    CauseKind = "unregistered"
	CauseNeverRegistered CauseKind = "never_registered" // within For
	CauseAliveUnreadable CauseKind = "alive_unreadable" // Text: the error
	CauseStreamLost      CauseKind = "stream_lost"      // Text: the gateway's reason
	CauseOverdue         CauseKind = "overdue"
	CauseGoodbye         CauseKind = "goodbye"          // Name: its kind
	CauseRefused         CauseKind = "refused"          // its agent; Text: the gateway's reason
	CauseLeaseEnded      CauseKind = "lease_ended"      // to be confirmed for For
	CauseGrace           CauseKind = "grace"            // its lease ended; Text: what began the grace
	CauseNoReturn        CauseKind = "no_return"        // its lease of For ended
	CauseDown            CauseKind = "down"             // Name: its state at the provider
	CauseDownStreamOpen  CauseKind = "down_stream_open" // Name
	CauseDownFenced      CauseKind = "down_fenced"      // Name; it stops itself without a lease
	CauseDownLeaseEnded  CauseKind = "down_lease_ended" // Name; its stream was open when its lease ended
	CauseUnlisted        CauseKind = "unlisted"         // by the provider
	CauseUnlistedNow     CauseKind = "unlisted_now"     // its stream has only just been lost
	CauseGone            CauseKind = "gone"             // not listed any more
	CauseUnknown         CauseKind = "unknown"          // to the provider, asked to restart it
	CauseRestarting      CauseKind = "restarting"       // Name: the level
	CauseNoRestart       CauseKind = "no_restart"       // Name: the level, within For; Text: the provider's error
	CauseNotOpened       CauseKind = "not_opened"       // Name: the load balancer, within For; Balancer, Text
	CauseCalledDown      CauseKind = "called_down"      // Name: the load balancer; Text: its reason

	// Dooms.
	CauseNotice    CauseKind = "notice"    // Text: its reason
	CauseEmptied   CauseKind = "emptied"   // its agent's word; Text: its reason
	CauseEvacuated CauseKind = "evacuated" // zone Name, By

	// What happened to a machine or an agent.
	CauseDead              CauseKind = "dead"
	CauseMadeBy            CauseKind = "made"         // by the provider
	CauseListedThere       CauseKind = "listed_there" // by the provider, at another address
	CauseListedBy          CauseKind = "listed"       // by the provider
	CauseAfter             CauseKind = "after"        // For
	CausePassed            CauseKind = "passed"       // Count checks, if Name; Limit optional ones fail; For; PassedAgain
	CauseBootUnordered     CauseKind = "boot_unordered"
	CauseExitZero          CauseKind = "exit_zero"          // the workload of a task
	CauseWorkloadRestarted CauseKind = "workload_restarted" // by its agent
	CauseMachineRestarted  CauseKind = "machine_restarted"  // by the provider
	CauseOtherBoot         CauseKind = "other_boot"         // reports
	CauseOtherBootListed   CauseKind = "other_boot_listed"  // by the provider
	CauseAgentBack         CauseKind = "agent_back"
	CauseCameBack          CauseKind = "came_back"    // and its slot is better off without it
	CauseUnused            CauseKind = "unused"       // its token, for For
	CauseCallRefused       CauseKind = "call_refused" // Text: the provider's error
	CauseObsolete          CauseKind = "obsolete"     // its template; Text: the provider's error
	CauseNotMade           CauseKind = "not_made"     // within For; Text: the provider's error

	// The ends of records, and machines without one.
	CauseNeverAsked    CauseKind = "never_asked"    // no provider, for the machine
	CauseRemoved       CauseKind = "removed"        // by the provider, which no longer lists it
	CauseVanished      CauseKind = "vanished"       // from the lists; Text: why its removal was not confirmed
	CauseNeverJoined   CauseKind = "never_joined"   // and cannot any more
	CauseStopConfirmed CauseKind = "stop_confirmed" // of its workload, by its agent
	// By; Name: the provider that no coordinator has had For so long, Other: the site; "": set up by
	// hand
	CauseVouchedGone   CauseKind = "vouched_gone"
	CauseGroupEmpty    CauseKind = "group_empty"    // its last instance is gone
	CauseNeverAccepted CauseKind = "never_accepted" // the group's key is gone, and no spec was ever in force
	CauseExtra         CauseKind = "extra"          // provider Name lists it for For; Other: how it is unwanted
	CauseSpoiledAlive  CauseKind = "spoiled_alive"  // nothing ends the key; Text: the error
	CauseSpec          CauseKind = "spec"           // size Count, template Name; Other: what is set besides

	// Load balancers and drains.
	CauseWorks         CauseKind = "works"
	CauseJoins         CauseKind = "joins"  // its group uses the load balancer
	CauseLeaves        CauseKind = "leaves" // its group does not use the load balancer any more
	CauseDrains        CauseKind = "drains"
	CauseHeirServes    CauseKind = "heir_serves" // another instance is healthy in its place
	CauseQuiet         CauseKind = "quiet"       // its load balancers send it nothing new
	CauseHookEnded     CauseKind = "hook_ended"
	CauseDrained       CauseKind = "drained"    // Text: who acknowledged it
	CauseDrainTime     CauseKind = "drain_time" // For
	CauseNoConnections CauseKind = "no_connections"
	CauseIdle          CauseKind = "idle"      // its workload
	CauseBusy          CauseKind = "busy"      // its workload, as far as is known
	CauseBusyTime      CauseKind = "busy_time" // it was busy For so long
	CauseRelieved      CauseKind = "relieved"  // Other is healthy in its place

	// What concerns a group.
	CauseDisturbed       CauseKind = "disturbed"          // Text: what began the grace, For: how long it lasts
	CauseManyLost        CauseKind = "many_lost"          // Count of Limit instances within For
	CauseManyLostInShard CauseKind = "many_lost_in_shard" // Count of Limit instances; Name: in so many groups
	CauseFewLost         CauseKind = "few_lost"           // for For
	CauseOverridden      CauseKind = "overridden"         // By
	CauseStormLasts      CauseKind = "storm_lasts"        // for For
	CauseManyFail        CauseKind = "many_fail"          // Count fail their checks, Limit: heal.max_unhealthy
	CauseNoneOutdated    CauseKind = "none_outdated"
	CauseSomeOutdated    CauseKind = "some_outdated"  // Count instances
	CauseUpdated         CauseKind = "updated"        // Count of Limit are healthy and up to date
	CauseNoProgress      CauseKind = "no_progress"    // of a roll within For
	CauseAnalysis        CauseKind = "analysis"       // of Name; Text: what it says
	CauseManyFailures    CauseKind = "many_failures"  // of a slot: Count, Limit: flap.give_up_after
	CauseFlapsLong       CauseKind = "flaps_long"     // a slot, for For
	CauseTemplateFails   CauseKind = "template_fails" // template Name failed Count times in Limit slots
	// instances on template Name fail their checks, Count of them, and those on Other work beside
	// them, for For; Limit: heal.max_unhealthy
	CauseTemplateBreaks  CauseKind = "template_breaks"
	CauseCanariesHealthy CauseKind = "canaries_healthy" // Count of template Name, for For
	CauseZonesInOrder    CauseKind = "zones_in_order"
	CauseStateBefore     CauseKind = "state_before"    // of the group: Name
	CauseHoldEnded       CauseKind = "hold_ended"      // of its size, which By had chosen
	CauseUnreadable      CauseKind = "unreadable"      // a record; Text: the error
	CauseShardMissing    CauseKind = "shard_missing"   // the shard's record
	CauseRecordSpoiled   CauseKind = "record_spoiled"  // key Name; Text: the error
	CauseRecordLost      CauseKind = "record_lost"     // of instance Name, read last at Revision
	CauseRecordsLost     CauseKind = "records_lost"    // Count of Limit are left since Revision
	CauseUnrecorded      CauseKind = "unrecorded"      // instance Name, of a group not counted yet
	CauseUnrecordedSlot  CauseKind = "unrecorded_slot" // instance Name in slot Count
	CauseAgentWanted     CauseKind = "agent_wanted"    // version Name; Text: the agent's version
	CauseAgentUpgraded   CauseKind = "agent_upgraded"  // to version Name
	CauseAgentStays      CauseKind = "agent_stays"     // not of version Name; Text: why
	CauseAgentLeft       CauseKind = "agent_left"      // the offer of version Name is withdrawn
	CauseUpgrading       CauseKind = "upgrading"       // its agent tries version Name
)

// CauseKinds are all of them.
var CauseKinds = []CauseKind{
	CauseOrder, CauseOutdated, CauseAge, CauseUnneeded, CauseUnwanted, CauseSmaller, CauseGroupEnds, CauseCalm,
	CauseUnfilled, CauseAdopted, CauseProtectionOver, CauseTaskDone, CauseRollStopped, CauseGivesWay, CauseUnproved,
	CauseLostTooOften, CauseShares, CauseTooManySpot, CauseTooFewSpot, CauseNoSpot, CauseNoSpotServes, CauseEven,
	CauseUneven, CauseFullZone, CauseFullZoneEven, CauseBeingMade, CauseBeingRemoved, CauseFinished,
	CauseHealthy, CauseReports, CauseNotYetHealthy, CauseNeverHealthy, CauseUnhealthy, CauseRebooted,
	CauseWorkloadEnded, CauseUnregistered, CauseNeverRegistered, CauseAliveUnreadable, CauseStreamLost,
	CauseOverdue, CauseGoodbye, CauseRefused, CauseLeaseEnded, CauseGrace, CauseNoReturn, CauseDown,
	CauseDownStreamOpen, CauseDownFenced, CauseDownLeaseEnded, CauseUnlisted, CauseUnlistedNow, CauseGone,
	CauseUnknown, CauseRestarting, CauseNoRestart, CauseNotOpened, CauseCalledDown, CauseNotice, CauseEmptied,
	CauseEvacuated, CauseDead, CauseMadeBy, CauseListedBy, CauseListedThere, CauseAfter, CausePassed, CauseBootUnordered,
	CauseExitZero, CauseWorkloadRestarted, CauseMachineRestarted, CauseOtherBoot, CauseOtherBootListed,
	CauseAgentBack, CauseCameBack, CauseUnused, CauseCallRefused, CauseObsolete, CauseNotMade, CauseWorks,
	CauseJoins, CauseLeaves, CauseDrains, CauseHeirServes, CauseQuiet, CauseHookEnded, CauseDrained,
	CauseDrainTime, CauseNoConnections, CauseIdle, CauseBusy, CauseBusyTime,
	CauseRelieved, CauseDisturbed, CauseManyLost, CauseManyLostInShard, CauseFewLost,
	CauseOverridden, CauseStormLasts, CauseManyFail, CauseNoneOutdated, CauseSomeOutdated, CauseUpdated,
	CauseNoProgress, CauseManyFailures, CauseFlapsLong, CauseTemplateFails, CauseTemplateBreaks, CauseAnalysis,
	CauseCanariesHealthy,
	CauseZonesInOrder, CauseStateBefore, CauseHoldEnded, CauseUnreadable, CauseLoad, CauseScheduled,
	CauseNeverAsked, CauseRemoved, CauseVanished, CauseNeverJoined,
	CauseStopConfirmed, CauseVouchedGone, CauseGroupEmpty, CauseNeverAccepted, CauseExtra, CauseSpoiledAlive, CauseSpec,
	CauseShardMissing, CauseRecordSpoiled, CauseRecordLost, CauseRecordsLost, CauseUnrecorded, CauseUnrecordedSlot,
	CauseAgentWanted, CauseAgentUpgraded, CauseAgentStays, CauseAgentLeft, CauseUpgrading,
}

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
	UnlessLoad          Counterfactual = "load"           // was near its targets
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
	UnlessUnoffered     Counterfactual = "unoffered"      // agent.version
)

// Counterfactuals are all of them.
var Counterfactuals = []Counterfactual{
	UnlessReported, UnlessChecksPassed, UnlessListedRunning, UnlessReady, UnlessDown, UnlessRoom, UnlessSize,
	UnlessProvider, UnlessFilled, UnlessKept, UnlessAdopted, UnlessStarted, UnlessEndedBadly, UnlessOrdered,
	UnlessUneven, UnlessShared, UnlessStrategy, UnlessProgress, UnlessSteady, UnlessTemplateWorks, UnlessYounger,
	UnlessNoticed, UnlessLoad,
	UnlessDrained, UnlessEvacuated, UnlessManyLost, UnlessDamaged, UnlessUnrecorded, UnlessUnoffered,
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
