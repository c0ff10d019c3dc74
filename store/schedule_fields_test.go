package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// refusalOf returns what Validate says of a group, a line for each field; "" if nothing is wrong.
func refusalOf(g store.Group) string {
	g.Complete()
	if err := g.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

// A change of the schedule sets bounds that go together with each other and with the bounds of
// scale, or a size alone. What is refused is named with its value and with what is allowed.
//
// proves AUTO-3
func TestWhatAScheduleMaySet(t *testing.T) {
	const (
		noMin  = "scale.schedule[0].min: %d: must be as scale.min, up to max (AUTO-3)"
		noMax  = "scale.schedule[0].max: %d: must be 1 to 100000, and min at least (AUTO-3)"
		noSize = "scale.schedule[0].size: %d: must be 0 to 100000, and neither min nor max (AUTO-3)"
	)
	for _, test := range []struct {
		change store.ScaleChange // of a group with 2 to 10 instances
		want   string
	}{
		{store.ScaleChange{}, ""},
		{store.ScaleChange{Min: new(1)}, ""},
		{store.ScaleChange{Min: new(10)}, ""},
		{store.ScaleChange{Min: new(11)}, fmt.Sprintf(noMin, 11)},
		{store.ScaleChange{Min: new(0)}, fmt.Sprintf(noMin, 0)},
		{store.ScaleChange{Max: new(2)}, ""},
		{store.ScaleChange{Max: new(5)}, ""},
		{store.ScaleChange{Max: new(1)}, fmt.Sprintf(noMax, 1)},
		{store.ScaleChange{Max: new(store.MaxSize)}, ""},
		{store.ScaleChange{Max: new(store.MaxSize + 1)}, fmt.Sprintf(noMax, store.MaxSize+1)},
		{store.ScaleChange{Min: new(1), Max: new(1)}, ""},
		{store.ScaleChange{Min: new(5), Max: new(5)}, ""},
		{store.ScaleChange{Min: new(3), Max: new(1)}, fmt.Sprintf(noMin, 3)},
		{store.ScaleChange{Min: new(3), Max: new(0)}, fmt.Sprintf(noMax, 0)},
		{store.ScaleChange{Size: new(0)}, ""},
		{store.ScaleChange{Size: new(5)}, ""},
		{store.ScaleChange{Size: new(store.MaxSize)}, ""},
		{store.ScaleChange{Size: new(-1)}, fmt.Sprintf(noSize, -1)},
		{store.ScaleChange{Size: new(store.MaxSize + 1)}, fmt.Sprintf(noSize, store.MaxSize+1)},
		{store.ScaleChange{Min: new(3), Size: new(5)}, fmt.Sprintf(noMin+"\n"+noSize, 3, 5)},
		{store.ScaleChange{Max: new(3), Size: new(5)}, fmt.Sprintf(noMax+"\n"+noSize, 3, 5)},
		{
			store.ScaleChange{Cron: "0 8 * *"},
			`scale.schedule[0].cron: "0 8 * *": must be minute hour day month weekday: 0 8 * * 1-5 (AUTO-3)`,
		},
		{
			store.ScaleChange{TimeZone: "Berlin"},
			`scale.schedule[0].time_zone: "Berlin": must be a time zone like Europe/Berlin (AUTO-3)`,
		},
	} {
		c := test.change
		if c.Cron == "" {
			c.Cron = "0 8 * * *"
		}
		g := web()
		g.Scale = &store.ScaleSpec{Min: new(2), Max: 10, Schedule: []store.ScaleChange{c}}
		if got := refusalOf(g); got != test.want {
			t.Errorf("%q %s: got %q, want %q", c.Cron, c.Sets(), got, test.want)
		}
	}
}

// proves AUTO-3
func TestHowManyChangesAScheduleMayHave(t *testing.T) {
	for n, want := range map[int]string{50: "", 51: "scale.schedule: 51 changes: must be at most 50 (AUTO-3)"} {
		g := web()
		g.Scale = &store.ScaleSpec{Max: 10}
		for range n {
			g.Scale.Schedule = append(g.Scale.Schedule, store.ScaleChange{Cron: "0 8 * * *", Min: new(3)})
		}
		if got := refusalOf(g); got != want {
			t.Errorf("%d changes: got %q, want %q", n, got, want)
		}
	}
}

// A change names what it sets, and nothing else.
func TestWhatAChangeSets(t *testing.T) {
	for want, c := range map[string]store.ScaleChange{
		"min 1":        {Min: new(1)},
		"max 9":        {Max: new(9)},
		"min 1, max 9": {Min: new(1), Max: new(9)},
		"size 0":       {Size: new(0)},
		"":             {},
	} {
		if got := c.Sets(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is in force is recorded with the change that set it, so that people find it in the group's
// file. Once the file has no schedule, the recorded change no longer has an effect.
//
// proves AUTO-3
func TestTheChangeInForceIsRecorded(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	s := store.ScaleSpec{Max: 20, Schedule: []store.ScaleChange{
		{Cron: "0 8 * * *", TimeZone: "Europe/Berlin", Min: new(10)},
	}}
	want := store.Scheduled{
		Since: now.Add(-6 * time.Hour), Cron: "0 8 * * *", TimeZone: "Europe/Berlin", Min: 10, Max: 20,
	}
	c := s.ScheduledAt(now)
	if c == nil || *c != want {
		t.Fatalf("in force is %+v, want %+v", c, want)
	}
	if under := s.Under(c); under.Least() != 10 || under.Max != 20 {
		t.Errorf("under the schedule: %d to %d", under.Least(), under.Max)
	}
	s.Schedule = nil
	if under := s.Under(c); under.Least() != 1 || under.Max != 20 {
		t.Errorf("without a schedule: %d to %d", under.Least(), under.Max)
	}
}

// Of two changes that come at once, the later one in the list is announced: it will be in force.
//
// proves AUTO-3
func TestTheNextOfTwoChangesAtOnce(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	s := store.ScaleSpec{Max: 20, Schedule: []store.ScaleChange{
		{Cron: "0 20 * * *", Min: new(3)}, {Cron: "0 20 * * *", Min: new(4)}, {Cron: "0 21 * * *", Min: new(5)},
	}}
	at, next := s.NextChange(now)
	if !at.Equal(now.Add(8*time.Hour)) || next == nil || next.Sets() != "min 4" {
		t.Fatalf("next at %s: %+v", at, next)
	}
	if c := s.ScheduledAt(at); c == nil || c.Min != 4 {
		t.Errorf("then in force: %+v", c)
	}
}

// A schedule that another release wrote and this one cannot read has no times. It hides none of the
// others, wherever it stands in the list.
func TestSchedulesThatCannotBeRead(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	last, next := now.Add(-4*time.Hour), now.Add(20*time.Hour)
	const good = "0 8 * * *"
	for _, bad := range [][2]string{{"0 8 * *", ""}, {"0 8 30 2 *", ""}, {good, "Nowhere/Else"}, {good, "Local"}} {
		for _, list := range [][][2]string{{bad}, {bad, {good, ""}}, {{good, ""}, bad}} {
			g, s := web(), store.ScaleSpec{Max: 9}
			for _, one := range list {
				g.Drills = append(g.Drills, store.DrillSpec{Cron: one[0], TimeZone: one[1]})
				s.Schedule = append(s.Schedule, store.ScaleChange{Cron: one[0], TimeZone: one[1]})
			}
			due, drill := g.DrillAt(now)
			comes, change := s.NextChange(now)
			inForce := s.ScheduledAt(now)
			if len(list) == 1 {
				if drill != nil || !due.IsZero() || !g.NextDrill(now).IsZero() || change != nil || inForce != nil {
					t.Errorf("%q alone: drills %s and %s, changes %+v and %+v", bad, due, g.NextDrill(now), inForce, change)
				}
				continue
			}
			if !due.Equal(last) || !g.NextDrill(now).Equal(next) {
				t.Errorf("%q: drills at %s and %s", list, due, g.NextDrill(now))
			}
			if inForce == nil || !inForce.Since.Equal(last) || change == nil || !comes.Equal(next) {
				t.Errorf("%q: in force %+v, next %s %+v", list, inForce, comes, change)
			}
		}
	}
}

// A drill on a schedule says when it comes, what fails, and where. What is refused is named with
// its value and with what is allowed.
//
// proves DAY-6
func TestWhatDrillsMaySay(t *testing.T) {
	long := strings.Repeat("x", 201)
	for _, test := range []struct {
		drill store.DrillSpec
		want  string
	}{
		{store.DrillSpec{Cron: "0 10 * * 2", Kind: "machine", Zone: long[:200]}, ""},
		{store.DrillSpec{Cron: "@daily"}, `drills[0].cron: "@daily": must be minute hour day month weekday: ` +
			`0 10 * * 2 (DAY-6)`},
		{store.DrillSpec{TimeZone: "Local"}, `drills[0].time_zone: "Local": must be a time zone like Europe/Berlin (DAY-6)`},
		{store.DrillSpec{Kind: "disk"}, `drills[0].kind: "disk": must be machine, agent or workload (DAY-6)`},
		{store.DrillSpec{Kind: "agent", Zone: "a"}, `drills[0].zone: "a": must be a zone, with kind machine (DAY-6)`},
		{store.DrillSpec{Zone: long}, `drills[0].zone: "` + long + `": must be a zone, with kind machine (DAY-6)`},
	} {
		g := web()
		if test.drill.Cron == "" {
			test.drill.Cron = "0 10 * * *"
		}
		g.Drills = []store.DrillSpec{test.drill}
		if got := refusalOf(g); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.drill, got, test.want)
		}
	}
}

// Of drills that come at once, the first in the list is the one that is due. All of them are known,
// in the order of the list. The next time is the earliest.
//
// proves DAY-6
func TestDrillsThatComeAtOnce(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 7, 7, hour, 0, 0, 0, time.UTC) }
	g := web()
	g.Drills = []store.DrillSpec{
		{Cron: "0 10 * * *", Kind: "workload"}, {Cron: "0 14 * * *", Kind: "machine"}, {Cron: "0 10 * * *", Kind: "agent"},
	}
	if due, s := g.DrillAt(at(12)); !due.Equal(at(10)) || s != &g.Drills[0] {
		t.Errorf("due at %s: %+v", due, s)
	}
	if list := g.DrillsAt(at(10)); len(list) != 2 || list[0] != &g.Drills[0] || list[1] != &g.Drills[2] {
		t.Errorf("at 10: %+v", list)
	}
	if list := g.DrillsAt(at(12)); len(list) != 0 {
		t.Errorf("at 12: %+v", list)
	}
	for now, want := range map[int]int{9: 10, 10: 14, 15: 24 + 10} {
		if next := g.NextDrill(at(now)); !next.Equal(at(want)) {
			t.Errorf("at %d: next %s, want %s", now, next, at(want))
		}
	}
}
