package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// changes are times at which the clocks of zones jump: by an hour, by half of one, at midnight,
// over a whole day, and never.
var changes = map[string]string{
	"Europe/Berlin":       "2026-03-29T01:00:00Z",
	"America/New_York":    "2026-11-01T06:00:00Z",
	"Australia/Lord_Howe": "2026-04-04T15:00:00Z",
	"America/Havana":      "2026-11-01T05:00:00Z",
	"America/Sao_Paulo":   "2018-11-04T03:00:00Z",
	"Africa/Casablanca":   "2026-02-15T02:00:00Z",
	"Pacific/Apia":        "2011-12-30T10:00:00Z",
	"Asia/Kathmandu":      "2026-01-01T00:00:00Z",
	"":                    "2026-01-01T00:00:00Z",
}

var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// openings returns when a window opens between two times, as a person finds out who looks at a
// clock of the zone every minute: on each day that it is for, once, as soon as the clock shows its
// time or a later one.
func openings(t failer, w store.Window, from, to time.Time) []time.Time {
	loc, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		t.Fatalf("%v", err)
	}
	const form = "2006-01-02 15:04"
	shown := func(at time.Time) string { return at.In(loc).Format(form) }
	var out []time.Time
	day, _ := time.Parse(time.DateOnly, shown(from.Add(-48 * time.Hour))[:10])
	end, _ := time.Parse(time.DateOnly, shown(to.Add(48 * time.Hour))[:10])
	at := from.Add(-4 * 24 * time.Hour).Truncate(time.Minute)
	for ; !day.After(end); day = day.Add(24 * time.Hour) {
		if len(w.Days) > 0 && !slices.Contains(w.Days, days[day.Weekday()]) {
			continue
		}
		wanted := day.Format(time.DateOnly) + " " + w.From
		for look := at; ; look = look.Add(time.Minute) {
			if shown(look) >= wanted {
				out = append(out, look)
				break
			}
		}
	}
	return out
}

type failer interface{ Fatalf(string, ...any) }

// A window is open from when its zone's clock first shows its time, on each of its days once, for
// as long as it says, whatever the clock does meanwhile; and at any time it is known when the next
// opens.
//
// proves ROLL-6
func TestWindowsThroughClockChanges(t *testing.T) {
	zones := slices.Sorted(func(yield func(string) bool) {
		for z := range changes {
			if !yield(z) {
				return
			}
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(rt, "zone")
		change, err := time.Parse(time.RFC3339, changes[zone])
		if err != nil {
			t.Fatal(err)
		}
		w := store.Window{
			From: rapid.SampledFrom([]string{"00:00", "00:30", "01:30", "02:00", "02:30", "03:00", "12:15", "23:30"}).
				Draw(rt, "from"),
			For:      store.Duration(time.Duration(rapid.IntRange(1, 3*24*60).Draw(rt, "for")) * time.Minute),
			TimeZone: zone,
			Days: slices.Sorted(
				slices.Values(rapid.SliceOfNDistinct(rapid.SampledFrom(days), 0, 3, rapid.ID).Draw(rt, "days")),
			),
		}
		agrees(rt, w, change.Add(time.Duration(rapid.IntRange(-3*24*60, 3*24*60).Draw(rt, "minutes"))*time.Minute))
	})
}

// agrees compares what a group says of its window with the clock.
func agrees(t failer, w store.Window, at time.Time) {
	g := store.Group{Windows: []store.Window{w}}
	var want time.Time
	for _, opens := range openings(t, w, at.Add(-w.For.D()), at.Add(8*24*time.Hour)) {
		if !opens.After(at) && at.Before(opens.Add(w.For.D())) {
			want = at
			break
		}
		if opens.After(at) {
			want = opens
			break
		}
	}
	if got := g.Opens(store.PlannedRoll, at); !got.Equal(want) {
		t.Fatalf("%+v at %s: opens %s, by the clock %s", w, at, got, want)
	}
	open := false
	for _, p := range g.OpenBetween(store.PlannedRoll, at.Add(-w.For.D()-time.Hour), at.Add(8*24*time.Hour)) {
		open = open || !p.From.After(at) && at.Before(p.To)
		if p.From.Before(want) && want.Before(p.To) && want.After(at) {
			t.Fatalf("%+v at %s: open from %s, by the clock %s", w, at, p.From, want)
		}
	}
	if open != want.Equal(at) {
		t.Fatalf("%+v at %s: open is %t in OpenBetween, by the clock it opens %s", w, at, open, want)
	}
}

// What is written of a window in a group's file never breaks the arithmetic, and what is accepted
// opens again within eight days.
func FuzzWindow(f *testing.F) {
	f.Add("22:00", "Europe/Berlin", "sat", int64(4*time.Hour), int64(1774746000))
	f.Add("02:30", "America/New_York", "", int64(time.Minute), int64(1793512800))
	f.Add("24:00", "Local", "someday", int64(0), int64(0))
	f.Add("00:00", "Pacific/Apia", "fri", int64(7*24*time.Hour), int64(1325203200))
	f.Fuzz(func(t *testing.T, from, zone, day string, length, unix int64) {
		w := store.Window{From: from, TimeZone: zone, For: store.Duration(length)}
		if day != "" {
			w.Days = []string{day}
		}
		at := time.Unix(unix%4e9, 0)
		g := store.DefaultGroup()
		g.Name, g.Provider, g.Windows = "web", "process", []store.Window{w}
		g.Complete()
		opens := g.Opens(store.PlannedExpiry, at)
		if err := g.Validate(); err == nil && (opens.Before(at) || opens.Sub(at) > 8*24*time.Hour) {
			t.Errorf("%+v at %s opens %s", w, at, opens)
		}
	})
}

// Several windows are open when one of them is, for what they allow each.
//
// proves ROLL-6
func TestWhatWindowsAllow(t *testing.T) {
	g := store.Group{Windows: []store.Window{
		{Days: []string{"sat"}, From: "22:00", For: store.Duration(4 * time.Hour), Allow: []string{store.PlannedRoll}},
		{From: "03:00", For: store.Duration(time.Hour), Allow: []string{store.PlannedRoll, store.PlannedExpiry}},
	}}
	at := func(text string) time.Time {
		t.Helper()
		when, err := time.Parse("2006-01-02 15:04", text)
		if err != nil && text != "" {
			t.Fatal(err)
		}
		return when
	}
	for _, c := range []struct{ kind, at, want string }{
		{store.PlannedRoll, "2026-01-03 21:59", "2026-01-03 22:00"},
		{store.PlannedRoll, "2026-01-04 01:59", "2026-01-04 01:59"}, // a Sunday
		{store.PlannedRoll, "2026-01-04 02:00", "2026-01-04 03:00"},
		{store.PlannedExpiry, "2026-01-03 22:30", "2026-01-04 03:00"},
		{store.PlannedExpiry, "2026-01-04 03:00", "2026-01-04 03:00"},
		{store.PlannedExpiry, "2026-01-04 04:00", "2026-01-05 03:00"},
		{store.PlannedScaleDown, "2026-01-04 03:00", ""},
	} {
		if got := g.Opens(c.kind, at(c.at)); !got.Equal(at(c.want)) {
			t.Errorf("%s at %s: opens %s, want %s", c.kind, c.at, got, c.want)
		}
	}
	if w := (store.Group{Windows: g.Windows, Budget: store.Budget{MaxExpansion: 1}}).Warnings(); !slices.ContainsFunc(
		w,
		func(s string) bool {
			return strings.Contains(s, "no window allows rebalance, scale_down")
		},
	) {
		t.Errorf("warnings %q", w)
	}
}

// proves ROLL-6
func TestBoundsOfWindows(t *testing.T) {
	good := store.Window{From: "22:00", For: store.Duration(4 * time.Hour)}
	for want, change := range map[string]func(*store.Group){
		"":                      func(*store.Group) {},
		" ":                     func(g *store.Group) { g.Windows[0].For = store.Duration(7 * 24 * time.Hour) },
		"windows[0].from":       func(g *store.Group) { g.Windows[0].From = "24:00" },
		"windows[0].from ":      func(g *store.Group) { g.Windows[0].From = "9:00" },
		"windows[0].for":        func(g *store.Group) { g.Windows[0].For = store.Duration(59 * time.Second) },
		"windows[0].for ":       func(g *store.Group) { g.Windows[0].For = store.Duration(7*24*time.Hour + 1) },
		"windows[0].days":       func(g *store.Group) { g.Windows[0].Days = []string{"Sat"} },
		"windows[0].days ":      func(g *store.Group) { g.Windows[0].Days = []string{"sat", "sat"} },
		"windows[0].time_zone":  func(g *store.Group) { g.Windows[0].TimeZone = "Local" },
		"windows[0].time_zone ": func(g *store.Group) { g.Windows[0].TimeZone = "Berlin" },
		"windows[0].allow":      func(g *store.Group) { g.Windows[0].Allow = []string{"heal"} },
		"freeze.to":             func(g *store.Group) { g.Freeze.Why = "sale" },
		"freeze.to ":            func(g *store.Group) { g.Freeze.From = "2026-12-24T00:00:00Z" },
		"freeze.from": func(g *store.Group) {
			g.Freeze.From, g.Freeze.To = "2026-12-24T00:00:00Z",
				"2026-12-24T00:30:00+01:00"
		},
		"freeze.why": func(g *store.Group) {
			g.Freeze.To, g.Freeze.Why = "2026-12-24T00:00:00Z",
				strings.Repeat("x", 201)
		},
		"  ": func(g *store.Group) {
			g.Windows[0].TimeZone, g.Windows[0].Days = "Europe/Berlin", []string{"mon", "sun"}
		},
	} {
		g := store.DefaultGroup()
		g.Name, g.Provider, g.Windows = "web", "process", []store.Window{good}
		g.Complete()
		change(&g)
		wrong := fieldErrors(g.Validate())
		if path := strings.TrimSpace(want); path == "" && len(wrong) > 0 ||
			path != "" && (len(wrong) != 1 || wrong[0].Path != path || wrong[0].Rule != "ROLL-6") {
			t.Errorf("%q: %v", want, wrong)
		}
	}
}

// A freeze is taken out of what windows leave open, and work begins after both.
//
// proves ROLL-6
func TestOpenBetweenFreezes(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	at := func(hours int) time.Time { return noon.Add(time.Duration(hours) * time.Hour) }
	g := store.Group{Windows: []store.Window{
		{From: "14:00", For: store.Duration(3 * time.Hour)}, {From: "16:00", For: store.Duration(2 * time.Hour)},
	}}
	freeze := &store.Freeze{From: at(3), To: at(5)}
	for name, c := range map[string]struct {
		g      store.Group
		freeze []*store.Freeze
		want   []store.Period
		begins time.Time // what waits from 15:00 on
	}{
		"windows that touch": {g, nil, []store.Period{{From: at(2), To: at(6)}}, at(3)},
		"a freeze in it": {
			g,
			[]*store.Freeze{nil, freeze},
			[]store.Period{{From: at(2), To: at(3)}, {From: at(5), To: at(6)}},
			at(5),
		},
		"a freeze alone": {
			store.Group{},
			[]*store.Freeze{freeze},
			[]store.Period{{From: at(0), To: at(3)}, {From: at(5), To: at(12)}},
			at(5),
		},
		"nothing": {store.Group{}, nil, []store.Period{{From: at(0), To: at(12)}}, at(3)},
	} {
		if got := c.g.OpenBetween(store.PlannedRoll, at(0), at(12), c.freeze...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := c.g.Begins(store.PlannedRoll, at(3), c.freeze...); !got.Equal(c.begins) {
			t.Errorf("%s: begins %s, want %s", name, got, c.begins)
		}
	}
}
