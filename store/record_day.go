package store

import "time"

// Day summarizes a day of a group for reports and replays, for when its journal entries have
// expired. The leader computes it from the journal once the day is over, and never
// writes it again.
type Day struct {
	Schema int    `json:"schema"`
	Group  string `json:"group"`
	Day    string `json:"day"` // as 2026-11-25, in UTC

	// What a report needs (DAY-5).
	Wanted  Duration  `json:"wanted"` // the time of all slots together
	Lost    Duration  `json:"lost"`   // of it without a healthy instance
	Causes  []Cost    `json:"causes,omitempty"`
	Made    []Made    `json:"made,omitempty"`
	Detect  DaySpread `json:"detect,omitzero"`
	Replace DaySpread `json:"replace,omitzero"`
	Heal    DaySpread `json:"heal,omitzero"`

	// What a replay needs besides (AUTO-4). Times count from the beginning of the day.
	Sizes    []DaySize    `json:"sizes,omitempty"` // the first one is where the day began
	Rolls    []Duration   `json:"rolls,omitempty"` // when another template came into force
	Failures []DayFailure `json:"failures,omitempty"`
	Starts   DaySpread    `json:"starts,omitzero"` // from the machine's existence until it was healthy
	Calls    DaySpread    `json:"calls,omitzero"`  // from the request until the machine existed
	Unready  int          `json:"unready,omitempty"`
	Loads    []DayLoad    `json:"loads,omitempty"`

	// What is missing: Omitted failures beyond the most that are kept and, of all groups together,
	// Uncounted verdicts of which the journal has only the number and entries beyond the most that
	// are read.
	Omitted   int `json:"omitted,omitempty"`
	Uncounted int `json:"uncounted,omitempty"`
	Unread    int `json:"unread,omitempty"`
}

// Cost is why slots were not served, and for how long.
type Cost struct {
	Why   string   `json:"why"`
	Lost  Duration `json:"lost"`
	Times int      `json:"times"`
}

// Made is how many machines were requested for a reason.
type Made struct {
	Why   string `json:"why"`
	Count int    `json:"count"`
}

// DaySpread is how long something took: of so many times, the shortest to the longest in even
// steps; all of them if they are few.
type DaySpread struct {
	Times    int        `json:"times"`
	Took     []Duration `json:"took"`
	Instance string     `json:"instance,omitempty"` // of the longest
}

// IsZero reports whether it never happened.
func (s DaySpread) IsZero() bool { return s.Times == 0 }

// DaySize is the size that came into force at a time.
type DaySize struct {
	At   Duration `json:"at"`
	Size int      `json:"size"`
}

// FailureKind is what happened to an instance.
type FailureKind string

// The kinds of FailureKind.
const (
	FailedDead   FailureKind = "dead"   // its machine ended
	FailedLost   FailureKind = "lost"   // its agent fell silent and was judged lost
	FailedSilent FailureKind = "silent" // its agent fell silent and came back before that
	FailedChecks FailureKind = "checks" // its checks failed
	FailedNotice FailureKind = "notice" // its provider gave notice that it would end
)

// DayFailure is something that happened to the instance of a slot.
type DayFailure struct {
	At   Duration    `json:"at"` // the first sign of it
	Kind FailureKind `json:"kind"`
	Slot int         `json:"slot"`
	// For is when it was over by itself; 0: it was not, as far as is known.
	For Duration `json:"for,omitempty"`
}

// DayLoad is the load of an hour: the lowest, the middle and the highest of its samples.
type DayLoad struct {
	Hour    int                   `json:"hour"`
	Run     float64               `json:"run"` // instances, on average
	CPU     [3]float64            `json:"cpu_percent"`
	Memory  [3]float64            `json:"memory_percent"`
	Network [3]float64            `json:"network_mb_per_second"`
	Outside map[string][3]float64 `json:"outside,omitempty"` // numbers from outside, by source
}

// DayDone says that a day is summed up: each group that was there has its Day.
type DayDone struct {
	Schema int       `json:"schema"`
	Day    string    `json:"day"`
	Groups int       `json:"groups"`
	At     time.Time `json:"at"`
	By     string    `json:"by"` // the replica
}

// Load is the load of a group in an hour, as the leader saw it. It is kept as long as the journal.
// A group without scale has one point, of the whole hour.
type Load struct {
	Schema int         `json:"schema"`
	Group  string      `json:"group"`
	Hour   time.Time   `json:"hour"`
	Points []LoadPoint `json:"points"` // by time; one that is missing was not seen
}

// LoadPoint is the load of a group in five minutes, or until the next point.
type LoadPoint struct {
	Minute  int                `json:"minute"` // of the hour
	Run     float64            `json:"run"`    // running instances, on average
	CPU     float64            `json:"cpu_percent"`
	Memory  float64            `json:"memory_percent"`
	Network float64            `json:"network_mb_per_second"`
	Outside map[string]float64 `json:"outside,omitempty"` // numbers from outside, by source
}

// DayLayout is how a day is written, for package time.
const DayLayout = time.DateOnly
