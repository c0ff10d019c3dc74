package evidence

import (
	"fmt"
	"maps"
	"time"

	"github.com/leasehold/leasehold/coordinator/query"
)

// Queried records the answer of a source, which was asked at a time, for the groups that want it.
func (e *Evidence) Queried(groups []string, source string, asked time.Time, value float64, err error) {
	defer e.cfg.Wake()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, group := range groups {
		e.setReading(group, source, e.readings[group][source].Next(asked, value, err))
	}
}

// Unasked records that this coordinator has no source of a name.
func (e *Evidence) Unasked(group, source string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.readings[group][source]; known {
		return
	}
	err := &query.Error{Kind: query.Unknown, Message: fmt.Sprintf(
		"this coordinator has no metric %q: name it in the file of --providers", source)}
	e.setReading(group, source, query.Reading{}.Next(e.cfg.Now(), 0, err))
}

// Unwanted forgets a source's readings for a group that no longer names it.
func (e *Evidence) Unwanted(group, source string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if delete(e.readings[group], source); len(e.readings[group]) == 0 {
		delete(e.readings, group)
	}
}

// setReading stores a reading and has the group planned now.
func (e *Evidence) setReading(group, source string, r query.Reading) {
	if e.readings[group] == nil {
		e.readings[group] = map[string]query.Reading{}
	}
	e.readings[group][source] = r
	e.due.add(group, e.cfg.Now())
}

// readingsOf returns the known values that a group wants; nil if it wants none. Snapshots keep
// them.
func (e *Evidence) readingsOf(group string) map[string]query.Reading {
	return maps.Clone(e.readings[group])
}
