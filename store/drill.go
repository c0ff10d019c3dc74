package store

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store/cron"
)

// DrillSpec is a drill on a schedule (DAY-6). Like other planned work it needs an open window. It
// is left out where the group could not survive it.
type DrillSpec struct {
	Cron     string `json:"cron"`                // minute hour day month weekday, on the zone's clock
	TimeZone string `json:"time_zone,omitempty"` // like Europe/Berlin; "": UTC
	Kind     string `json:"kind,omitempty"`      // one of DrillKinds; "": the first
	Zone     string `json:"zone,omitempty"`      // of all machines there; "": of the oldest instance
}

// DrillKinds are the kinds of drill as a group's file names them.
var DrillKinds = []string{"machine", string(DrillAgent), string(DrillWorkload)}

// Of returns the kind of the drill.
func (s *DrillSpec) Of() DrillKind {
	if s.Kind == DrillKinds[0] {
		return DrillMachine
	}
	return DrillKind(s.Kind)
}

// DrillAt returns the scheduled drill that came last, up to a time, and when that was; nil if there
// is none. Of two that come at once the first in the list counts.
func (g *Group) DrillAt(now time.Time) (due time.Time, s *DrillSpec) {
	for i := range g.Drills {
		if last := lastOf(g.Drills[i].Cron, g.Drills[i].TimeZone, now); last.After(due) {
			due, s = last.UTC(), &g.Drills[i]
		}
	}
	return due, s
}

// DrillsAt returns the scheduled drills that come at a time, in the order of the list.
func (g *Group) DrillsAt(due time.Time) (list []*DrillSpec) {
	for i := range g.Drills {
		if lastOf(g.Drills[i].Cron, g.Drills[i].TimeZone, due).Equal(due) {
			list = append(list, &g.Drills[i])
		}
	}
	return list
}

// NextDrill returns when a scheduled drill comes next; zero if none does.
func (g *Group) NextDrill(now time.Time) (at time.Time) {
	for i := range g.Drills {
		next := nextOf(g.Drills[i].Cron, g.Drills[i].TimeZone, now)
		if !next.IsZero() && (at.IsZero() || next.Before(at)) {
			at = next.UTC()
		}
	}
	return at
}

// maxDrills bounds the scheduled drills of one group.
const maxDrills = 20

// drillFields are the fields of scheduled drills.
var drillFields = []Field{
	{
		Path: "drills", Type: "list of drills", Default: "none", Rule: "DAY-6",
		Allowed: fmt.Sprintf("at most %d", maxDrills),
		Doc: "Failures on purpose that come again and again. One whose time no window allows, or that the group could " +
			"not bear then, is left out; the journal says why.",
		wrong: func(g *Group) []FieldError { return tooMany("drills", "DAY-6", "drill", len(g.Drills), maxDrills) },
	},
	drillField("cron", "", "minute hour day month weekday: 0 10 * * 2",
		"When it comes, by the clock of its time zone, as in scale.schedule.",
		func(s *DrillSpec) string { return s.Cron },
		func(s *DrillSpec) bool { _, err := cron.Parse(s.Cron); return err == nil }),
	drillField("time_zone", "UTC", "a time zone like Europe/Berlin", "Whose clock cron is read on.",
		func(s *DrillSpec) string { return s.TimeZone },
		func(s *DrillSpec) bool { _, err := zoneNamed(s.TimeZone); return err == nil }),
	drillField("kind", "machine", "machine, agent or workload", "What fails.",
		func(s *DrillSpec) string { return s.Kind },
		func(s *DrillSpec) bool { return s.Kind == "" || oneOfEach(DrillKinds)([]string{s.Kind}) }),
	drillField("zone", "the oldest instance fails", "a zone, with kind machine",
		"All machines of the group in this zone fail.",
		func(s *DrillSpec) string { return s.Zone },
		func(s *DrillSpec) bool { return s.Zone == "" || s.Of() == DrillMachine && len(s.Zone) <= maxWhy }),
}

// drillField returns a field of each drill.
func drillField(path, def, allowed, doc string, get func(*DrillSpec) string, ok func(*DrillSpec) bool) Field {
	return Field{
		Path: "drills[]." + path, Type: "string", Default: def, Allowed: allowed, Rule: "DAY-6", Doc: doc,
		wrong: func(g *Group) (out []FieldError) {
			for i := range g.Drills {
				if s := &g.Drills[i]; !ok(s) {
					out = append(out, FieldError{
						Path: fmt.Sprintf("drills[%d].%s", i, path), Value: show(get(s)), Allowed: allowed, Rule: "DAY-6",
					})
				}
			}
			return out
		},
	}
}
