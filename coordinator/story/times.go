package story

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
)

// Day formats the end of a certificate: to the minute if it is near.
func Day(now, ends time.Time) string {
	if left := ends.Sub(now); left < 48*time.Hour && left > -48*time.Hour {
		return ends.UTC().Format("2006-01-02T15:04:05Z")
	}
	return ends.UTC().Format(time.DateOnly)
}

// Within returns how far off a time is.
func Within(now, at time.Time) string {
	if !now.Before(at) {
		return " (over)"
	}
	return " (in " + reason.Span(at.Sub(now)) + ")"
}

// Clock formats a time: with the date unless it is today.
func Clock(at, now time.Time) string {
	at = at.In(now.Location())
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format("15:04:05")
	}
	return at.Format("01-02 15:04:05")
}
