package review

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A report over summaries leaves out the time between them and a restore, and says so.
//
// proves DAY-5
func TestARestoreBehindSummaries(t *testing.T) {
	to := time.Date(2026, 3, 20, 0, 0, 0, 0, time.UTC)
	day := to.AddDate(0, 0, -10)
	in := Input{
		From: day, To: to, Kept: 7 * 24 * time.Hour, Created: to.Add(-24 * time.Hour),
		Instances: []store.Instance{{ID: "web-0-a", Group: "web", Phase: store.Running, Managed: true}},
		Days: []store.Day{{
			Group: "web", Day: day.Format(store.DayLayout), Wanted: store.Duration(24 * time.Hour),
		}},
	}
	r := Of(in)
	if !r.From.Equal(day) || len(r.Groups) != 1 || r.Groups[0].Wanted.D() != 48*time.Hour {
		t.Errorf("%+v", r)
	}
	if !slices.Contains(r.Unknown, "Of 8d after them nothing is known.") {
		t.Errorf("%q", r.Unknown)
	}
}
