package review

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A day is read for itself: later days take no room, but tell which instances were there. What is
// beyond the bound is counted, up to the end of the day.
//
// proves DAY-5
func TestEntriesOfADay(t *testing.T) {
	d := NewDayEntries(midnight, 4)
	for _, e := range []store.JournalEntry{
		verdict(0, "web-0-a", store.Suspect),
		verdict(50*time.Hour, "web-0-a", store.Suspect),
		moves(51*time.Hour, "web-1-a", store.Running, store.Draining, store.CauseOrder),
		moves(52*time.Hour, "web-1-a", store.Draining, store.Deleting, store.CauseOrder),
		{At: at(53 * time.Hour), Rule: "ELECT-1"},
	} {
		d.Take(e)
	}
	if len(d.All) != 2 || d.All[1].Instance != "web-1-a" || d.Unread != 0 {
		t.Errorf("%d unread, %+v", d.Unread, d.All)
	}
	if days := Days(Input{Entries: d.All}, midnight); len(days) != 1 || days[0].Wanted.D() < 36*time.Hour {
		t.Errorf("an instance of which a later entry tells is missing: %+v", days)
	}
	d = NewDayEntries(midnight, 4)
	for i := range 10 {
		d.Take(verdict(time.Duration(i)*2*time.Hour, "web-0-a", store.Suspect)) // from noon on
	}
	if len(d.All) != 4 || d.Unread != 2 {
		t.Errorf("%d entries, %d unread", len(d.All), d.Unread)
	}
	d = NewDayEntries(midnight, 4)
	for i := range 10 {
		d.Take(verdict(time.Duration(i-22)*time.Hour, "web-0-a", store.Suspect)) // of the day before
	}
	d.Take(moves(0, "web-1-a", store.Running, store.Draining, store.CauseOrder))
	if len(d.All) > 4 || d.Unread != 0 || d.All[len(d.All)-1].Instance != "web-1-a" {
		t.Errorf("the day before takes the place of the day: %+v", d.All)
	}
}

// A day on which a group began, and one that is not over, have no size but those that were in
// force.
//
// proves AUTO-4
func TestAGroupHasNoSizeBeforeItsBeginning(t *testing.T) {
	hour := time.Hour
	entries := []store.JournalEntry{
		moves(-2*hour, "web-0-a", "", store.Pending, store.CauseUnfilled),
		moves(-1*hour, "web-0-a", store.Checking, store.Running, store.CauseUnfilled),
		{At: at(0), Group: "web", Cause: store.Cause{Kind: store.CauseSpec, Name: "t", Count: 3}},
	}
	if sizes := Days(Input{Entries: entries}, midnight)[0].Sizes; len(sizes) != 1 || sizes[0].Size != 3 {
		t.Errorf("the first day: %+v", sizes)
	}
	records := []store.Instance{running("web-0-a", 0), running("web-1-a", 1)}
	records[0].Created, records[1].Created = at(-48*hour), at(-48*hour)
	sizes := Days(Input{Instances: records}, midnight)[0].Sizes
	if len(sizes) != 1 || sizes[0] != (store.DaySize{Size: 2}) {
		t.Errorf("a quiet day: %+v", sizes)
	}
}

// What a day lacks for all groups together is told once, however many groups there are.
//
// proves DAY-5
func TestWhatADayLacksIsReportedOnce(t *testing.T) {
	var days []store.Day
	for _, day := range []string{"2026-03-01", "2026-03-02"} {
		for _, group := range []string{"a", "b", "c"} {
			days = append(days, store.Day{Group: group, Day: day, Uncounted: 5, Unread: 7})
		}
	}
	text := strings.Join(ofDays(days, midnight.Add(48*time.Hour)), "\n")
	if !strings.Contains(text, "(10 times)") || !strings.Contains(text, "Of these days 14 entries") {
		t.Error(text)
	}
}

// proves DAY-5
func TestNumbersAndNounsOfDays(t *testing.T) {
	day := store.Day{Day: "2026-03-01", Uncounted: 1, Unread: 1}
	text := strings.Join(ofDays([]store.Day{day}, time.Time{}), " ")
	for _, want := range []string{"(1 time).", "Of these days 1 entry is not summed up: there were too many."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
}
