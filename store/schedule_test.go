package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What is in force is the change that came last, and the next one is known: across weeks, time
// zones, and days on which a clock is put forward or back.
//
// proves AUTO-3
func TestSchedules(t *testing.T) {
	n := func(n int) *int { return &n }
	week := []store.ScaleChange{
		{Cron: "0 8 * * 1-5", TimeZone: "Europe/Berlin", Min: n(10)},
		{Cron: "0 20 * * *", TimeZone: "Europe/Berlin", Max: n(4)},
	}
	for _, test := range []struct {
		name     string
		schedule []store.ScaleChange
		now      string
		want     string // what is in force, since when, and when the next one comes
	}{
		{"a morning", week, "2026-11-26T09:00:00Z", "min 10, max 20 2026-11-26T07:00Z next 2026-11-26T19:00Z"},
		{"just then", week, "2026-11-26T07:00:00Z", "min 10, max 20 2026-11-26T07:00Z next 2026-11-26T19:00Z"},
		{"just before", week, "2026-11-26T06:59:59Z", "min 2, max 4 2026-11-25T19:00Z next 2026-11-26T07:00Z"},
		{"a weekend", week, "2026-11-29T12:00:00Z", "min 2, max 4 2026-11-28T19:00Z next 2026-11-29T19:00Z"},
		{"in summer", week, "2026-07-01T09:00:00Z", "min 10, max 20 2026-07-01T06:00Z next 2026-07-01T18:00Z"},
		{
			"left out by the clock",
			[]store.ScaleChange{{Cron: "30 2 * * *", TimeZone: "Europe/Berlin", Size: n(7)}},
			"2026-03-29T01:00:00Z", "size 7 2026-03-29T01:00Z next 2026-03-30T00:30Z",
		},
		{
			"before it is left out",
			[]store.ScaleChange{{Cron: "30 2 * * *", TimeZone: "Europe/Berlin", Size: n(7)}},
			"2026-03-29T00:59:59Z", "size 7 2026-03-28T01:30Z next 2026-03-29T01:00Z",
		},
		{
			"twice on the clock",
			[]store.ScaleChange{{Cron: "30 2 * * *", TimeZone: "Europe/Berlin", Size: n(7)}},
			"2026-10-25T01:10:00Z", "size 7 2026-10-25T00:30Z next 2026-10-26T01:30Z",
		},
		{
			"the first of the two",
			[]store.ScaleChange{{Cron: "30 2 * * *", TimeZone: "Europe/Berlin", Size: n(7)}},
			"2026-10-25T00:20:00Z", "size 7 2026-10-24T00:30Z next 2026-10-25T00:30Z",
		},
		{
			"once in a leap year",
			[]store.ScaleChange{{Cron: "0 0 29 2 *", Min: n(3)}},
			"2026-01-01T00:00:00Z", "min 3, max 20 2024-02-29T00:00Z next 2028-02-29T00:00Z",
		},
		{
			"two at once: the later in the list",
			[]store.ScaleChange{{Cron: "0 0 * * *", Min: n(3)}, {Cron: "0 0 1 * *"}},
			"2026-01-01T00:00:00Z", "min 2, max 20 2026-01-01T00:00Z next 2026-01-02T00:00Z",
		},
		{"none", nil, "2026-01-01T00:00:00Z", "nothing next never"},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		s := store.ScaleSpec{Min: n(2), Max: 20, Schedule: test.schedule}
		const form = "2006-01-02T15:04Z"
		got, next := "nothing", "never"
		if c := s.ScheduledAt(now); c != nil {
			got = c.Sets() + " " + c.Since.Format(form)
		}
		if at, c := s.NextChange(now); c != nil {
			next = at.Format(form)
		}
		if got += " next " + next; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// A size of the schedule holds over all bounds; the operator's holds over the schedule until that
// changes something, or for as long as was said.
//
// proves AUTO-3
func TestSizesUnderASchedule(t *testing.T) {
	n := func(n int) *int { return &n }
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	g := store.Group{Scale: &store.ScaleSpec{Min: n(2), Max: 10}}
	g.Scale.Schedule = []store.ScaleChange{{Cron: "0 8 * * *", Size: n(0)}}
	at := func(since time.Duration, c store.Scheduled) *store.Scale {
		c.Since = now.Add(-since)
		return &store.Scale{Size: 5, Scheduled: &c}
	}
	bounds, zero := store.Scheduled{Min: 7, Max: 9}, store.Scheduled{Min: 2, Max: 10, Size: n(0)}
	for _, test := range []struct {
		chosen *store.Scale
		hold   *store.ScaleHold
		want   int
	}{
		{&store.Scale{Size: 5}, nil, 5},
		{at(time.Hour, bounds), nil, 7},
		{at(time.Hour, zero), nil, 0},
		{at(time.Hour, zero), &store.ScaleHold{Size: 3, At: now.Add(-time.Minute)}, 3},
		{at(time.Hour, bounds), &store.ScaleHold{Size: 3, At: now.Add(-2 * time.Hour)}, 7},
		{at(time.Hour, bounds), &store.ScaleHold{Size: 3, At: now.Add(-2 * time.Hour), Until: now.Add(1)}, 3},
	} {
		if g.ScaleHold = test.hold; g.SizeAt(test.chosen, now) != test.want {
			t.Errorf("%+v, %+v: %d, want %d", test.chosen.Scheduled, test.hold, g.SizeAt(test.chosen, now), test.want)
		}
	}
}

// What cannot be meant is refused with where it stands.
//
// proves AUTO-3
func TestBoundsOfSchedules(t *testing.T) {
	n := func(n int) *int { return &n }
	for path, c := range map[string]store.ScaleChange{
		"":                             {Cron: "0 8 * * MON-FRI", TimeZone: "Europe/Berlin", Min: n(3), Max: n(30)},
		"scale.schedule[0].cron":       {Cron: "0 8 * *", Min: n(3)},
		"scale.schedule[0].cron ":      {Cron: "@daily", Min: n(3)},
		"scale.schedule[0].cron  ":     {Cron: "0 0 30 2 *", Min: n(3)},
		"scale.schedule[0].cron   ":    {Cron: "61 0 * * *", Min: n(3)},
		"scale.schedule[0].time_zone":  {Cron: "0 8 * * *", TimeZone: "Local", Min: n(3)},
		"scale.schedule[0].time_zone ": {Cron: "0 8 * * *", TimeZone: "Berlin", Min: n(3)},
		"scale.schedule[0].min":        {Cron: "0 8 * * *", Min: n(0)},
		"scale.schedule[0].min ":       {Cron: "0 8 * * *", Min: n(11)},
		"scale.schedule[0].min  ":      {Cron: "0 8 * * *", Min: n(9), Max: n(8)},
		"scale.schedule[0].max":        {Cron: "0 8 * * *", Max: n(1)},
		"scale.schedule[0].max ":       {Cron: "0 8 * * *", Max: n(store.MaxSize + 1)},
		"scale.schedule[0].size":       {Cron: "0 8 * * *", Size: n(-1)},
	} {
		g := web()
		g.Size, g.Scale = 0, &store.ScaleSpec{Min: n(2), Max: 10, Schedule: []store.ScaleChange{c}}
		g.Complete()
		wrong := fieldErrors(g.Validate())
		if path == "" && len(wrong) > 0 || path != "" && (len(wrong) != 1 || wrong[0].Path != strings.TrimSpace(path)) {
			t.Errorf("%s: %+v: %v", path, c, wrong)
		}
	}
	g := web()
	g.Size, g.Scale = 0, &store.ScaleSpec{Max: 10, Schedule: make([]store.ScaleChange, 51)}
	for i := range g.Scale.Schedule {
		g.Scale.Schedule[i] = store.ScaleChange{Cron: "0 8 * * *", Min: n(3)}
	}
	g.Complete()
	if wrong := fieldErrors(g.Validate()); len(wrong) != 1 || wrong[0].Path != "scale.schedule" {
		t.Error(wrong)
	}
}

// What comes last and next is what a walk through every minute finds, also around the days on which
// clocks change; and a schedule of every minute costs a few steps, as it is read in every plan.
//
// proves AUTO-3, DAY-6
func TestScheduleAgreesWithEveryMinute(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		changes, at := []time.Time{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for len(changes) < 2 {
			_, end := at.In(loc).ZoneBounds()
			if end.IsZero() {
				end = at.AddDate(0, 3, 0)
			}
			changes, at = append(changes, end), end.Add(time.Minute)
		}
		for _, expression := range []string{"* * * * *", "*/7 1-3 * * *", "30 2 * * *", "0 3 * * *"} {
			g := web()
			g.Drills = []store.DrillSpec{{Cron: expression, TimeZone: zone}}
			s := store.ScaleSpec{Max: 3, Schedule: []store.ScaleChange{{Cron: expression, TimeZone: zone}}}
			for _, change := range changes {
				var comes []time.Time // by asking from far away, step by step
				for at := change.Add(-30 * time.Hour); at.Before(change.Add(30 * time.Hour)); {
					at, _ = s.NextChange(at)
					comes = append(comes, at)
				}
				for i := 1; i < len(comes); i++ {
					if !comes[i].After(comes[i-1]) {
						t.Fatalf("%s %s: %s after %s", zone, expression, comes[i], comes[i-1])
					}
					for _, now := range []time.Time{comes[i].Add(-time.Nanosecond), comes[i-1], comes[i-1].Add(time.Second)} {
						due, _ := g.DrillAt(now)
						if next := g.NextDrill(now); !due.Equal(comes[i-1]) || !next.Equal(comes[i]) {
							t.Fatalf("%s %s at %s: last %s, next %s; want %s, %s", zone, expression, now, due, next, comes[i-1], comes[i])
						}
					}
				}
			}
		}
	}
}

// BenchmarkScheduleOfEveryMinute is what a schedule of every minute costs a plan.
func BenchmarkScheduleOfEveryMinute(b *testing.B) {
	s := store.ScaleSpec{Max: 3, Schedule: []store.ScaleChange{{Cron: "* * * * *", TimeZone: "Europe/Berlin"}}}
	now := time.Date(2026, 6, 1, 12, 0, 30, 0, time.UTC)
	for b.Loop() {
		s.ScheduledAt(now)
		s.NextChange(now)
	}
}
