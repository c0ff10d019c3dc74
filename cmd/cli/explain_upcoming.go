package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// upcomingFor returns the upcoming decisions that concern an instance: of the instance itself, of
// its slot and its replacement, of a storm that delays it, and of instances in progress that it
// waits for.
func upcomingFor(sc *scene, i store.Instance, blocked []store.Blocked) []story.Upcoming {
	all := append(story.InstanceUpcoming(i), story.SlotUpcoming(sc.content.Slots[i.Group][i.Slot].Record)...)
	if r, found := sc.holder(i.Slot, i.ID); found && r.Replaces == i.ID {
		all = append(all, story.InstanceUpcoming(r)...)
	}
	if blockedBy(blocked, reason.TopicStorm) {
		all = append(all, story.StatusUpcoming(store.Status{Storm: sc.status().Storm})...)
	}
	if blockedBy(blocked, reason.TopicBudget) {
		for _, other := range sc.instances() {
			if other.ID != i.ID {
				all = append(all, story.InstanceUpcoming(other)...)
			}
		}
	}
	return all
}

// blockedBy reports whether anything is blocked for a reason of the topic.
func blockedBy(blocked []store.Blocked, topic reason.Topic) bool {
	return slices.ContainsFunc(blocked, func(b store.Blocked) bool { return reason.TopicOf(&b) == topic })
}

// nextDecision returns the earliest upcoming decision, nil if there is none, and its text.
func (sc *scene) nextDecision(all []story.Upcoming, blocked []store.Blocked) (*story.Upcoming, string) {
	if still := sc.standstill(); still != "" {
		return nil, still
	}
	l := story.FirstUpcoming(all, sc.now)
	return l, nextDecisionText(l, blocked, sc.now)
}

// nextDecisionText says when a coordinator decides again.
func nextDecisionText(l *story.Upcoming, blocked []store.Blocked, now time.Time) string {
	asks := blockedBy(blocked, reason.TopicProvider)
	switch {
	case asks && (l == nil || l.At.Sub(now) > time.Minute):
		return "within a minute or so, when the provider is queried again (HEAL-12); at once when anything changes"
	case l == nil:
		return "none due; at once when anything changes, and every 5m in any case (REC-1)"
	default:
		rule := ""
		if l.Rule != "" {
			rule = " (" + l.Rule + ")"
		}
		return fmt.Sprintf("%s, in %s: %s%s; at once when anything changes", story.Clock(l.At, now),
			output.Span(l.At.Sub(now)), l.What, rule)
	}
}
