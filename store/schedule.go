package store

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store/cron"
)

// ScaleChange is a recurring time from which other bounds or another size are in force, until the
// next change (AUTO-3). Fields that are left out keep the values of scale.
type ScaleChange struct {
	Cron     string `json:"cron"`                // minute hour day month weekday, on the zone's clock
	TimeZone string `json:"time_zone,omitempty"` // like Europe/Berlin; "": UTC
	Min      *int   `json:"min,omitempty"`
	Max      *int   `json:"max,omitempty"`
	Size     *int   `json:"size,omitempty"` // whatever load asks for
}

// Scheduled is what a schedule has put in force.
type Scheduled struct {
	Since    time.Time `json:"since"`
	Cron     string    `json:"cron"`
	TimeZone string    `json:"time_zone,omitempty"`
	Min      int       `json:"min"`
	Max      int       `json:"max"`
	Size     *int      `json:"size,omitempty"`
}

// last returns when the change came last, up to a time; zero if that is not known.
func (c *ScaleChange) last(now time.Time) time.Time { return lastOf(c.Cron, c.TimeZone, now) }

// next returns when the change comes next, after a time; zero if it never does.
func (c *ScaleChange) next(now time.Time) time.Time { return nextOf(c.Cron, c.TimeZone, now) }

// lastOf returns the last time that a cron expression names up to now, on the clock of a zone; zero
// if it is not known.
func lastOf(expression, zone string, now time.Time) time.Time {
	times, loc, ok := readCron(expression, zone)
	if !ok {
		return time.Time{}
	}
	from := wallOf(now, loc).Add(time.Second) // what the clock shows now has come
	if changed, _ := now.In(loc).ZoneBounds(); changed.After(now.Add(-longestShift)) {
		// A clock that was put back has shown later times before: they have come, too.
		from = from.Add(longestShift)
	}
	for wall := times.Before(from); !wall.IsZero(); wall = times.Before(wall) {
		if at := firstAt(wall, loc); !at.After(now) {
			return at
		}
	}
	return time.Time{}
}

// nextOf returns the next time that a cron expression names after now; zero if there is none.
func nextOf(expression, zone string, now time.Time) time.Time {
	times, loc, ok := readCron(expression, zone)
	if !ok {
		return time.Time{}
	}
	// The present time of the clock, and every earlier one, has occurred already.
	for wall := times.After(wallOf(now, loc)); !wall.IsZero(); wall = times.After(wall) {
		if at := firstAt(wall, loc); at.After(now) {
			return at
		}
	}
	return time.Time{}
}

// longestShift is more than clocks are put back or forward at once.
const longestShift = 3 * time.Hour

func readCron(expression, zone string) (cron.Times, *time.Location, bool) {
	times, wrong := cron.Parse(expression)
	loc, err := zoneNamed(zone)
	return times, loc, wrong == nil && err == nil // a valid group has no other
}

// wallOf returns what the clock of a zone shows, as if it were in UTC.
func wallOf(at time.Time, loc *time.Location) time.Time {
	y, m, d := at.In(loc).Date()
	hour, minute, second := at.In(loc).Clock()
	return time.Date(y, m, d, hour, minute, second, 0, time.UTC)
}

// ScheduledAt returns what the schedule puts in force at a time: the change that came last. It is
// nil if there is none. Of two that come at once the later one in the list counts.
func (s *ScaleSpec) ScheduledAt(now time.Time) *Scheduled {
	var latest *Scheduled
	for i := range s.Schedule {
		c := &s.Schedule[i]
		at := c.last(now)
		if at.IsZero() || latest != nil && at.Before(latest.Since) {
			continue
		}
		least, most := s.scheduled(c)
		latest = &Scheduled{
			Since: at.UTC(), Cron: c.Cron, TimeZone: c.TimeZone, Min: least, Max: most, Size: c.Size,
		}
	}
	return latest
}

// scheduled returns the bounds that a change sets.
func (s *ScaleSpec) scheduled(c *ScaleChange) (least, most int) {
	least, most = s.Least(), s.Max
	if c.Min != nil {
		least = *c.Min
	}
	if c.Max != nil {
		most = *c.Max
	}
	return least, most
}

// NextChange returns when the schedule changes something next, and what; zero and nil if it never
// does.
func (s *ScaleSpec) NextChange(now time.Time) (at time.Time, c *ScaleChange) {
	for i := range s.Schedule {
		next := s.Schedule[i].next(now)
		if !next.IsZero() && (at.IsZero() || !next.After(at)) {
			at, c = next, &s.Schedule[i]
		}
	}
	return at.UTC(), c
}

// Under returns the spec with what its schedule has put in force.
func (s *ScaleSpec) Under(c *Scheduled) *ScaleSpec {
	if c == nil || len(s.Schedule) == 0 {
		return s
	}
	under := *s
	under.Min, under.Max = &c.Min, c.Max
	if c.Size != nil {
		under.Min, under.Max = c.Size, *c.Size
	}
	return &under
}

// Sets says what a change sets, as it is written.
func (c *ScaleChange) Sets() string { return sets(c.Min, c.Max, c.Size) }

// Sets says what is in force.
func (c *Scheduled) Sets() string {
	if c.Size != nil {
		return sets(nil, nil, c.Size)
	}
	return sets(&c.Min, &c.Max, nil)
}

func sets(least, most, size *int) string {
	text := ""
	for _, part := range []struct {
		name string
		n    *int
	}{{"min", least}, {"max", most}, {"size", size}} {
		if part.n == nil {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %d", part.name, *part.n)
	}
	return text
}

// maxChanges bounds the schedule of one group.
const maxChanges = 50

// scheduleFields are the fields of a schedule.
var scheduleFields = []Field{
	{
		Path: "scale.schedule", Type: "list of changes", Default: "none", Rule: "AUTO-3",
		Allowed: fmt.Sprintf("at most %d", maxChanges),
		Doc: "When other bounds or a size come into force; they are so until the next change. The one that came last is " +
			"in force when the schedule is applied.",
		wrong: wrongSchedule,
	},
	changeField("cron", "string", "", "minute hour day month weekday: 0 8 * * 1-5",
		"When it comes, by the clock of its time zone. A time skipped by a clock change counts as the moment "+
			"of the jump; of a repeated time the first counts.", func(c *ScaleChange) any { return c.Cron },
		func(_ *ScaleSpec, c *ScaleChange) bool { _, err := cron.Parse(c.Cron); return err == nil }),
	changeField("time_zone", "string", "UTC", "a time zone like Europe/Berlin", "Whose clock cron is read on.",
		func(c *ScaleChange) any { return c.TimeZone },
		func(_ *ScaleSpec, c *ScaleChange) bool { _, err := zoneNamed(c.TimeZone); return err == nil }),
	changeField("min", "integer", "scale.min", "as scale.min, up to max", "scale.min from then on.",
		func(c *ScaleChange) any { return shown(c.Min) },
		func(s *ScaleSpec, c *ScaleChange) bool {
			least, most := s.scheduled(c)
			return c.Min == nil || c.Size == nil && least >= s.mayBe() && (least <= most || most < 1)
		}),
	changeField("max", "integer", "scale.max", fmt.Sprintf("1 to %d, and min at least", MaxSize),
		"scale.max from then on.",
		func(c *ScaleChange) any { return shown(c.Max) },
		func(s *ScaleSpec, c *ScaleChange) bool {
			least, most := s.scheduled(c)
			return c.Max == nil || c.Size == nil && most >= 1 && most <= MaxSize && (c.Min != nil || least <= most)
		}),
	changeField("size", "integer", "what load asks for", fmt.Sprintf("0 to %d, and neither min nor max", MaxSize),
		"The size from then on, whatever load asks for.", func(c *ScaleChange) any { return shown(c.Size) },
		func(_ *ScaleSpec, c *ScaleChange) bool {
			return c.Size == nil || c.Min == nil && c.Max == nil && *c.Size >= 0 && *c.Size <= MaxSize
		}),
}

// shown returns a number that may be left out.
func shown(n *int) any {
	if n == nil {
		return "none"
	}
	return *n
}

// changeField returns a field of each change.
func changeField(path, kind, def, allowed, doc string, get func(*ScaleChange) any,
	ok func(*ScaleSpec, *ScaleChange) bool,
) Field {
	return Field{
		Path: "scale.schedule[]." + path, Type: kind, Default: def, Allowed: allowed, Rule: "AUTO-3", Doc: doc,
		wrong: func(g *Group) (out []FieldError) {
			if g.Scale == nil {
				return nil
			}
			for i := range g.Scale.Schedule {
				if c := &g.Scale.Schedule[i]; !ok(g.Scale, c) {
					out = append(out, FieldError{
						Path: fmt.Sprintf("scale.schedule[%d].%s", i, path), Value: show(get(c)), Allowed: allowed, Rule: "AUTO-3",
					})
				}
			}
			return out
		},
	}
}

func wrongSchedule(g *Group) (out []FieldError) {
	if g.Scale == nil {
		return nil
	}
	if n := len(g.Scale.Schedule); n > maxChanges {
		out = append(out, FieldError{
			Path: "scale.schedule", Value: number(n, "change"), Allowed: fmt.Sprintf("at most %d", maxChanges), Rule: "AUTO-3",
		})
	}
	return out
}
