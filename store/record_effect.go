package store

// Effect is what a decision does, in fields. Package reason renders it: the text stands beside it
// in the journal, for readers and for a release before that knows no fields.
type Effect struct {
	Kind     EffectKind `json:"kind,omitempty"`
	Name     string     `json:"name,omitempty"`
	Names    []string   `json:"names,omitempty"`    // of load balancers
	Instance string     `json:"instance,omitempty"` // another instance
	Zone     string     `json:"zone,omitempty"`
	Count    int        `json:"count,omitempty"`
	Limit    int        `json:"limit,omitempty"`
	For      Duration   `json:"for,omitempty"`
	Text     string     `json:"text,omitempty"`
	Then     SlotEffect `json:"then,omitzero"` // what happens to the slot
}

// SlotEffect is what a decision about an instance does to its slot.
type SlotEffect struct {
	Kind     EffectKind `json:"kind,omitempty"`
	Instance string     `json:"instance,omitempty"` // another instance
	Count    int        `json:"count,omitempty"`
	For      Duration   `json:"for,omitempty"`
	Text     string     `json:"text,omitempty"`
}

// Effect is the same as the effect of a decision of its own.
func (s SlotEffect) Effect() Effect {
	return Effect{Kind: s.Kind, Instance: s.Instance, Count: s.Count, For: s.For, Text: s.Text}
}

// EffectKind is the kind of an Effect.
type EffectKind string

// The kinds of Effect, with the fields that they use.
const (
	// The way of an instance.
	EffectRequested      EffectKind = "requested"
	EffectOnDemand       EffectKind = "requested_on_demand"
	EffectByHand         EffectKind = "to_be_set_up_by_hand"
	EffectAdopted        EffectKind = "adopted"           // on demand
	EffectAdoptedInto    EffectKind = "adopted_into_slot" // Count
	EffectInZone         EffectKind = "tried_in_zone"     // Zone
	EffectMadeOnDemand   EffectKind = "made_on_demand"
	EffectMachineExists  EffectKind = "machine_exists"
	EffectAddress        EffectKind = "address" // Name
	EffectRegistered     EffectKind = "registered"
	EffectHealthy        EffectKind = "healthy"
	EffectRecovered      EffectKind = "recovered"
	EffectFinished       EffectKind = "finished"
	EffectRebooted       EffectKind = "rebooted"
	EffectUpdatedLive    EffectKind = "updated_live"
	EffectRestarting     EffectKind = "restarting" // Name: the level
	EffectRestartWhen    EffectKind = "restart_when_idle"
	EffectRestarted      EffectKind = "restarted"
	EffectBack           EffectKind = "back" // after its restart
	EffectDoomed         EffectKind = "doomed"
	EffectProtected      EffectKind = "protected" // Name: the mode; For, or without an end
	EffectUnprotected    EffectKind = "unprotected"
	EffectOrdered        EffectKind = "ordered" // Name: replaced, deleted or drained
	EffectOrderRefused   EffectKind = "order_refused"
	EffectReplaced       EffectKind = "replaced" // Instance is requested, or one is
	EffectDraining       EffectKind = "draining"
	EffectDrains         EffectKind = "drains" // after all
	EffectDrained        EffectKind = "drained"
	EffectHookBegun      EffectKind = "hook_begun"
	EffectCameBack       EffectKind = "came_back"
	EffectDeleting       EffectKind = "deleting"
	EffectWithdrawn      EffectKind = "withdrawn"
	EffectGone           EffectKind = "gone"
	EffectExtra          EffectKind = "extra_removed"
	EffectAliveRemoved   EffectKind = "alive_removed"
	EffectJoins          EffectKind = "joins"           // Names
	EffectLeaves         EffectKind = "leaves"          // Names
	EffectLeavesRestart  EffectKind = "leaves_restart"  // Names; to be restarted
	EffectPutBack        EffectKind = "put_back"        // Names
	EffectTakenOut       EffectKind = "taken_out"       // Names
	EffectDrillMachines  EffectKind = "drill_machines"  // Count are to be ended
	EffectDrill          EffectKind = "drill"           // Name: what is to be killed
	EffectAgentOffered   EffectKind = "agent_offered"   // Name
	EffectAgentInstalled EffectKind = "agent_installed" // Name
	EffectAgentUpgraded  EffectKind = "agent_upgraded"  // Name
	EffectAgentUnproved  EffectKind = "agent_unproved"  // Name
	EffectAgentStays     EffectKind = "agent_stays"
	EffectOfferWithdrawn EffectKind = "offer_withdrawn"
	EffectOfferOver      EffectKind = "offer_over"

	// Calls of a provider, which Name names.
	EffectAsked        EffectKind = "asked"
	EffectAskedAgain   EffectKind = "asked_again"
	EffectAskedRestart EffectKind = "asked_to_restart"
	EffectAskedCopy    EffectKind = "asked_to_remove_copy" // Text: the copy
	EffectAskedDrill   EffectKind = "asked_to_end"

	// Slots.
	EffectSlotWaits    EffectKind = "slot_waits" // slot Count flaps, waits For, or is given up: Text
	EffectSlotGivenUp  EffectKind = "slot_given_up"
	EffectSlotMachine  EffectKind = "slot_awaits_machine" // the end of its machine
	EffectSlotRoom     EffectKind = "slot_awaits_room"
	EffectAwaitsRoom   EffectKind = "awaits_room_of" // Instance
	EffectSlotForgets  EffectKind = "slot_forgets"   // its failures
	EffectSlotsRestart EffectKind = "slots_start_over"
	EffectSlotRemoved  EffectKind = "slot_removed"
	EffectSlotsRemoved EffectKind = "slots_removed" // of a deleted group
	EffectSlotWritten  EffectKind = "slot_written"

	// Groups.
	EffectSpecAccepted   EffectKind = "spec_accepted"
	EffectSpecRefused    EffectKind = "spec_refused"
	EffectGroupState     EffectKind = "group_state" // Name
	EffectGroupDeleted   EffectKind = "group_deleted"
	EffectStatus         EffectKind = "status"
	EffectStatusWritten  EffectKind = "status_written"
	EffectStatusRemoved  EffectKind = "status_removed"
	EffectSize           EffectKind = "size"        // from Count to Limit
	EffectSizeAdvised    EffectKind = "size_advice" // from Count to Limit
	EffectSizeFollows    EffectKind = "size_follows_load"
	EffectBySchedule     EffectKind = "by_schedule" // Text: what it sets
	EffectStorm          EffectKind = "storm"
	EffectStormOver      EffectKind = "storm_over"
	EffectProbe          EffectKind = "probe" // Instance
	EffectBreakerOpened  EffectKind = "breaker_opened"
	EffectBreakerClosed  EffectKind = "breaker_closed"
	EffectRollBegun      EffectKind = "roll_begun"        // Name: the template
	EffectRollComplete   EffectKind = "roll_complete"     // Name
	EffectRollOff        EffectKind = "roll_called_off"   // Name
	EffectRollBack       EffectKind = "rolled_back"       // Name; Names: of secrets whose values stay
	EffectRollZone       EffectKind = "roll_begins_zone"  // Zone
	EffectRollNextZone   EffectKind = "roll_goes_on_zone" // Zone
	EffectRollStalled    EffectKind = "roll_stalled"
	EffectRollStopped    EffectKind = "roll_stopped"
	EffectRollGoesOn     EffectKind = "roll_goes_on"
	EffectPromoted       EffectKind = "canaries_promoted"
	EffectUpgradeBegun   EffectKind = "upgrade_begun" // of agents
	EffectUpgradeDone    EffectKind = "upgrade_complete"
	EffectUpgradeStopped EffectKind = "upgrade_stopped"
	EffectUpgradeRetried EffectKind = "upgrade_retried"
	EffectDrillsGoOn     EffectKind = "drills_go_on"
	EffectDrillLeftOut   EffectKind = "drill_left_out"

	// The shard.
	EffectHold          EffectKind = "hold"
	EffectMoreDamage    EffectKind = "more_damage"
	EffectZoneEvacuated EffectKind = "zone_evacuated" // Zone
	EffectZoneReturned  EffectKind = "zone_returned"  // Zone
)
