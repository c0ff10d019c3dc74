package story

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// scaleNow says in a few words that the size is not what the load asks for; "" if it is.
func scaleNow(st store.Status) string {
	s := st.Scale
	if s == nil || st.State == store.GroupStopped || st.State == store.GroupReady || st.State == store.GroupDeleting {
		return ""
	}
	switch s.Stays {
	case "", store.ScaleStarting:
		return ""
	case store.ScaleUnknown:
		return "load unknown"
	case store.ScaleHeld:
		return "size held by " + s.By
	case store.ScaleAdvised:
		if s.Wish == s.Size {
			return ""
		}
		return fmt.Sprintf("advice: size %d", s.Wish)
	default:
		return fmt.Sprintf("load asks for %d", s.Asks)
	}
}

// scaleLine describes how the size of a group follows its load.
func scaleLine(st store.Status, now time.Time) string {
	s, spec := st.Scale, st.Accepted.Scale
	in := spec.Under(s.Scheduled)
	line := fmt.Sprintf("scale: size %d (%d to %d)", s.Size, in.Least(), in.Max)
	if s.Stays != store.ScaleUnknown && s.Stays != store.ScaleStarting {
		line += fmt.Sprintf(", load asks for %d", s.Asks)
	}
	if stays := reason.SizeStays(s, spec, now); stays != "" {
		line += ": " + stays
	}
	if len(s.Numbers) > 0 {
		line += "; " + reason.NumbersNow(s, now)
		if slices.ContainsFunc(s.Numbers, func(n store.ScaleNumber) bool { return n.Per == "" }) {
			line += fmt.Sprintf(", %s ago", reason.Age(now, s.At))
		}
	}
	if schedule := reason.Schedule(s, spec, now); schedule != "" {
		line += "; " + schedule
	}
	return line
}

// scaleProblem says that the size cannot follow the load: a number from outside is missing, or the
// load asks for more than the group may have. nil if it follows.
func scaleProblem(group string, st store.Status) *Problem {
	s := st.Scale
	if s == nil || st.Accepted == nil || st.Accepted.Scale == nil {
		return nil
	}
	for _, n := range s.Numbers {
		if n.Old && n.Why != "" && n.Why != store.NumberNotAsked {
			return &Problem{
				About: group, Rule: "AUTO-2",
				What: fmt.Sprintf("its size cannot follow %s, which gives no number: %s", n.Metric, n.Why),
				Remedies: Advise("see that the source of " + n.Metric +
					" answers, as the coordinators' file of --providers has it"),
			}
		}
	}
	if s.Stays != store.ScaleAtMost {
		return nil
	}
	return &Problem{
		About: group, Rule: "AUTO-1",
		What: fmt.Sprintf("load asks for %s, and scale.max is %d: %s", reason.Number(s.Asks, "instance"),
			st.Accepted.Scale.Under(s.Scheduled).Max,
			reason.Numbers(s.Numbers)),
		Remedies: Advise("leasehold group edit " + group + ", for scale.max"),
	}
}
