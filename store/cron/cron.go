// Package cron reads the times of a schedule: minute, hour, day of the month, month, day of the
// week. It knows no time zones: times are what a clock on a wall shows, as if it were in UTC.
package cron

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/cronexpr"
)

// Times are the times that an expression names.
type Times struct{ expr *cronexpr.Expression }

// known are the expressions that were read.
var known sync.Map

var errForm = errors.New("must have five fields: minute, hour, day of the month, month and day of the week")

// Parse reads an expression.
func Parse(text string) (Times, error) {
	if t, ok := known.Load(text); ok {
		return t.(Times), nil //nolint:errcheck // nothing else is stored
	}
	if len(strings.Fields(text)) != 5 || len(text) > 200 || strings.HasPrefix(text, "@") {
		return Times{}, errForm
	}
	expr, err := cronexpr.Parse(text)
	if err != nil {
		return Times{}, err
	}
	t := Times{expr}
	if t.After(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return t, errors.New("never comes")
	}
	known.Store(text, t)
	return t, nil
}

// After returns the first time after another one; zero if there is none.
func (t Times) After(wall time.Time) time.Time {
	expr := *t.expr // Next writes to it, and others read the same expression
	return expr.Next(wall)
}

// spans are how far Before looks back, in turn: times that come often are found in the first.
var spans = []time.Duration{
	2 * time.Minute, 20 * time.Minute, 3 * time.Hour, 26 * time.Hour,
	8 * 24 * time.Hour, 32 * 24 * time.Hour, 367 * 24 * time.Hour, 9 * 366 * 24 * time.Hour,
}

// Before returns the last time before another one; zero if there was none in nine years.
func (t Times) Before(wall time.Time) (last time.Time) {
	for _, span := range spans {
		for at := t.After(wall.Add(-span)); !at.IsZero() && at.Before(wall); at = t.After(at) {
			last = at
		}
		if !last.IsZero() {
			return last
		}
	}
	return last
}
