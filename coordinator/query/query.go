package query

import (
	"errors"
	"time"
)

// Key names a number: a source, and the group that it is about. Group is empty for a source whose
// answer is the same for all groups.
type Key struct{ Source, Group string }

// Settings define how a source is queried.
type Settings struct {
	Every    time.Duration // from one question to the next
	Timeout  time.Duration // of one question
	PerGroup bool          // the answer depends on the group
}

// Bounds and defaults of Settings.
const (
	DefaultEvery   = 15 * time.Second
	ShortestEvery  = 5 * time.Second
	LongestEvery   = time.Minute
	DefaultTimeout = 5 * time.Second
	LongestTimeout = 30 * time.Second
	// Fresh is how long an answer counts, from when it was requested: the slowest source may leave
	// three requests unanswered.
	Fresh = 3 * time.Minute
)

// Key returns what a group asks a source for.
func (s Settings) Key(source, group string) Key {
	if !s.PerGroup {
		group = ""
	}
	return Key{Source: source, Group: group}
}

// Reading is the state of a number.
type Reading struct {
	Value float64
	Asked time.Time // when the last answer was asked for, on our clock; zero: there was none
	// Problem is why the last question was not answered, and Failing since when that is so; "" and
	// zero: it was answered.
	Problem string
	Failing time.Time
}

// Fresh returns the number, if it is known.
func (r Reading) Fresh(now time.Time) (value float64, known bool) {
	if r.Asked.IsZero() || now.Sub(r.Asked) > Fresh {
		return 0, false
	}
	return r.Value, true
}

// NotAsked is why a number is missing that no source was asked for.
const NotAsked = "it was not asked for yet"

// Missing returns why the number is not known.
func (r Reading) Missing() string {
	switch {
	case r.Problem != "":
		return r.Problem
	case r.Asked.IsZero():
		return NotAsked
	default:
		return "the last answer is too old"
	}
}

// Next returns the reading after a question that was asked at a time.
func (r Reading) Next(asked time.Time, value float64, err error) Reading {
	if err == nil {
		return Reading{Value: value, Asked: asked}
	}
	r.Problem = err.Error()
	if r.Failing.IsZero() {
		r.Failing = asked
	}
	return r
}

// Kind is why a question was not answered.
type Kind string

// The kinds of Error.
const (
	Unreachable Kind = "unreachable" // no answer came within its time
	Refused     Kind = "refused"     // it does not accept our credentials
	Failed      Kind = "failed"      // it answered with an error
	Unreadable  Kind = "unreadable"  // the answer is too long, or is not what it must be
	NoValue     Kind = "no value"    // the answer has no number, or several
	Unknown     Kind = "unknown"     // this coordinator has no source of that name
)

// Error is why a question was not answered. It holds no URL and no token.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string { return string(e.Kind) + ": " + e.Message }

// KindOf returns the kind of an error; "" if it has none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}
