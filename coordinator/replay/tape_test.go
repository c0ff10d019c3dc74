package replay

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// A file of events begins a day before its span: a number from outside of that day is not played
// in it.
//
// proves AUTO-4
func TestNumbersOfBeforeTheSpanAreNotPlayed(t *testing.T) {
	queue := query.Key{Source: "queue", Group: "web"}
	from := time.Date(2026, 3, 2, 6, 30, 0, 0, time.UTC)
	load := func(before time.Duration, value float64) store.Load {
		at := from.Add(-before)
		hour := at.Truncate(time.Hour)
		return store.Load{Group: "web", Hour: hour, Points: []store.LoadPoint{{
			Minute: int(at.Sub(hour).Minutes()), Outside: map[string]float64{"queue": value},
		}}}
	}
	in := review.Input{From: from, To: from.Add(2 * time.Hour), Kept: 48 * time.Hour}
	in.Loads = []store.Load{load(20*time.Hour, 900), load(-time.Hour, 7)}
	played := record(in, map[string]bool{"web": true})
	if v, known := played.outsideAt(queue, from); known {
		t.Errorf("at the beginning it is %g", v)
	}
	if v, _ := played.outsideAt(queue, from.Add(time.Hour)); v != 7 {
		t.Errorf("later it is %g", v)
	}
	in.Loads = append(in.Loads, load(2*time.Minute, 5))
	played = record(in, map[string]bool{"web": true})
	for _, after := range []time.Duration{-10 * time.Minute, 0, 3*time.Minute - 1} {
		if v, _ := played.outsideAt(queue, from.Add(after)); v != 5 {
			t.Errorf("a number of the five minutes in which the span begins is %g, %s after that", v, after)
		}
	}
	if v, known := played.outsideAt(queue, from.Add(3*time.Minute)); known {
		t.Errorf("after its five minutes it is still %g", v)
	}
}

// Of a day before the journal begins only a summary that is kept says anything.
//
// proves DAY-5, AUTO-4
func TestADayBeforeTheJournalBegins(t *testing.T) {
	to := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	today := to.Truncate(dayLong)
	slot := 0
	in := review.Input{
		From: to.Add(-3 * dayLong), To: to, Kept: 7 * dayLong, Created: today.Add(6 * time.Hour),
		Instances: []store.Instance{{ID: "web-0-a", Group: "web", Phase: store.Running, Managed: true}},
		Entries: []store.JournalEntry{{
			At: to.Add(-4 * dayLong), Group: "web", Instance: "web-0-a", Slot: &slot, From: store.Checking, To: store.Running,
		}},
		Days: []store.Day{{Group: "web", Day: today.Add(-dayLong).Format(store.DayLayout), Wanted: 7}},
	}
	if days := daysOf(in, today.Add(-2*dayLong)); len(days) > 0 {
		t.Errorf("the day before: %+v", days)
	}
	if days := daysOf(in, today.Add(-dayLong)); len(days) != 1 || days[0].Wanted != 7 {
		t.Errorf("the day with a summary: %+v", days)
	}
	if days := daysOf(in, today); len(days) != 1 || days[0].Wanted.D() != 18*time.Hour {
		t.Errorf("today: %+v", days)
	}
}

// Two groups may follow the same source, which gives each of them a number of its own.
//
// proves AUTO-4
func TestANumberBelongsToItsGroup(t *testing.T) {
	from := time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)
	in := review.Input{From: from, To: from.Add(2 * time.Hour), Kept: 48 * time.Hour}
	for i, group := range []string{"web", "api"} {
		for minute := 5; minute < 60; minute += 5 {
			in.Loads = append(in.Loads, store.Load{Group: group, Hour: from, Points: []store.LoadPoint{{
				Minute: minute, Outside: map[string]float64{"queue": float64(10*i + minute)},
			}}})
		}
	}
	played := record(in, map[string]bool{"web": true, "api": true})
	for i, group := range []string{"web", "api"} {
		for minute := 5; minute < 60; minute += 5 {
			at := from.Add(time.Duration(minute) * time.Minute)
			want := float64(10*i + minute)
			if v, known := played.outsideAt(query.Key{Source: "queue", Group: group}, at); !known || v != want {
				t.Errorf("%s at %d: %g, want %g", group, minute, v, want)
			}
		}
	}
}
