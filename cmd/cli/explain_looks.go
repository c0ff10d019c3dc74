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

// look is a time at which something is decided even if nothing happens before.
type look struct {
	At   time.Time `json:"at"`
	What string    `json:"what"` // what happens or is decided at that time
	Rule string    `json:"rule,omitempty"`
}

func timerEnds(t store.Timer) time.Time { return t.Start.Add(t.For.D()) }

// instanceLooks returns the looks for an instance's own timers.
func instanceLooks(i store.Instance) []look {
	var all []look
	if d := i.Drain; d != nil && i.Phase == store.Draining && d.Done == "" {
		all = append(all, look{
			At: timerEnds(d.Timer), What: i.ID + " has reached its drain limit, and is removed",
			Rule: "DRAIN-1",
		})
	}
	if d := i.Doomed; d != nil && d.Deadline != nil {
		all = append(all, look{At: timerEnds(*d.Deadline), What: i.ID + " ends, by the notice", Rule: d.Rule})
	}
	switch i.Phase {
	case store.Booting:
		all = append(all, look{
			At:   i.Since.Add(i.Spec.RegistrationTimeout.D()),
			What: i.ID + " has failed, unless its agent has registered", Rule: "DET-11",
		})
	case store.Checking:
		if limit := i.Spec.MaxChecking.D(); limit > 0 {
			all = append(all, look{
				At: i.Since.Add(limit), What: i.ID + " has failed, unless it is healthy",
				Rule: "DET-10",
			})
		}
	default: // no timer runs
	}
	return all
}

// slotLooks returns the looks for a flapping slot.
func slotLooks(s store.Slot) []look {
	var all []look
	if s.Retry != nil {
		all = append(all, look{
			At: timerEnds(*s.Retry), What: fmt.Sprintf("slot %d is tried again", s.Number),
			Rule: "FLAP-2",
		})
	}
	if s.GiveUp != nil {
		all = append(all, look{
			At:   timerEnds(*s.GiveUp),
			What: fmt.Sprintf("slot %d is given up if it still flaps", s.Number), Rule: "FLAP-3",
		})
	}
	return all
}

// statusLooks returns the looks for a storm and a roll.
func statusLooks(st store.Status) []look {
	var all []look
	if s := st.Storm; s != nil {
		if s.Calm != nil {
			all = append(all, look{
				At: timerEnds(*s.Calm), What: "the storm is over, if losses stay few",
				Rule: "SAFE-2",
			})
		}
		if s.Next != nil && s.Probe == "" {
			all = append(all, look{
				At: timerEnds(*s.Next), What: "one lost instance is replaced, as a probe",
				Rule: "SAFE-2",
			})
		}
		if s.Resume != nil {
			all = append(all, look{
				At: timerEnds(*s.Resume), What: "the last lost instance is replaced",
				Rule: "SAFE-2",
			})
		}
	}
	if r := st.Rollout; r != nil && r.Stalls != nil {
		all = append(all, look{
			At: timerEnds(*r.Stalls), What: "the roll is stalled, unless one more instance is done",
			Rule: "ROLL-4",
		})
	}
	return all
}

// looksFor returns the looks that concern an instance: its own, its slot's and its replacement. A
// storm that holds the instance adds its own, and so do the instances in progress that it waits
// for.
func looksFor(sc *scene, i store.Instance, blocked []store.Blocked) []look {
	all := append(instanceLooks(i), slotLooks(sc.content.Slots[i.Group][i.Slot].Record)...)
	if r, found := sc.holder(i.Slot, i.ID); found && r.Replaces == i.ID {
		all = append(all, instanceLooks(r)...)
	}
	if blockedBy(blocked, reason.TopicStorm) {
		all = append(all, statusLooks(store.Status{Storm: sc.status().Storm})...)
	}
	if blockedBy(blocked, reason.TopicBudget) {
		for _, other := range sc.instances() {
			if other.ID != i.ID {
				all = append(all, instanceLooks(other)...)
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
func (sc *scene) nextLook(all []look, blocked []store.Blocked) (*look, string) {
	if still := sc.standstill(); still != "" {
		return nil, still
	}
	l := firstLook(all, sc.now)
	return l, nextLookText(l, blocked, sc.now)
}

// firstLook returns the earliest future look; nil if there is none.
func firstLook(all []look, now time.Time) *look {
	slices.SortStableFunc(all, func(a, b look) int { return a.At.Compare(b.At) })
	for i := range all {
		if all[i].At.After(now) {
			return &all[i]
		}
	}
	return nil
}

// nextLookText says when a coordinator decides again.
func nextLookText(l *look, blocked []store.Blocked, now time.Time) string {
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
