package review

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// A day keeps what happened to instances: which failed, how, and for how long; starts; sizes.
//
// proves DAY-5, AUTO-4
func TestADayIsSummedUp(t *testing.T) {
	minute := time.Minute
	group := func(after time.Duration, kind store.CauseKind, name string, count, limit int) store.JournalEntry {
		return store.JournalEntry{
			At: at(after), Group: "web", Cause: store.Cause{Kind: kind, Name: name, Count: count, Limit: limit},
		}
	}
	entries := slices.Concat([]store.JournalEntry{
		group(-13*time.Hour, store.CauseSpec, "t1", 3, 0),
		verdict(minute, "web-1-a", store.Suspect), verdict(3*minute, "web-1-a", store.Live),
		verdict(5*minute, "web-2-a", store.Unhealthy), verdict(9*minute, "web-2-a", store.Live),
		group(10*minute, store.CauseLoad, string(store.ScaleAdvised), 3, 9),
		group(11*minute, store.CauseLoad, "", 3, 4),
		group(12*minute, store.CauseSpec, "t2", 5, 0),
		moves(13*minute, "web-3-a", "", store.Pending, store.CauseUnfilled),
		moves(14*minute, "web-3-a", store.Creating, store.Booting, store.CauseMadeBy),
		moves(16*minute, "web-3-a", store.Checking, store.Deleting, store.CauseNeverHealthy),
		moves(20*minute, "web-1-a", store.Running, store.Running, store.CauseNotice),
	}, death(30*minute, "web-0-a", "web-0-b"), []store.JournalEntry{
		verdict(13*time.Hour, "web-2-a", store.Unhealthy), // the next day
	})
	days := Days(Input{
		Entries: entries, Instances: []store.Instance{running("web-1-a", 1), running("web-2-a", 2)},
		Loads: []store.Load{
			{Group: "web", Hour: midnight.Add(5 * time.Hour), Points: []store.LoadPoint{
				{Run: 2, CPU: 10}, {Run: 4, CPU: 30, Outside: map[string]float64{"queue": 7}}, {Run: 3, CPU: 20},
			}},
			{Group: "web", Hour: midnight.Add(25 * time.Hour), Points: []store.LoadPoint{{CPU: 99}}},
		},
	}, midnight)
	if len(days) != 1 {
		t.Fatalf("%+v", days)
	}
	d, noon := days[0], store.Duration(12*time.Hour)
	after := func(minutes int) store.Duration {
		return noon + store.Duration(time.Duration(minutes)*time.Minute)
	}
	failures := []store.DayFailure{
		{At: after(1), Kind: store.FailedSilent, Slot: 1, For: store.Duration(2 * minute)},
		{At: after(5), Kind: store.FailedChecks, Slot: 2, For: store.Duration(4 * minute)},
		{At: after(20), Kind: store.FailedNotice, Slot: 1},
		{At: after(30), Kind: store.FailedDead},
	}
	if !slices.Equal(d.Failures, failures) {
		t.Errorf("failures %+v", d.Failures)
	}
	sizes := []store.DaySize{{Size: 3}, {At: after(11), Size: 4}, {At: after(12), Size: 5}}
	if !slices.Equal(d.Sizes, sizes) {
		t.Errorf("sizes %+v", d.Sizes)
	}
	if !slices.Equal(d.Rolls, []store.Duration{after(12)}) || d.Unready != 1 || d.Calls.Times != 1 ||
		d.Calls.Took[0].D() != minute {
		t.Errorf("%+v", d)
	}
	if len(d.Loads) != 1 || d.Loads[0].Hour != 5 || d.Loads[0].Run != 3 || d.Loads[0].CPU != [3]float64{10, 20, 30} ||
		d.Loads[0].Outside["queue"][0] != 7 {
		t.Errorf("loads %+v", d.Loads)
	}
	if size := len(store.Encode(d)); size > 1500 {
		t.Errorf("a day takes %d bytes", size)
	}
}

// What a day keeps is bounded, and says what it left out.
//
// proves DAY-5
func TestADayIsBounded(t *testing.T) {
	var entries []store.JournalEntry
	for i := range 2_000 {
		entries = append(entries, death(-12*time.Hour+time.Duration(i)*40*time.Second, "web-0-a", "web-0-a")...)
	}
	d := Days(Input{Entries: entries, Instances: []store.Instance{running("web-0-a", 0)}}, midnight)[0]
	if len(d.Failures) != maxFailures || d.Omitted != 2_000-maxFailures || len(d.Heal.Took) != maxTook ||
		d.Heal.Times != 2_000 {
		t.Errorf("%d failures, %d omitted, heal %+v", len(d.Failures), d.Omitted, d.Heal)
	}
	if size := len(store.Encode(d)); size > 16_000 {
		t.Errorf("a day takes %d bytes", size)
	}
}

// A report that begins before the journal goes on with the summaries of days: no time counts twice.
//
// proves DAY-5
func TestReportBeyondTheJournal(t *testing.T) {
	now := midnight.Add(60 * time.Hour) // noon, two days later
	entries := slices.Concat(death(0, "web-0-a", "web-0-b"), death(24*time.Hour, "web-0-b", "web-0-c"))
	records := []store.Instance{running("web-0-c", 0), running("web-1-a", 1)}
	days := Days(Input{Entries: entries, Instances: records}, midnight)
	days = append(days, Days(Input{Entries: entries, Instances: records}, midnight.Add(24*time.Hour))...)
	r := Of(Input{
		From: midnight.Add(6 * time.Hour), To: now, Kept: 40 * time.Hour, Entries: entries[len(entries)/2:],
		Instances: records, Days: days,
	})
	g := r.Groups[0]
	if !r.From.Equal(midnight) || g.Lost.D() != 40*time.Second || g.Wanted.D() != 109*time.Hour ||
		g.Heal.Times != 2 || g.Total() != 2 || g.Causes[0].Times != 2 || g.Heal.P95.D() != 20*time.Second {
		t.Errorf("from %s: %+v", r.From, g)
	}
	if !strings.Contains(strings.Join(r.Unknown, "\n"), "Before 2026-03-02 the report rests on summaries") {
		t.Errorf("%v", r.Unknown)
	}
	r = Of(Input{From: now.Add(-time.Hour), To: now, Kept: 40 * time.Hour, Instances: records, Days: days})
	if g := r.Groups[0]; g.Wanted.D() != 2*time.Hour {
		t.Errorf("a span within the journal: %+v", g)
	}
}
