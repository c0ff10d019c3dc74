package reason

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// Effect says what a decision does.
func Effect(e store.Effect) string {
	text := effect(&e)
	if e.Then.Kind != "" {
		text += "; " + Effect(e.Then.Effect())
	}
	return text
}

func effect(e *store.Effect) string {
	if fixed, found := effects[e.Kind]; found {
		return fixed
	}
	switch e.Kind {
	case store.EffectAdoptedInto:
		return fmt.Sprintf("adopted into slot %d", e.Count)
	case store.EffectInZone:
		return "tried in zone " + e.Zone
	case store.EffectAddress:
		return "is at " + e.Name
	case store.EffectRestarting:
		return "restarting its " + e.Name
	case store.EffectProtected:
		text := "protected"
		if e.Name == store.ProtectHeal {
			text += ", also from healing"
		}
		if e.For > 0 {
			text += " for " + e.For.String()
		}
		return text
	case store.EffectOrdered:
		return "ordered to be " + e.Name
	case store.EffectOrderRefused:
		return "order to " + e.Name + " refused"
	case store.EffectReplaced:
		if e.Instance == "" {
			return "replacement requested"
		}
		return "replacement " + e.Instance + " requested"
	case store.EffectJoins:
		return "joins " + balancers(e.Names)
	case store.EffectLeaves:
		return "leaves " + balancers(e.Names)
	case store.EffectLeavesRestart:
		return "leaves " + balancers(e.Names) + " to be restarted"
	case store.EffectPutBack:
		return "put back into " + balancers(e.Names)
	case store.EffectTakenOut:
		return "removed from " + balancers(e.Names)
	case store.EffectDrillMachines:
		return "drill: " + Number(e.Count, "machine") + " to be ended"
	case store.EffectDrill:
		return "drill: its " + e.Name + " to be killed"
	case store.EffectAgentOffered:
		return "agent offered " + e.Name
	case store.EffectAgentInstalled:
		return "agent installed " + e.Name
	case store.EffectAgentUpgraded:
		return "agent upgraded to " + e.Name
	case store.EffectAgentUnproved:
		return "agent has not proved " + e.Name
	case store.EffectAsked:
		return "provider " + e.Name + " is asked"
	case store.EffectAskedAgain:
		return "provider " + e.Name + " is asked again"
	case store.EffectAskedRestart:
		return "provider " + e.Name + " is asked to restart it"
	case store.EffectAskedCopy:
		return "provider " + e.Name + " is asked to remove machine " + e.Text +
			": another call for the instance made it, and it has not registered"
	case store.EffectAskedDrill:
		return "drill: provider " + e.Name + " is asked to end its machine"
	default:
		return effectOnGroup(e)
	}
}

// effectOnGroup says what a decision does to a slot, a group or the shard.
func effectOnGroup(e *store.Effect) string {
	switch e.Kind {
	case store.EffectSlotWaits:
		switch {
		case e.Text != "":
			return fmt.Sprintf("slot %d is given up: %s", e.Count, e.Text)
		case e.For == 0:
			return fmt.Sprintf("slot %d flaps", e.Count)
		default:
			return fmt.Sprintf("slot %d flaps and waits %s", e.Count, e.For)
		}
	case store.EffectAwaitsRoom:
		return "waits for the room of " + e.Instance
	case store.EffectSlotsRestart:
		return Number(e.Count, "slot") + " to start over"
	case store.EffectGroupState:
		return "group is " + e.Name
	case store.EffectSize:
		return fmt.Sprintf("size %d -> %d", e.Count, e.Limit)
	case store.EffectSizeAdvised:
		return fmt.Sprintf("size %d would be %d", e.Count, e.Limit)
	case store.EffectBySchedule:
		return "by schedule " + e.Text
	case store.EffectProbe:
		return "probe: " + e.Instance + " is replaced in the storm"
	case store.EffectRollBegun:
		return "roll to " + e.Name + " begins"
	case store.EffectRollComplete:
		return "roll to " + e.Name + " is complete"
	case store.EffectRollOff:
		return "roll to " + e.Name + " is called off"
	case store.EffectRollBack:
		return "rolled back to template " + e.Name + "; " + Left{Secrets: e.Names, Beside: true}.String()
	case store.EffectRollZone:
		return "roll begins in zone " + e.Zone
	case store.EffectRollNextZone:
		return "roll goes on in zone " + e.Zone
	case store.EffectZoneEvacuated:
		return "zone " + e.Zone + " is evacuated"
	case store.EffectZoneReturned:
		return "zone " + e.Zone + " may be used again"
	default:
		return string(e.Kind) // of a newer release
	}
}

// effects are the sentences of kinds without fields.
var effects = map[store.EffectKind]string{
	"":                         "",
	store.EffectRequested:      "requested",
	store.EffectOnDemand:       "requested on demand",
	store.EffectByHand:         "to be set up by hand",
	store.EffectAdopted:        "adopted on demand",
	store.EffectMadeOnDemand:   "made on demand",
	store.EffectMachineExists:  "machine exists",
	store.EffectRegistered:     "agent registered",
	store.EffectHealthy:        "healthy",
	store.EffectRecovered:      "recovered",
	store.EffectFinished:       "finished",
	store.EffectRebooted:       "back after a restart of its machine",
	store.EffectUpdatedLive:    "updated live",
	store.EffectRestartWhen:    "to be restarted when it is idle",
	store.EffectRestarted:      "restarted",
	store.EffectBack:           "back after its restart",
	store.EffectDoomed:         "doomed",
	store.EffectUnprotected:    "no longer protected",
	store.EffectDraining:       "draining",
	store.EffectDrains:         "drains",
	store.EffectDrained:        "drained",
	store.EffectHookBegun:      "its drain hook is begun",
	store.EffectCameBack:       "came back",
	store.EffectDeleting:       "deleting",
	store.EffectWithdrawn:      "withdrawn",
	store.EffectGone:           "gone",
	store.EffectExtra:          "extra machine is removed",
	store.EffectAliveRemoved:   "unreadable alive key removed",
	store.EffectAgentStays:     "agent stays as it was",
	store.EffectOfferWithdrawn: "offer to the agent withdrawn",
	store.EffectOfferOver:      "withdrawn offer is over",

	store.EffectSlotGivenUp:  "slot given up",
	store.EffectSlotMachine:  "its slot is filled when its machine is gone",
	store.EffectSlotRoom:     "its slot is filled when there is room for it",
	store.EffectSlotForgets:  "slot's failures forgotten",
	store.EffectSlotRemoved:  "slot removed",
	store.EffectSlotsRemoved: "slots of a deleted group removed",
	store.EffectSlotWritten:  "slot written again",

	store.EffectSpecAccepted:   "spec accepted",
	store.EffectSpecRefused:    "spec not accepted",
	store.EffectGroupDeleted:   "group deleted",
	store.EffectStatus:         "status",
	store.EffectStatusWritten:  "status written again",
	store.EffectStatusRemoved:  "status removed",
	store.EffectSizeFollows:    "size follows the load again",
	store.EffectStorm:          "storm: no lost instance is replaced",
	store.EffectStormOver:      "storm is over",
	store.EffectBreakerOpened:  "breaker opened: none is healed for failing checks",
	store.EffectBreakerClosed:  "breaker closed",
	store.EffectRollStalled:    "roll is stalled",
	store.EffectRollStopped:    "roll stopped",
	store.EffectRollGoesOn:     "roll goes on",
	store.EffectPromoted:       "canaries promoted",
	store.EffectUpgradeBegun:   "upgrade of agents begun",
	store.EffectUpgradeDone:    "upgrade of agents complete",
	store.EffectUpgradeStopped: "upgrade of agents stopped",
	store.EffectUpgradeRetried: "upgrade of agents to be tried again",
	store.EffectDrillsGoOn:     "scheduled drills go on",
	store.EffectDrillLeftOut:   "scheduled drill left out",

	store.EffectHold:       "shard put on hold",
	store.EffectMoreDamage: "more damage during the hold",
}

// balancers names load balancers.
func balancers(names []string) string {
	if len(names) == 1 {
		return "load balancer " + names[0]
	}
	return "load balancers " + strings.Join(names, ", ")
}
