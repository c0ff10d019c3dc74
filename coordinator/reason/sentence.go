package reason

import (
	"cmp"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// What is missing before an instance is healthy, as Cause.Name of NotYetHealthy, NeverHealthy and
// Rebooted.
const (
	NoReport    = "report"  // it has reported nothing yet
	Unconfirmed = "restart" // its agent has not confirmed its restart
)

// Why a slot goes when a group gets smaller, as Cause.Name of Smaller.
const (
	SlotFailed   = "failed"
	SlotInWork   = "in_work"
	SlotDoubtful = "doubtful"
	SlotOutdated = "outdated"
	SlotOldest   = "oldest"
)

var whyFirst = map[string]string{
	SlotFailed:   "no wanted instance works in its slot",
	SlotInWork:   "it is not working yet",
	SlotDoubtful: "it is suspect or doomed",
	SlotOutdated: "it is outdated",
	SlotOldest:   "it is the oldest of its zone",
}

// What ends a group's instances, as Cause.Name of GroupEnds.
const (
	GroupDeleted = "deleted"
	GroupStopped = "stopped"
)

// Sentence renders a cause; it returns "" if the cause has only a text, as in releases without
// fields, or nothing at all. Each function below renders one part of the kinds, and leaves the rest
// to the next one.
func Sentence(c store.Cause) string {
	if fixed, found := fixed[c.Kind]; found {
		return fixed
	}
	return motive(c)
}

// motive renders why an instance is made or leaves: an operator's order, or what the group wants.
func motive(c store.Cause) string {
	switch c.Kind {
	case store.CauseOrder:
		return also("ordered by "+c.By, ": ", OneLine(c.Text))
	case store.CauseOutdated:
		if c.Text == "" {
			return "it is outdated"
		}
		return "outdated: " + c.Text
	case store.CauseAge:
		if c.Name == "" {
			return c.Text
		}
		return also(fmt.Sprintf("it is older than %s %s", c.Name, c.For), ", and its replacement was tried: ", c.Text)
	case store.CauseUnneeded:
		if c.Other == "" {
			return c.Text
		}
		return c.Other + " is healthy, one of them is enough"
	case store.CauseUnwanted:
		return "what it was made from is no longer wanted, and its checks fail: " + c.Text
	case store.CauseSmaller:
		if c.Name == "" {
			return c.Text
		}
		return fmt.Sprintf("%s above size %d, and %s", Number(c.Count, "slot"), c.Limit, whyFirst[c.Name])
	case store.CauseGroupEnds:
		switch c.Name {
		case GroupDeleted:
			return "the group is being deleted"
		case GroupStopped:
			return "the group is stopped"
		}
		return c.Text
	case store.CauseCalm:
		if c.Other == "" {
			return c.Text
		}
		return fmt.Sprintf("%s has been healthy for %s", c.Other, c.For)
	case store.CauseUnfilled:
		return fmt.Sprintf("%d of %s %s filled", c.Count, Number(c.Limit, "slot"), areOf(c.Count, c.Limit))
	case store.CauseAdopted:
		return "adopted by order of " + c.By
	case store.CauseProtectionOver:
		return fmt.Sprintf("the protection for %s that %s ordered is over", c.For, c.By)
	case store.CauseTaskDone:
		return c.Other + " has finished the task of its slot"
	case store.CauseRollStopped:
		return "the roll is stopped, and " + c.Other + " serves"
	case store.CauseGivesWay:
		return "the healing of " + c.Other + " needs its room, and " + c.Name + " serves"
	default:
		return capacity(c)
	}
}

// capacity renders what asks for another size or place: the load, a schedule, spot machines, zones.
func capacity(c store.Cause) string {
	switch c.Kind {
	case store.CauseTooFewSpot:
		return fmt.Sprintf("%d of %s %s", c.Count, Number(c.Limit, "wanted instance"),
			Verb(c.Count, "is a spot machine", "are spot machines"))
	case store.CauseNoSpot:
		return "there was no spot capacity for " + c.For.String()
	case store.CauseScheduled:
		text := "scale.schedule says so at " + c.Name + " in " + cmp.Or(c.Text, "UTC")
		if c.Count != c.Limit {
			text += fmt.Sprintf(": size %d -> %d", c.Count, c.Limit)
		}
		return text
	case store.CauseLoad:
		if c.Load == nil {
			return c.Text
		}
		return Numbers(c.Load.Numbers)
	case store.CauseUneven:
		return fmt.Sprintf("zone %s has %s, and zone %s has %d", c.Name, Number(c.Count, "instance"), c.Other, c.Limit)
	case store.CauseFullZone:
		return "zone " + c.Name + " has no room"
	case store.CauseFullZoneEven:
		return "zone " + c.Name + " has no room, and it was made to even the zones"
	case store.CauseEvacuated:
		return fmt.Sprintf("zone %s is evacuated by %s", c.Name, c.By)
	default:
		return happened(c)
	}
}

// happened renders what was found about a machine or an agent.
func happened(c store.Cause) string {
	switch c.Kind {
	case store.CauseNotYetHealthy:
		return also("not healthy yet", ": ", missing(c))
	case store.CauseNeverHealthy:
		return fmt.Sprintf("not healthy within %s: %s", c.For, missing(c))
	case store.CauseRebooted:
		return also("its machine has started again", ": ", missing(c))
	case store.CauseWorkloadEnded:
		return "its workload ended before it was healthy: " + c.Text
	case store.CauseNeverRegistered:
		return fmt.Sprintf("its agent did not register within %s", c.For)
	case store.CauseAliveUnreadable:
		return "its alive key cannot be read: " + c.Text
	case store.CauseStreamLost:
		return "its stream was lost: " + c.Text
	case store.CauseGoodbye:
		return "its agent said goodbye: " + c.Name
	case store.CauseRefused:
		return "its agent is there, and is refused: " + c.Text
	case store.CauseLeaseEnded:
		return fmt.Sprintf("its lease ended; to be confirmed for %s", c.For)
	case store.CauseGrace:
		return "its lease ended, but agents have time to return: " + c.Text
	case store.CauseNoReturn:
		return fmt.Sprintf("its lease (%s) ended and it did not return", c.For)
	case store.CauseDown:
		return "the provider says " + c.Name
	case store.CauseDownStreamOpen:
		return "the provider says " + c.Name + ", and its stream is open: asking again"
	case store.CauseDownFenced:
		return "the provider says " + c.Name + ", and it stops itself without a lease: asking again"
	case store.CauseDownLeaseEnded:
		return "the provider says " + c.Name + ", and its stream was open when its lease ended: asking again"
	case store.CauseNotice:
		return also("a notice says that its machine will end", ": ", c.Text)
	case store.CauseEmptied:
		return also("its agent says that the machine is to be emptied", ": ", c.Text)
	case store.CauseRestarting:
		return "its " + c.Name + " is being restarted"
	case store.CauseNoRestart:
		return also(fmt.Sprintf("its %s did not restart within %s", c.Name, c.For), ": ", c.Text)
	case store.CauseNotOpened:
		return fmt.Sprintf("load balancer %s has not called it healthy within %s: %s", c.Name, c.For,
			balancerState(c.Balancer, c.Text))
	case store.CauseCalledDown:
		return also("load balancer "+c.Name+" calls it down", ": ", c.Text)
	case store.CauseAfter:
		return "after " + c.For.String()
	case store.CausePassed:
		return passed(c)
	case store.CauseUnused:
		return fmt.Sprintf("no machine joined as it within %s", c.For)
	case store.CauseCallRefused:
		return "the provider refuses it: " + c.Text
	case store.CauseObsolete:
		return "the template has changed since it failed: " + c.Text
	case store.CauseNotMade:
		return fmt.Sprintf("the provider did not make it within %s: %s", c.For, c.Text)
	case store.CauseBusyTime:
		return fmt.Sprintf("its workload was busy for busy.timeout %s", c.For)
	case store.CauseDrainTime:
		return fmt.Sprintf("it had %s to drain", c.For)
	case store.CauseRelieved:
		return c.Other + " is healthy in its place"
	default:
		return ofGroup(c)
	}
}

// ofGroup renders causes that concern a whole group.
func ofGroup(c store.Cause) string {
	switch c.Kind {
	case store.CauseDisturbed:
		return fmt.Sprintf("for %s agents have time to return: %s", c.For, c.Text)
	case store.CauseManyLost:
		return fmt.Sprintf("%d of %s lost or silent within %s", c.Count, Number(c.Limit, "instance"), c.For)
	case store.CauseManyLostInShard:
		return fmt.Sprintf("%d of %s of the shard lost or silent, in %s groups", c.Count, Number(c.Limit, "instance"),
			c.Name)
	case store.CauseFewLost:
		return "losses have been few for " + c.For.String()
	case store.CauseOverridden:
		return "overridden by " + c.By
	case store.CauseStormLasts:
		return "it has lasted for " + c.For.String() + "; if the replacement gets healthy, the next follows"
	case store.CauseManyFail:
		return fmt.Sprintf("%s, and heal.max_unhealthy is %d",
			Counted(c.Count, "fails its checks", "fail their checks"), c.Limit)
	case store.CauseSomeOutdated:
		return Number(c.Count, "instance") + " to be brought up to date"
	case store.CauseUpdated:
		return fmt.Sprintf("%d of %d %s healthy and up to date", c.Count, c.Limit, areOf(c.Count, c.Limit))
	case store.CauseNoProgress:
		return "no further instance got healthy and up to date within " + c.For.String()
	case store.CauseAnalysis:
		return fmt.Sprintf("analysis %s: %s", c.Name, c.Text)
	case store.CauseManyFailures:
		return fmt.Sprintf("%s, more than flap.give_up_after %d", Number(c.Count, "failure"), c.Limit)
	case store.CauseFlapsLong:
		return fmt.Sprintf("it has flapped for %s", c.For)
	case store.CauseTemplateFails:
		return fmt.Sprintf("instances on %s failed %s in %s, and none got healthy in between: "+
			"the template is taken for the cause", c.Name, Counted(c.Count, "time", "times"), Number(c.Limit, "slot"))
	case store.CauseTemplateBreaks:
		return fmt.Sprintf("%s on %s %s, and heal.max_unhealthy is %d; those on %s work beside %s, for %s: the "+
			"template is taken for the cause", Number(c.Count, "instance"), c.Name,
			Verb(c.Count, "fails its checks", "fail their checks"), c.Limit, c.Other, Verb(c.Count, "it", "them"), c.For)
	case store.CauseCanariesHealthy:
		return fmt.Sprintf("%s of %s %s been healthy for %s", Number(c.Count, "canary instance"), c.Name,
			has(c.Count), c.For)
	case store.CauseStateBefore:
		return "it was " + c.Name
	case store.CauseHoldEnded:
		return "the size that " + c.By + " had chosen holds no longer"
	case store.CauseAgentWanted:
		return also("the group asks for "+c.Name, ", and its agent is of ", c.Text)
	case store.CauseAgentUpgraded:
		return "it runs " + c.Name
	case store.CauseAgentStays:
		return also("it did not come to "+c.Name, ": ", c.Text)
	case store.CauseAgentLeft:
		return "the offer of " + c.Name + " is no longer valid"
	case store.CauseUpgrading:
		return "its agent may be trying " + c.Name + ", and goes back by itself"
	case store.CauseSpec:
		return fmt.Sprintf("size %d, template %s%s", c.Count, c.Name, setBeside[c.Other])
	default:
		return ofRecord(c)
	}
}

// ofRecord renders causes that concern a record: it is lost or unreadable, or a machine has none.
func ofRecord(c store.Cause) string {
	switch c.Kind {
	case store.CauseUnreadable:
		return "it could not be read: " + c.Text
	case store.CauseRecordSpoiled:
		return c.Text
	case store.CauseRecordLost:
		return fmt.Sprintf("the record of %s is gone, and was not deleted on purpose; it was there at revision %d",
			c.Name, c.Revision)
	case store.CauseRecordsLost:
		return fmt.Sprintf("%s had a record at revision %d, and %d %s one: the others were not deleted on purpose; to go "+
			"on without them, put the shard on hold, unless it is, and release it", Number(c.Limit, "instance"), c.Revision,
			c.Count, has(c.Count))
	case store.CauseUnrecorded:
		return c.Name + " has the group's tag, there is no record of it, and none was deleted on purpose; " +
			"no leader has counted the group's records yet"
	case store.CauseUnrecordedSlot:
		return fmt.Sprintf("%s has slot %d by its claim or name, there is no record of it, and none was deleted on purpose",
			c.Name, c.Count)
	case store.CauseVanished:
		return "its removal was never confirmed (" + c.Text + "), but the provider no longer lists it"
	case store.CauseVouchedGone:
		said := "operator " + c.By + " says that its machine is gone"
		if c.Name == "" {
			return said
		}
		return fmt.Sprintf("%s, and for %s no coordinator has been configured with %s", said, c.For,
			providerAt(c.Name, c.Other))
	case store.CauseExtra:
		return fmt.Sprintf("%s lists it with our tag since %s, there is no record of it, and %s", c.Name, c.For,
			unwanted[c.Other])
	case store.CauseSpoiledAlive:
		return "no lease ends it, and no replica has written it again: " + c.Text
	default: // an agent's or a person's own words: Unhealthy, Drained, no kind
		return c.Text
	}
}

// fixed are the sentences of kinds without fields.
var fixed = map[store.CauseKind]string{
	store.CauseShardMissing:      "the shard's record is missing",
	store.CauseUnproved:          "it is not known to be healthy",
	store.CauseLostTooOften:      "it was lost too often",
	store.CauseShares:            "the group gets its shares of spot machines and machines on demand",
	store.CauseTooManySpot:       "the group has more spot machines than it wants",
	store.CauseNoSpotServes:      "there is no spot capacity, and what it replaces serves",
	store.CauseEven:              "zones are evened",
	store.CauseBeingMade:         "being made",
	store.CauseBeingRemoved:      "being removed",
	store.CauseFinished:          "finished",
	store.CauseHealthy:           "it reports and is healthy",
	store.CauseReports:           "it reports",
	store.CauseUnregistered:      "its agent has not registered yet",
	store.CauseOverdue:           "its report is overdue",
	store.CauseUnlisted:          "the provider does not list it",
	store.CauseUnlistedNow:       "the provider does not list it, and its stream has only just been lost: asking again",
	store.CauseGone:              "the provider no longer lists it",
	store.CauseUnknown:           "asked to restart it, the provider knows no such machine",
	store.CauseDead:              "it is dead",
	store.CauseMadeBy:            "the provider made it",
	store.CauseListedThere:       "its provider lists it there",
	store.CauseListedBy:          "the provider lists it",
	store.CauseBootUnordered:     "it reports from another boot, which was not ordered",
	store.CauseExitZero:          "its workload ended with exit code 0",
	store.CauseWorkloadRestarted: "its agent has restarted the workload",
	store.CauseMachineRestarted:  "the provider has restarted it",
	store.CauseOtherBoot:         "another boot of it reports",
	store.CauseOtherBootListed:   "the provider lists another boot of it",
	store.CauseAgentBack:         "its agent reports again",
	store.CauseCameBack:          "it came back, and its slot is better off without it",
	store.CauseWorks:             "it is healthy",
	store.CauseJoins:             "its group uses it",
	store.CauseLeaves:            "its group no longer uses it",
	store.CauseDrains:            "it drains",
	store.CauseHeirServes:        "another instance is healthy in its place",
	store.CauseQuiet:             "its load balancers send it nothing new",
	store.CauseHookEnded:         "its drain hook has ended",
	store.CauseIdle:              "its workload is idle",
	store.CauseBusy:              "its workload is busy, as far as is known",
	store.CauseNoConnections:     "no connection to it is in use",
	store.CauseNeverAsked:        "no provider was ever asked for it",
	store.CauseRemoved:           "the provider removed it and no longer lists it",
	store.CauseNeverJoined:       "no machine has joined as it, and none can join now",
	store.CauseStopConfirmed:     "its agent has confirmed that its workload was stopped",
	store.CauseGroupEmpty:        "its last instance is gone",
	store.CauseNeverAccepted:     "the group's key is gone, and no spec of it was ever in force",
	store.CauseNoneOutdated:      "what is wanted now is what all have",
	store.CauseZonesInOrder:      "zones follow one another in order of name",
}

// How an extra machine is known not to be wanted, as Cause.Other of Extra.
const (
	ExtraDeleted  = "deleted"
	ExtraReplaced = "replaced"
	ExtraNoGroup  = "no_group"
)

var unwanted = map[string]string{
	ExtraDeleted:  "its record was deleted on purpose",
	ExtraReplaced: "another instance has its slot",
	ExtraNoGroup:  "its group was deleted on purpose",
}

// What an operator has set besides a spec, as Cause.Other of Spec.
const (
	SpecDeleting  = "deleting"
	SpecStopped   = "stopped"
	SpecUnstarted = "unstarted"
	SpecPaused    = "paused"
)

var setBeside = map[string]string{
	SpecDeleting: ", to be deleted", SpecStopped: ", stopped", SpecUnstarted: ", not started", SpecPaused: ", paused",
}

// missing says what an instance lacks to be healthy.
func missing(c store.Cause) string {
	switch c.Name {
	case NoReport:
		return "it has reported nothing yet"
	case Unconfirmed:
		return "its agent has not confirmed its restart"
	default:
		return c.Text
	}
}

// passed says which checks a healthy instance passed.
func passed(c store.Cause) string {
	text := "its agent reports and it has no checks"
	if c.Name != "" {
		text = fmt.Sprintf("checks %d/%d", c.Count, c.Count)
	}
	if c.Limit > 0 {
		text += fmt.Sprintf(" (and %d optional failing)", c.Limit)
	}
	if c.Text == store.PassedAgain {
		return fmt.Sprintf("%s, %s after its restart", text, c.For)
	}
	return fmt.Sprintf("%s, %s after it registered", text, c.For)
}
