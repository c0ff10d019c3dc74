package reason

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Numbers says what instances report for the targets of a group's size.
func Numbers(list []store.ScaleNumber) string { return numbers(list, 0) }

// NumbersNow says the same of the numbers in a status, with their present age.
func NumbersNow(s *store.Scale, now time.Time) string {
	return numbers(s.Numbers, max(0, now.Sub(s.At)))
}

func numbers(list []store.ScaleNumber, since time.Duration) string {
	var parts []string
	for _, n := range list {
		if n.Per != "" {
			parts = append(parts, outside(n, since))
			continue
		}
		unit := "%"
		if n.Metric == store.MetricNetwork {
			unit = " MB/s"
		}
		figure := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) + unit }
		text := "not known"
		if n.Fresh > 0 {
			text = figure(n.Value)
		}
		of := fmt.Sprintf("on average of %s", Number(n.Fresh, "instance"))
		if n.Fresh < n.Of || n.Of == 0 {
			of = fmt.Sprintf("from %d of %s", n.Fresh, Number(n.Of, "instance"))
		}
		parts = append(parts, fmt.Sprintf("%s %s %s, target %s", n.Metric, text, of, figure(n.Target)))
	}
	return strings.Join(parts, "; ")
}

// outside says what is known of an external metric.
func outside(n store.ScaleNumber, since time.Duration) string {
	figure := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	text := figure(n.Value) + " on average"
	if n.Per == store.PerGroup {
		text = figure(n.Value) + " in all"
	}
	if n.Old {
		text = "not known"
	}
	if n.Age > 0 {
		text += ", asked for " + Span(n.Age.D()+since) + " ago"
	}
	text = fmt.Sprintf("%s %s, target %s", n.Metric, text, figure(n.Target))
	if n.Why != "" {
		text += " (" + n.Why + ")"
	}
	return text
}

// Schedule says what the schedule of a group has set, and when it changes next; "" if there is
// none.
func Schedule(s *store.Scale, spec *store.ScaleSpec, now time.Time) string {
	if len(spec.Schedule) == 0 {
		return ""
	}
	text := "schedule: nothing yet"
	if c := s.Scheduled; c != nil {
		text = fmt.Sprintf("schedule: %s since %s", c.Sets(), c.Since.Format("2006-01-02 15:04Z"))
	}
	if at, next := spec.NextChange(now); next != nil {
		text += fmt.Sprintf(", %s from %s, in %s (AUTO-3)", cmp.Or(next.Sets(), "as scale says"),
			at.Format("2006-01-02 15:04Z"), Span(at.Sub(now)))
	}
	if s.Waits != "" {
		waits := *s
		waits.Stays = s.Waits
		text += "; the last change waits: " + SizeStays(&waits, spec, now)
	}
	return text
}

// SizeStays says why the size of a group differs from what load asks for; "" if it does not.
func SizeStays(s *store.Scale, spec *store.ScaleSpec, now time.Time) string {
	in := func(t *store.Timer) string {
		if t == nil {
			return ""
		}
		return ", in " + Span(t.Start.Add(t.For.D()).Sub(now)) + " at the earliest"
	}
	switch s.Stays {
	case "":
		return ""
	case store.ScaleUnknown:
		if i := slices.IndexFunc(s.Numbers, func(n store.ScaleNumber) bool { return n.Old }); i >= 0 {
			return fmt.Sprintf("%s is not known, and it is not taken for zero (AUTO-2)", s.Numbers[i].Metric)
		}
		return "most instances have reported no load in the last 3 minutes (AUTO-2)"
	case store.ScaleSilent:
		if i := slices.IndexFunc(s.Numbers, func(n store.ScaleNumber) bool { return n.Old }); i >= 0 {
			return fmt.Sprintf("it does not shrink while %s is not known (AUTO-2)", s.Numbers[i].Metric)
		}
		return "it does not shrink while most instances report nothing about a target (AUTO-2)"
	case store.ScaleStarting:
		return fmt.Sprintf("no instance has been healthy for scale.warmup (%s) yet (AUTO-2)", *spec.Complete().Warmup)
	case store.ScaleWindowUp:
		window := spec.Up.Window
		if s.Rising != nil {
			window = s.Rising.For // the spec may have changed since
		}
		return fmt.Sprintf("it grows once load has asked for more for %s (scale.up.window)%s (AUTO-2)", window, in(s.Rising))
	case store.ScaleWindowDown:
		wait := ""
		if len(s.Wishes) > 0 {
			largest := &s.Wishes[0]
			left := largest.Counts.Start.Add(largest.Counts.For.D()).Sub(now)
			wait = fmt.Sprintf(": that is %d, for another %s", largest.Size, Span(left))
		}
		return fmt.Sprintf("it shrinks to the largest size that load asked for in scale.down.window (%s)%s (AUTO-2)",
			*spec.Complete().Down.Window, wait)
	case store.ScaleRateUp:
		up := spec.Complete().Up
		var oldest *store.Timer
		if len(s.Growths) > 0 {
			oldest = &s.Growths[0].Counts
		}
		return fmt.Sprintf("it grows by %s every %s%s (AUTO-2)", up.Step, up.Every, in(oldest))
	case store.ScaleRateDown:
		down := spec.Complete().Down
		return fmt.Sprintf("it shrinks by %s every %s%s (AUTO-2)", down.Step, down.Every, in(s.Shrunk))
	case store.ScaleSettling:
		return "the numbers do not include all load of instances that have just left (AUTO-2)"
	case store.ScaleAtMost:
		return fmt.Sprintf("scale.max is %d (AUTO-1)", spec.Under(s.Scheduled).Max)
	case store.ScaleHeld:
		until := "until the group is changed"
		if len(spec.Schedule) > 0 {
			until = "until the group or its schedule changes"
		}
		if !s.Until.IsZero() {
			until = "for " + Span(s.Until.Sub(now))
		}
		return fmt.Sprintf("%s has chosen it, %s (AUTO-3)", s.By, until)
	case store.ScaleAdvised:
		return "scale.mode is advise (AUTO-4)"
	case store.ScaleStorm:
		return "it does not shrink in a storm (AUTO-5)"
	case store.ScaleBreaker:
		return "it does not shrink while the breaker is open (AUTO-5)"
	case store.ScaleStalled:
		return "it does not shrink while its roll is stopped or stalled (AUTO-5)"
	case store.ScaleClocks:
		return "it does not shrink while the clocks of the coordinators differ (SAFE-13)"
	case store.ScaleGrace:
		return "it does not shrink while agents have time to return after a disturbance (AUTO-5)"
	default:
		return string(s.Stays)
	}
}
