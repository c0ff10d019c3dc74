package store

import (
	"fmt"
	"time"
)

// Scale is how a group's size follows its load: the size in force, and what comes next. It is in
// the status and never in the spec, so that no apply of the file undoes it (AUTO-5).
type Scale struct {
	// Size is in force where the group is not only advised, and is where load goes on from.
	Size int `json:"size"`
	// Wish is the size that the numbers ask for, within scale.min and scale.max.
	Wish int `json:"wish"`
	// Asks is the wish without these bounds.
	Asks int `json:"asks,omitempty"`
	// Stays is why the size is not the wish; "" if it is.
	Stays   ScaleStays    `json:"stays,omitempty"`
	By      string        `json:"by,omitempty"` // the operator, where Stays is ScaleHeld
	Until   time.Time     `json:"until,omitzero"`
	Numbers []ScaleNumber `json:"numbers,omitempty"`
	At      time.Time     `json:"at,omitzero"` // when the numbers were taken
	// Wishes are those that keep the group from shrinking further: each counts until its timer ends.
	// The largest comes first; each later one is smaller and newer.
	Wishes []ScaleWish `json:"wishes,omitempty"`
	Rising *Timer      `json:"rising,omitempty"` // more is wished for; the group grows when it ends
	// Growths within the last scale.up.every, the oldest first: scale.up.step is for all of them
	// together.
	Growths []ScaleGrowth `json:"growths,omitempty"`
	// Divided is the number of instances among which the load was divided at the last look. Left
	// are the instances that have left since, while the others may not report their load yet.
	Divided int         `json:"divided,omitempty"`
	Left    []ScaleLeft `json:"left,omitempty"`
	Shrunk  *Timer      `json:"shrunk,omitempty"` // no shrinking before
	Grew    bool        `json:"grew,omitempty"`   // the last change by load was a growth
	Pace    *Timer      `json:"pace,omitempty"`   // the wish is not written again before
	// Scheduled is what the schedule has put in force; nil: nothing yet. Waits is why the change that
	// has come since does not shrink the group yet; "" if none waits.
	Scheduled *Scheduled `json:"scheduled,omitempty"`
	Waits     ScaleStays `json:"waits,omitempty"`
	// Advice is the size that load would choose for a group that is only advised (AUTO-4); 0: the
	// present one.
	Advice int `json:"advice,omitempty"`
}

// ScaleWish is a size that load has asked for.
type ScaleWish struct {
	Size   int   `json:"size"`
	Counts Timer `json:"counts"`
}

// ScaleGrowth is a growth that load has asked for. It counts until its timer ends.
type ScaleGrowth struct {
	From   int   `json:"from"` // the size before
	By     int   `json:"by"`
	Counts Timer `json:"counts"`
}

// ScaleLeft is how many instances have left at a time. It counts until its timer ends.
type ScaleLeft struct {
	By     int   `json:"by"`
	Counts Timer `json:"counts"`
}

// ScaleNumber is what is known of one target.
type ScaleNumber struct {
	Metric string  `json:"metric"` // or its source, of a number from outside
	Value  float64 `json:"value"`  // on average of those that tell, or from outside
	Target float64 `json:"target"`
	Fresh  int     `json:"fresh"` // instances that tell
	Of     int     `json:"of"`    // that should: those that start or warm up are left out
	Wish   int     `json:"wish,omitempty"`
	// The rest is of a number from outside.
	Per string   `json:"per,omitempty"` // what it is about; "": agents report it
	Age Duration `json:"age,omitempty"` // since it was asked for
	Old bool     `json:"old,omitempty"` // it is too old to count, or there is none
	Why string   `json:"why,omitempty"` // the last question was not answered
}

// NumberNotAsked is why a number from outside is missing whose source was not asked yet.
const NumberNotAsked = "it was not asked for yet"

// ScaleStays is why the size is not what load asks for.
type ScaleStays string

// The kinds of ScaleStays.
const (
	ScaleUnknown    ScaleStays = "unknown"     // most instances tell no fresh number
	ScaleStarting   ScaleStays = "starting"    // no instance is warm yet
	ScaleWindowUp   ScaleStays = "window_up"   // more has not been wished for long enough
	ScaleWindowDown ScaleStays = "window_down" // more was wished for within the window
	ScaleRateUp     ScaleStays = "rate_up"     // it has grown a moment ago
	ScaleRateDown   ScaleStays = "rate_down"   // it has changed a moment ago
	ScaleAtMost     ScaleStays = "at_max"      // load asks for more than max
	ScaleHeld       ScaleStays = "held"        // by an operator's group scale
	ScaleAdvised    ScaleStays = "advise"      // it only says what it would do
	// The rest keep it from shrinking alone (AUTO-5).
	ScaleStorm   ScaleStays = "storm"
	ScaleBreaker ScaleStays = "breaker"
	ScaleStalled ScaleStays = "stalled" // the roll is
	ScaleGrace   ScaleStays = "grace"
	ScaleSilent  ScaleStays = "silent" // a metric has no fresh numbers
	// ScaleSettling: the numbers do not include all load of instances that left.
	ScaleSettling ScaleStays = "settling"
	ScaleClocks   ScaleStays = "clocks" // the clocks of the replicas differ (SAFE-13)
)

// AllScaleStays are all of them.
var AllScaleStays = []ScaleStays{
	ScaleUnknown, ScaleStarting, ScaleWindowUp, ScaleWindowDown, ScaleRateUp, ScaleRateDown, ScaleAtMost, ScaleHeld,
	ScaleAdvised, ScaleStorm, ScaleBreaker, ScaleStalled, ScaleGrace, ScaleSilent, ScaleSettling, ScaleClocks,
}

// The names of the timers of Scale.
const (
	TimerScaleRising = "scale_rising"
	TimerScaleShrunk = "scale_shrunk"
	TimerScalePace   = "scale_pace"
)

// TimerName is the name of the timer of a wish.
func (w ScaleWish) TimerName() string { return fmt.Sprintf("scale_wish_%d", w.Counts.Start.UnixNano()) }

// TimerName is the name of the timer of a growth.
func (g ScaleGrowth) TimerName() string {
	return fmt.Sprintf("scale_growth_%d", g.Counts.Start.UnixNano())
}

// TimerName is the name of the timer of those that left.
func (l ScaleLeft) TimerName() string { return fmt.Sprintf("scale_left_%d", l.Counts.Start.UnixNano()) }

// timers adds the timers of a group's scale.
func (s *Scale) timers(add func(string, *Timer)) {
	if s == nil {
		return
	}
	for i := range s.Wishes {
		add(s.Wishes[i].TimerName(), &s.Wishes[i].Counts)
	}
	for i := range s.Growths {
		add(s.Growths[i].TimerName(), &s.Growths[i].Counts)
	}
	for i := range s.Left {
		add(s.Left[i].TimerName(), &s.Left[i].Counts)
	}
	add(TimerScaleRising, s.Rising)
	add(TimerScaleShrunk, s.Shrunk)
	add(TimerScalePace, s.Pace)
}
