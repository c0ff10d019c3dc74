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

// looksFor returns the looks that concern an instance: its own, its slot's and its replacement. A
// storm that holds the instance adds its own, and so do the instances in progress that it waits
// for.
func looksFor(sc *scene, i store.Instance, blocked []store.Blocked) []story.Look {
	all := append(story.InstanceLooks(i), story.SlotLooks(sc.content.Slots[i.Group][i.Slot].Record)...)
	if r, found := sc.holder(i.Slot, i.ID); found && r.Replaces == i.ID {
		all = append(all, story.InstanceLooks(r)...)
	}
	if blockedBy(blocked, reason.TopicStorm) {
		all = append(all, story.StatusLooks(store.Status{Storm: sc.status().Storm})...)
	}
	if blockedBy(blocked, reason.TopicBudget) {
		for _, other := range sc.instances() {
			if other.ID != i.ID {
				all = append(all, story.InstanceLooks(other)...)
			}
		}
	}
	return all
}

// blockedBy reports whether anything is blocked for a reason of the topic.
func blockedBy(blocked []store.Blocked, topic reason.Topic) bool {
	return slices.ContainsFunc(blocked, func(b store.Blocked) bool { return reason.TopicOf(&b) == topic })
}

// nextLook returns the earliest future look, nil if there is none, and its text.
func (sc *scene) nextLook(all []story.Look, blocked []store.Blocked) (*story.Look, string) {
	if still := sc.standstill(); still != "" {
		return nil, still
	}
	l := story.FirstLook(all, sc.now)
	return l, nextLookText(l, blocked, sc.now)
}

// nextLookText says when a coordinator decides again.
func nextLookText(l *story.Look, blocked []store.Blocked, now time.Time) string {
	asks := blockedBy(blocked, reason.TopicProvider)
	switch {
	case asks && (l == nil || l.At.Sub(now) > time.Minute):
		return "within a minute or so, when the provider is asked again (HEAL-12); at once when anything changes"
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
