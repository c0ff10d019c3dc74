package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What cannot be meant is refused with where it stands.
//
// proves DAY-6
func TestBoundsOfDrills(t *testing.T) {
	for path, s := range map[string]store.DrillSpec{
		"":                    {Cron: "0 10 * * TUE", TimeZone: "Europe/Berlin", Kind: "workload"},
		" ":                   {Cron: "0 10 * * *", Zone: "a"},
		"drills[0].cron":      {Cron: "@daily"},
		"drills[0].time_zone": {Cron: "0 10 * * *", TimeZone: "Local"},
		"drills[0].kind":      {Cron: "0 10 * * *", Kind: "disk"},
		"drills[0].zone":      {Cron: "0 10 * * *", Kind: "agent", Zone: "a"},
	} {
		g := web()
		g.Drills = []store.DrillSpec{s}
		g.Complete()
		wrong := fieldErrors(g.Validate())
		path = strings.TrimSpace(path)
		if path == "" && len(wrong) > 0 || path != "" && (len(wrong) != 1 || wrong[0].Path != path) {
			t.Errorf("%s: %+v: %v", path, s, wrong)
		}
	}
	g := web()
	for range 21 {
		g.Drills = append(g.Drills, store.DrillSpec{Cron: "0 10 * * *"})
	}
	g.Complete()
	if wrong := fieldErrors(g.Validate()); len(wrong) != 1 || wrong[0].Path != "drills" {
		t.Error(wrong)
	}
}

// Scheduled drills are found by the clock of their zone; of two the later one counts.
//
// proves DAY-6
func TestWhenDrillsCome(t *testing.T) {
	g := web()
	g.Drills = []store.DrillSpec{
		{Cron: "0 10 * * *", Kind: "machine"}, {Cron: "0 10 * * *", TimeZone: "America/New_York", Kind: "agent"},
	}
	now := time.Date(2026, 7, 7, 12, 0, 0, 0, time.UTC)
	due, s := g.DrillAt(now)
	if !due.Equal(now.Add(-2*time.Hour)) || s.Of() != store.DrillMachine || !g.NextDrill(now).Equal(now.Add(2*time.Hour)) {
		t.Errorf("%s %+v, next %s", due, s, g.NextDrill(now))
	}
	if due, s := g.DrillAt(now.Add(2 * time.Hour)); !due.Equal(now.Add(2*time.Hour)) || s.Of() != store.DrillAgent {
		t.Errorf("%s %+v", due, s)
	}
	g.Drills = nil
	if due, s := g.DrillAt(now); s != nil || !due.IsZero() {
		t.Errorf("%s %+v", due, s)
	}
}
