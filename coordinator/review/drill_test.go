package review

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What the journal says of a drill: each step when it happens, in the slots that were drilled, and
// who else failed.
//
// proves DAY-6
func TestSeenOfDrill(t *testing.T) {
	taken := entry(0, "web-0-a", store.JournalEntry{
		Rule: RuleDrill, Facts: []store.Fact{
			{Kind: store.FactRequest, Name: "r"}, {Kind: store.FactInstance, Name: "web-1-a"},
		},
	})
	halt := func(after time.Duration, id string) store.JournalEntry {
		return entry(after, id, store.JournalEntry{
			Rule: RuleDrill, Kind: store.EntryCall, Facts: []store.Fact{{Kind: store.FactRequest, Name: "r"}},
		})
	}
	entries := []store.JournalEntry{taken}
	if d := SeenOfDrill(entries, "r"); len(d.Instances) != 2 || d.Over() {
		t.Errorf("taken: %+v", d)
	}
	entries = append(entries, halt(time.Second, "web-0-a"), halt(2*time.Second, "web-1-a"))
	entries = append(entries, death(3*time.Second, "web-0-a", "web-0-b")...)
	entries = append(entries, verdict(10*time.Second, "web-2-a", store.Unhealthy))
	d := SeenOfDrill(entries, "r")
	if d.Over() || !slices.Equal(d.Others, []string{"web-2-a"}) {
		t.Errorf("half: %+v", d)
	}
	want := DrilledSeen{
		Instance: "web-0-a", Ended: at(time.Second), Verdict: store.Dead, Seen: at(5 * time.Second),
		Replacement: "web-0-b", Replaced: at(6 * time.Second), Served: at(23 * time.Second),
	}
	if d.Instances[0] != want {
		t.Errorf("got %+v\nwant %+v", d.Instances[0], want)
	}
	entries = append(entries, death(4*time.Second, "web-1-a", "web-1-b")...)
	if d := SeenOfDrill(entries, "r"); !d.Over() || len(d.Others) != 1 {
		t.Errorf("over: %+v", d)
	}
	// What happens later is no part of it.
	later := append(slices.Clone(entries), verdict(time.Hour, "web-2-a", store.Dead),
		refusal(time.Hour, "r2", store.RequestDrill.Drill()), refusal(time.Hour, "r3", ""))
	all := Drills(pointers(later))
	if len(all) != 2 || all[0].Order != "r" || !all[0].Over() || len(all[0].Others) != 1 {
		t.Errorf("listed: %+v", all)
	}
	if d := SeenOfDrill(later, "r"); len(d.Others) != 1 {
		t.Errorf("later: %+v", d)
	}
	if d := all[1]; d.Order != "r2" || d.Refused != "too small" || d.By != "ada" || !d.At.Equal(at(time.Hour)) ||
		d.Kind != store.DrillMachine || d.Outcome(nil) != OutcomeRefused {
		t.Errorf("refused: %+v", d)
	}
	if d := SeenOfDrill(entries, "another"); len(d.Instances) > 0 || d.Over() {
		t.Errorf("of another order: %+v", d)
	}
	if d := SeenOfDrill([]store.JournalEntry{refusal(0, "r", "agent")}, "r"); d.Refused != "too small" || !d.Over() {
		t.Errorf("refused: %+v", d)
	}
}

// A drill of a zone names the zone, also if it is refused.
//
// proves DAY-6
func TestADrillOfAZoneNamesIt(t *testing.T) {
	refused := refusal(0, "r", store.RequestDrill.Drill())
	refused.Facts[0].Zone = "b"
	begun := entry(0, "web-0-a", store.JournalEntry{
		Rule: RuleDrill, Cause: store.Cause{Kind: store.CauseOrder, By: "ada"},
		Facts: []store.Fact{{Kind: store.FactRequest, Name: "r", Zone: "b"}},
	})
	for _, e := range []store.JournalEntry{refused, begun} {
		if d := SeenOfDrill([]store.JournalEntry{e}, "r"); d.Target() != "zone b" {
			t.Errorf("got %q of %+v", d.Target(), d)
		}
	}
	if d := (DrillSeen{Kind: store.DrillAgent}); d.Target() != "agent" {
		t.Errorf("got %q", d.Target())
	}
	if d := (DrillSeen{}); d.Target() != "machine" {
		t.Errorf("got %q", d.Target())
	}
}

func refusal(after time.Duration, order, kind string) store.JournalEntry {
	return store.JournalEntry{
		At: at(after), Group: "web", Rule: "REC-16", Kind: store.EntryRefusal, Why: "too small",
		Facts: []store.Fact{{Kind: store.FactRequest, Name: order, By: "ada", Text: kind}},
	}
}

func pointers(entries []store.JournalEntry) (all []*store.JournalEntry) {
	for i := range entries {
		all = append(all, &entries[i])
	}
	return all
}

// An agent that comes back in time keeps its machine; one that does not is replaced. A workload is
// restarted in its place or replaced. Each has its promise.
//
// proves DAY-6
func TestPromisesOfDrills(t *testing.T) {
	taken := func(kind store.DrillKind) store.JournalEntry {
		return entry(0, "web-0-a", store.JournalEntry{
			Rule: RuleDrill, From: store.Running, To: store.Running, Cause: store.Cause{Kind: store.CauseOrder, By: "ada"},
			Facts: []store.Fact{{Kind: store.FactRequest, Name: "r", Text: string(kind)}},
		})
	}
	var g store.Group
	g.Report.LeaseTTL, g.Report.Interval = store.Duration(17*time.Second), store.Duration(5*time.Second)
	for name, c := range map[string]struct {
		kind    store.DrillKind
		entries []store.JournalEntry
		want    []string
		kept    bool
	}{
		"back in time": {
			store.DrillAgent, []store.JournalEntry{
				verdict(time.Second, "web-0-a", store.Suspect), verdict(4*time.Second, "web-0-a", store.Live),
			}, []string{"suspect after 1s", "back after 4s"}, true,
		},
		"replaced": {
			store.DrillAgent, death(time.Second, "web-0-a", "web-0-b"),
			[]string{"dead after 1s", "web-0-b after 4s", "after 21s"},
			true,
		},
		"replaced late": {
			store.DrillAgent, []store.JournalEntry{
				verdict(time.Second, "web-0-a", store.Suspect),
				entry(40*time.Second, "web-0-a", store.JournalEntry{Verdict: store.Lost, Replacement: "web-0-b"}),
				moves(50*time.Second, "web-0-b", store.Checking, store.Running, store.CausePassed),
			}, []string{"lost after 1s", "web-0-b after 40s", "after 50s"}, false,
		},
		"restarted": {
			store.DrillWorkload, []store.JournalEntry{
				verdict(time.Second, "web-0-a", store.Unhealthy),
				entry(time.Second, "web-0-a", store.JournalEntry{From: store.Running, To: store.Stopping}),
				moves(9*time.Second, "web-0-a", store.Checking, store.Running, store.CausePassed),
			}, []string{"unhealthy after 1s", "0s later", "after 9s"}, true,
		},
	} {
		d := SeenOfDrill(append([]store.JournalEntry{taken(c.kind)}, c.entries...), "r")
		var seen []string
		kept := true
		promises := d.Promises(g, nil)
		for _, p := range promises {
			seen, kept = append(seen, p.Seen), kept && p.Kept
		}
		if (d.Outcome(promises) == OutcomeKept) != c.kept || d.Outcome(nil) != OutcomeUnknown {
			t.Errorf("%s: %s", name, d.Outcome(promises))
		}
		if want := append(c.want, "none", "none"); !d.Over() || d.By != "ada" || kept != c.kept || !slices.Equal(seen, want) {
			t.Errorf("%s: kept %v, %q, want %q", name, kept, seen, want)
		}
	}
}

// What fails long after a drill that the instance came through is no part of it.
//
// proves DAY-5, DAY-6
func TestDrillEnds(t *testing.T) {
	entries := []store.JournalEntry{
		entry(0, "web-0-a", store.JournalEntry{Rule: RuleDrill, From: store.Running, To: store.Running}),
		verdict(time.Second, "web-0-a", store.Suspect), verdict(2*time.Second, "web-0-a", store.Live),
	}
	entries = append(entries, death(30*time.Minute, "web-0-a", "web-0-b")...)
	g := of(t, entries, running("web-0-b", 0))
	if g.Heal.Times != 1 || len(g.Causes) != 1 || g.Causes[0].Why != Died {
		t.Errorf("%+v", g)
	}
}
