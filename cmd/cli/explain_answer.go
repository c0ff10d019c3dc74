package cli

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// answerOf describes the state of an instance in a sentence.
func answerOf(sc *scene, i store.Instance, j plan.Judgment, life []store.JournalEntry) string {
	since := fmt.Sprintf("since %s (%s)", story.Clock(i.Since, sc.now), output.Age(sc.now, i.Since))
	place := placeTaken(sc, i.ID, &i.Slot, life)
	switch i.Phase {
	case store.Pending, store.Creating:
		return fmt.Sprintf("%s is being CREATED %s%s", i.ID, since, takesPlaceOf(i))
	case store.Booting:
		return fmt.Sprintf("%s is BOOTING %s: %s%s", i.ID, since, judgedBriefly(j, "its agent has not registered yet"),
			takesPlaceOf(i))
	case store.Checking:
		return fmt.Sprintf("%s is CHECKING %s: %s%s", i.ID, since, judgedBriefly(j, "it is not healthy yet"),
			takesPlaceOf(i))
	case store.Stopping, store.Starting:
		return fmt.Sprintf("%s is being RESTARTED %s because %s", i.ID, since,
			reason.Clause(i.Last.Cause, i.Last.Why))
	case store.Draining:
		until := ""
		if d := i.Drain; d != nil {
			until = ", until " + story.Clock(d.Timer.End(), sc.now) + " at the latest"
		}
		return fmt.Sprintf("%s is DRAINING %s%s, because %s%s", i.ID, since, until, partingReason(i, life), place)
	case store.Deleting:
		return fmt.Sprintf("%s is being DELETED %s because %s%s", i.ID, since, partingReason(i, life), place)
	case store.Finished:
		return fmt.Sprintf("%s has FINISHED %s", i.ID, since)
	default:
		return running(sc, i, j, since)
	}
}

// running describes an instance that runs.
func running(sc *scene, i store.Instance, j plan.Judgment, since string) string {
	text := fmt.Sprintf("%s is RUNNING %s", i.ID, since)
	switch {
	case j.Verdict == store.Live || j.Verdict == store.Doomed || j.Verdict == "":
		text = fmt.Sprintf("%s is RUNNING and healthy %s", i.ID, since)
	default:
		text += fmt.Sprintf(", but it is %s: %s", strings.ToUpper(string(j.Verdict)), j.Why())
	}
	switch gone := sc.evacuation(i); {
	case i.Doomed != nil:
		text += "; it is DOOMED: " + reason.Text(i.Doomed.Cause, i.Doomed.Why)
	case gone != "":
		text += "; it is DOOMED: " + gone
	}
	if r, found := sc.holder(i.Slot, i.ID); found && r.Replaces == i.ID {
		text += fmt.Sprintf("; its replacement %s is %s", r.ID, r.Phase)
	}
	if spec, known := sc.world.Spec(); known && i.Managed {
		if action, _ := plan.Update(i, spec); action != "" {
			text += fmt.Sprintf("; it is outdated, and to be brought up to date by %s",
				strings.ReplaceAll(action, "_", " "))
		}
	}
	return text
}

func judgedBriefly(j plan.Judgment, usual string) string {
	switch {
	case j.Why() == "" || j.Verdict == store.Unborn:
		return usual
	case j.Verdict == store.Live:
		return j.Why()
	default:
		return "it is " + strings.ToUpper(string(j.Verdict)) + ": " + j.Why()
	}
}

func takesPlaceOf(i store.Instance) string {
	if i.Replaces == "" {
		return ""
	}
	return "; it takes the place of " + i.Replaces
}

// partingReason returns why an instance is being removed.
func partingReason(i store.Instance, life []store.JournalEntry) string {
	if e, found := partingOf(i.ID, life); found {
		return removalReason(e)
	}
	if d := i.Drain; d != nil {
		return reason.Clause(d.Cause, d.Why)
	}
	return reason.Clause(i.Last.Cause, i.Last.Why)
}

// removalReason returns why an instance was removed, in a few words.
func removalReason(e store.JournalEntry) string {
	if e.Cause.Kind != store.CauseOrder && e.Verdict.Failed() {
		return "it was " + strings.ToUpper(string(e.Verdict))
	}
	return reason.Clause(e.Cause, e.Why) // an order applies in every state
}

// placeTaken returns which instance took the slot of another; "" if none did, or it had the slot
// before.
func placeTaken(sc *scene, id string, slot *int, life []store.JournalEntry) string {
	next := successorOf(id, life)
	if slot == nil || *slot < 0 {
		return ""
	}
	holder, found := sc.holder(*slot, id)
	switch {
	case next != "" && found && holder.ID == next && holder.Phase != store.Running:
		return fmt.Sprintf("; %s (%s) takes slot %d", next, holder.Phase, *slot)
	case next != "" && found && holder.ID != next:
		return fmt.Sprintf("; %s took slot %d, which %s has now", next, *slot, holder.ID)
	case next != "":
		return fmt.Sprintf("; %s took slot %d", next, *slot)
	case found:
		return fmt.Sprintf("; %s has slot %d", holder.ID, *slot)
	default:
		return ""
	}
}
