package review

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

// entry returns an entry about an instance of group web, so long after the start.
func entry(after time.Duration, instance string, e store.JournalEntry) store.JournalEntry {
	var slot int
	if _, err := fmt.Sscanf(instance, "web-%d-", &slot); err != nil {
		panic(err)
	}
	e.At, e.Group, e.Instance, e.Slot = at(after), "web", instance, &slot
	return e
}

func verdict(after time.Duration, instance string, v store.Verdict) store.JournalEntry {
	return entry(after, instance, store.JournalEntry{Kind: store.EntryVerdict, Verdict: v})
}

func moves(after time.Duration, instance string, from, to store.Phase, why store.CauseKind) store.JournalEntry {
	return entry(after, instance, store.JournalEntry{From: from, To: to, Cause: store.Cause{Kind: why}})
}

// death returns a machine that died and its replacement, healthy after 20 seconds.
func death(after time.Duration, old, heir string) []store.JournalEntry {
	return []store.JournalEntry{
		verdict(after, old, store.Suspect), verdict(after+2*time.Second, old, store.Dead),
		entry(after+3*time.Second, old, store.JournalEntry{
			From: store.Running, To: store.Deleting, Verdict: store.Dead, Replacement: heir,
			Cause: store.Cause{Kind: store.CauseDown},
		}),
		moves(after+20*time.Second, heir, store.Checking, store.Running, store.CausePassed),
	}
}

// of reports on group web, over an hour from the start.
func of(t *testing.T, entries []store.JournalEntry, records ...store.Instance) Group {
	t.Helper()
	r := Of(Input{From: start, To: at(time.Hour), Kept: 24 * time.Hour, Entries: entries, Instances: records})
	if len(r.Groups) != 1 {
		t.Fatalf("%+v", r)
	}
	return r.Groups[0]
}

func running(id string, slot int) store.Instance {
	return store.Instance{
		ID: id, Group: "web", Slot: slot, Managed: true, Phase: store.Running, Created: start.Add(-time.Hour),
	}
}

// A machine that dies costs the time from the first suspicion until its slot is served again, and
// each part of that time is told.
//
// proves DAY-5
func TestAMachineDies(t *testing.T) {
	g := of(t, death(10*time.Minute, "web-0-a", "web-0-b"), running("web-0-b", 0), running("web-1-a", 1))
	if g.Wanted.D() != 2*time.Hour || g.Lost.D() != 20*time.Second {
		t.Errorf("wanted %s, lost %s", g.Wanted, g.Lost)
	}
	want := Cause{Why: Died, Lost: store.Duration(20 * time.Second), Times: 1}
	if len(g.Causes) != 1 || g.Causes[0] != want {
		t.Errorf("causes %v", g.Causes)
	}
	for _, c := range []struct {
		name string
		got  Spread
		want time.Duration
	}{{"detect", g.Detect, 2 * time.Second}, {"replace", g.Replace, time.Second}, {"heal", g.Heal, 20 * time.Second}} {
		if c.got.Times != 1 || c.got.Worst.D() != c.want || c.got.Instance != "web-0-a" {
			t.Errorf("%s: %+v, want %s", c.name, c.got, c.want)
		}
	}
	if len(g.Made) != 1 || g.Made[0] != (Made{Why: Died, Count: 1}) {
		t.Errorf("made %v", g.Made)
	}
}

// What costs no time, and what costs some, by cause.
//
// proves DAY-5
func TestWhatCostsTime(t *testing.T) {
	minute := time.Minute
	smaller := []store.JournalEntry{
		moves(30*minute, "web-0-a", store.Running, store.Draining, store.CauseSmaller),
		moves(31*minute, "web-0-a", store.Draining, store.Deleting, store.CauseDrained),
	}
	restart := []store.JournalEntry{
		moves(minute, "web-0-a", store.Running, store.Stopping, store.CauseOutdated),
		moves(2*minute, "web-0-a", store.Starting, store.Checking, store.CauseAfter),
		moves(3*minute, "web-0-a", store.Checking, store.Running, store.CausePassed),
	}
	replacedFirst := []store.JournalEntry{
		entry(minute, "web-0-a", store.JournalEntry{
			Replacement: "web-0-b", Cause: store.Cause{Kind: store.CauseOutdated},
		}),
		moves(2*minute, "web-0-b", store.Checking, store.Running, store.CausePassed),
		moves(3*minute, "web-0-a", store.Running, store.Draining, store.CauseOutdated),
	}
	for _, c := range []struct {
		name         string
		entries      []store.JournalEntry
		wanted, lost time.Duration
		causes, made string
	}{
		{"nothing happened", nil, time.Hour, 0, "", ""},
		{"suspected, and back", []store.JournalEntry{
			verdict(minute, "web-0-a", store.Suspect), verdict(2*minute, "web-0-a", store.Live),
		}, time.Hour, 0, "", ""},
		{"checks fail, and pass again", []store.JournalEntry{
			verdict(minute, "web-0-a", store.Unhealthy), verdict(3*minute, "web-0-a", store.Live),
		}, time.Hour, 2 * minute, Failing, ""},
		{"lost, and back before it was replaced", []store.JournalEntry{
			verdict(minute, "web-0-a", store.Suspect), verdict(2*minute, "web-0-a", store.Lost),
			verdict(4*minute, "web-0-a", store.Live),
		}, time.Hour, 3 * minute, Silent, ""},
		{"restarted for a change", restart, time.Hour, 2 * minute, Change, ""},
		{"replaced first", replacedFirst, time.Hour, 0, "", Change},
		{"the group becomes smaller", smaller, 30 * minute, 0, "", ""},
		{"claims of strangers", []store.JournalEntry{
			entry(minute, "web-0-a", store.JournalEntry{
				Kind: store.EntryVerdict, Verdict: store.Dead, Claimed: true,
			}),
		}, time.Hour, 0, "", ""},
		{"the group becomes larger", []store.JournalEntry{
			moves(30*minute, "web-1-a", "", store.Pending, store.CauseUnfilled),
			moves(35*minute, "web-1-a", store.Checking, store.Running, store.CausePassed),
		}, 85 * minute, 0, "", Growth},
		{"the group becomes larger, and its new instance never becomes healthy", []store.JournalEntry{
			moves(30*minute, "web-1-a", "", store.Pending, store.CauseUnfilled),
			verdict(36*minute, "web-1-a", store.Stuck),
		}, 84 * minute, 24 * minute, Growth, Growth},
		{"the group becomes larger, and the first try is given up", []store.JournalEntry{
			moves(30*minute, "web-1-a", "", store.Pending, store.CauseUnfilled),
			moves(32*minute, "web-1-a", store.Booting, store.Deleting, store.CauseNotMade),
			moves(35*minute, "web-1-b", "", store.Pending, store.CauseUnfilled),
			moves(37*minute, "web-1-b", store.Checking, store.Running, store.CausePassed),
		}, 88 * minute, 5 * minute, Growth, Growth},
		{"the group becomes larger, and no machine is made", []store.JournalEntry{
			moves(30*minute, "web-1-a", "", store.Pending, store.CauseUnfilled),
		}, 80 * minute, 20 * minute, Growth, Growth},
		{"the group becomes larger, and smaller again at once", []store.JournalEntry{
			moves(30*minute, "web-1-a", "", store.Pending, store.CauseUnfilled),
			moves(33*minute, "web-1-a", store.Booting, store.Deleting, store.CauseSmaller),
		}, time.Hour, 0, "", Growth},
		{
			"it is still dead",
			[]store.JournalEntry{verdict(50*minute, "web-0-a", store.Dead)},
			time.Hour, 10 * minute, Died, "",
		},
		{"a drill", append([]store.JournalEntry{entry(5*minute, "web-0-a", store.JournalEntry{Rule: RuleDrill})},
			death(6*minute, "web-0-a", "web-0-b")...), time.Hour, 20 * time.Second, Drill, Drill},
	} {
		t.Run(c.name, func(t *testing.T) {
			record := running("web-0-a", 0)
			if c.name == "the group becomes smaller" {
				record.Phase = store.Deleting
			}
			g := of(t, c.entries, record)
			var causes, made []string
			for _, cause := range g.Causes {
				causes = append(causes, cause.Why)
			}
			for _, m := range g.Made {
				made = append(made, m.Why)
			}
			if g.Wanted.D() != c.wanted || g.Lost.D() != c.lost || strings.Join(causes, " ") != c.causes ||
				strings.Join(made, " ") != c.made {
				t.Errorf("wanted %s, lost %s for %v, made %v", g.Wanted, g.Lost, causes, made)
			}
			if c.name == "a drill" && g.Heal.Times+g.Detect.Times+g.Replace.Times != 0 {
				t.Errorf("a drill counts as a failure: %+v", g)
			}
		})
	}
}

// The span is clipped where the journal ends, and a slot that was empty before it counts from its
// beginning.
//
// proves DAY-5
func TestTheSpan(t *testing.T) {
	entries := death(-5*time.Second, "web-0-a", "web-0-b")
	g := of(t, entries, running("web-0-b", 0))
	if g.Lost.D() != 15*time.Second || g.Causes[0].Why != Died || g.Detect.Times != 0 || g.Heal.Times != 1 {
		t.Errorf("%+v", g)
	}
	r := Of(Input{From: start.Add(-48 * time.Hour), To: start, Kept: time.Hour, Created: at(-30 * time.Minute)})
	if !r.From.Equal(at(-30*time.Minute)) || !strings.Contains(strings.Join(r.Unknown, "\n"), "events_kept") {
		t.Errorf("%+v", r)
	}
	r = Of(Input{From: start, To: at(time.Hour), Kept: 24 * time.Hour, Entries: []store.JournalEntry{
		{At: at(time.Minute), Rule: "DET-3", What: "7 more verdicts changed"},
	}})
	if !strings.Contains(strings.Join(r.Unknown, "\n"), "missing here") {
		t.Errorf("%v", r.Unknown)
	}
}

// Percentiles are times that were seen, and the worst has a name.
func TestSpread(t *testing.T) {
	var samples []sample
	for i := range 100 {
		samples = append(samples, sample{time.Duration(100-i) * time.Second, fmt.Sprintf("web-%d-a", i)})
	}
	var w weighted
	w.samples(samples)
	s := w.spread()
	if s.P50.D() != 50*time.Second || s.P95.D() != 95*time.Second || s.Worst.D() != 100*time.Second ||
		s.Instance != "web-0-a" || s.Times != 100 {
		t.Errorf("%+v", s)
	}
}
