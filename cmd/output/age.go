package output

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
)

// Age returns how long ago something was: see reason.Age.
func Age(now, then time.Time) string { return reason.Age(now, then) }

// Span formats a duration as Age does.
func Span(d time.Duration) string { return reason.Span(d) }
