package tracing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// entryAt is an entry about an instance, so many seconds after the beginning.
func entryAt(second int, instance string, slot int, change func(*store.JournalEntry)) *store.JournalEntry {
	e := store.JournalEntry{
		At: time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC), Group: "web", Instance: instance, Slot: &slot, Rule: "R-1",
	}
	change(&e)
	return &e
}

func verdict(v store.Verdict) func(*store.JournalEntry) {
	return func(e *store.JournalEntry) { e.Kind, e.Verdict = store.EntryVerdict, v }
}

func goes(from, to store.Phase) func(*store.JournalEntry) {
	return func(e *store.JournalEntry) { e.From, e.To = from, to }
}

func fails(v store.Verdict, to store.Phase, replacement string) func(*store.JournalEntry) {
	return func(e *store.JournalEntry) { e.Verdict, e.To, e.Replacement = v, to, replacement }
}

func joins(e *store.JournalEntry) { e.Cause.Kind = store.CauseWorks }

// render writes spans as NAME begin-end, an exclamation mark after a failure, and the number of the
// trace.
func render(spans []span, begin time.Time, traces map[string]int) (lines []string) {
	for _, s := range spans {
		if _, known := traces[s.trace.String()]; !known {
			traces[s.trace.String()] = len(traces) + 1
		}
		mark := ""
		if s.failed != "" {
			mark = "!"
		}
		lines = append(lines, fmt.Sprintf("%d %s%s %.0f-%.0f", traces[s.trace.String()], s.name, mark,
			s.begin.Sub(begin).Seconds(), s.end.Sub(begin).Seconds()))
	}
	return lines
}

// proves OBS-3
func TestHealingsAreFoundInTheJournal(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	coming := func(id string, slot, second int) []*store.JournalEntry {
		return []*store.JournalEntry{
			entryAt(second, id, slot, func(e *store.JournalEntry) {
				e.Kind, e.From, e.To = store.EntryCall, store.Pending, store.Creating
			}),
			entryAt(second+1, id, slot, goes(store.Creating, store.Booting)),
			entryAt(second+2, id, slot, goes(store.Booting, store.Checking)),
			entryAt(second+3, id, slot, goes(store.Checking, store.Running)),
		}
	}
	for name, c := range map[string]struct {
		journal []*store.JournalEntry
		want    string
	}{
		"a suspicion that passes": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, verdict(store.Suspect)), entryAt(2, "a", 0, verdict(store.Live)),
				entryAt(9, "a", 0, goes(store.Running, store.Deleting)),
			}, "",
		},
		"dead": {
			append([]*store.JournalEntry{
				entryAt(1, "a", 0, verdict(store.Suspect)), entryAt(3, "a", 0, verdict(store.Dead)),
				entryAt(4, "a", 0, fails(store.Dead, store.Deleting, "b")),
			}, coming("b", 0, 5)...),
			"1 detect 1-3, 1 decide 3-4, 1 create 4-6, 1 boot 6-7, 1 healthy 7-8, 1 heal 1-8",
		},
		"dead, and its slot waits": {
			append([]*store.JournalEntry{
				entryAt(1, "a", 0, verdict(store.Dead)), entryAt(2, "a", 0, fails(store.Dead, store.Deleting, "")),
				entryAt(3, "z", 1, goes("", store.Pending)), entryAt(20, "b", 0, goes("", store.Pending)),
			}, coming("b", 0, 21)...),
			"1 detect 1-1, 1 decide 1-20, 1 create 20-22, 1 boot 22-23, 1 healthy 23-24, 1 heal 1-24",
		},
		"a slot that is no longer wanted": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, verdict(store.Dead)),
				entryAt(2, "a", 0, func(e *store.JournalEntry) {
					e.Verdict, e.To, e.Cause.Kind = store.Dead, store.Deleting, store.CauseSmaller
				}),
				entryAt(20, "b", 0, goes("", store.Pending)),
			}, "",
		},
		"load balancers": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, verdict(store.Lost)), entryAt(2, "a", 0, fails(store.Lost, "", "b")),
				entryAt(3, "b", 0, goes(store.Creating, store.Booting)), entryAt(4, "b", 0, goes(store.Booting, store.Checking)),
				entryAt(5, "b", 0, joins), entryAt(9, "b", 0, goes(store.Checking, store.Running)),
				entryAt(10, "a", 0, fails(store.Lost, store.Deleting, "")), entryAt(30, "c", 0, goes("", store.Pending)),
			},
			"1 detect 1-1, 1 decide 1-2, 1 create 2-3, 1 boot 3-4, 1 healthy 4-5, 1 traffic 5-9, 1 heal 1-9",
		},
		"lost, and back before the replacement is there": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, verdict(store.Lost)), entryAt(2, "a", 0, fails(store.Lost, "", "b")),
				entryAt(3, "b", 0, goes(store.Creating, store.Booting)), entryAt(4, "a", 0, verdict(store.Live)),
				entryAt(5, "b", 0, goes(store.Booting, store.Deleting)),
			}, "1 detect 1-1, 1 decide 1-2, 1 create 2-3, 1 heal 1-4",
		},
		"lost, and back while it drained": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, verdict(store.Lost)), entryAt(2, "a", 0, fails(store.Lost, store.Draining, "")),
				entryAt(3, "a", 0, goes(store.Draining, store.Running)), entryAt(9, "b", 0, goes("", store.Pending)),
			}, "",
		},
		"the replacement fails as well": {
			append([]*store.JournalEntry{
				entryAt(1, "a", 0, fails(store.Dead, store.Deleting, "b")),
				entryAt(3, "b", 0, goes(store.Creating, store.Booting)), entryAt(5, "b", 0, verdict(store.Stuck)),
				entryAt(6, "b", 0, fails(store.Stuck, store.Deleting, "")), entryAt(8, "c", 0, goes("", store.Pending)),
			}, coming("c", 0, 9)...),
			"1 detect 1-1, 1 decide 1-1, 1 create 1-3, 1 detect 5-5, 1 decide 5-8, 1 create 8-10, 1 boot 10-11, " +
				"1 healthy 11-12, 1 heal 1-12",
		},
		"restarts in its place, twice": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, verdict(store.Unhealthy)), entryAt(2, "a", 0, fails(store.Unhealthy, store.Stopping, "")),
				entryAt(3, "a", 0, goes(store.Stopping, store.Starting)), entryAt(4, "a", 0, goes(store.Starting, store.Checking)),
				entryAt(5, "a", 0, goes(store.Checking, store.Running)), entryAt(11, "a", 0, verdict(store.Unhealthy)),
				entryAt(12, "a", 0, fails(store.Unhealthy, store.Stopping, "")),
				entryAt(13, "a", 0, goes(store.Stopping, store.Starting)),
				entryAt(14, "a", 0, goes(store.Starting, store.Checking)),
				entryAt(15, "a", 0, goes(store.Checking, store.Running)),
			},
			"1 detect 1-1, 1 decide 1-2, 1 stop 2-3, 1 boot 3-4, 1 healthy 4-5, 1 heal 1-5, " +
				"2 detect 11-11, 2 decide 11-12, 2 stop 12-13, 2 boot 13-14, 2 healthy 14-15, 2 heal 11-15",
		},
		"a replacement that is withdrawn": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, fails(store.Dead, store.Deleting, "b")),
				entryAt(3, "b", 0, goes(store.Pending, store.Deleting)),
			}, "1 detect 1-1, 1 decide 1-1, 1 heal! 1-3",
		},
		"a replacement that finishes its task, and one that was served before it did": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, fails(store.Dead, store.Deleting, "b")),
				entryAt(3, "b", 0, goes(store.Booting, store.Checking)), entryAt(4, "b", 0, goes(store.Checking, store.Finished)),
				entryAt(11, "c", 1, fails(store.Dead, store.Deleting, "d")), entryAt(12, "d", 1, joins),
				entryAt(14, "d", 1, goes(store.Checking, store.Finished)),
			},
			"1 detect 1-1, 1 decide 1-1, 1 boot 1-3, 1 healthy 3-4, 1 heal 1-4, " +
				"2 detect 11-11, 2 decide 11-11, 2 healthy 11-12, 2 traffic 12-14, 2 heal 11-14",
		},
		"a replacement that is drained": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, fails(store.Dead, store.Deleting, "b")),
				entryAt(3, "b", 0, goes(store.Checking, store.Draining)), entryAt(5, "b", 0, goes(store.Draining, store.Deleting)),
			}, "1 detect 1-1, 1 decide 1-1, 1 heal! 1-3",
		},
		"on demand, without a slot": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, func(e *store.JournalEntry) { verdict(store.Dead)(e); e.Slot = nil }),
				entryAt(2, "a", 0, func(e *store.JournalEntry) { fails(store.Dead, store.Deleting, "")(e); e.Slot = nil }),
				entryAt(3, "b", 0, func(e *store.JournalEntry) { goes("", store.Pending)(e); e.Slot = nil }),
				entryAt(4, "b", 0, func(e *store.JournalEntry) { goes(store.Checking, store.Running)(e); e.Slot = nil }),
				entryAt(5, "b", 0, func(e *store.JournalEntry) { goes(store.Running, store.Deleting)(e); e.Slot = nil }),
			}, "",
		},
		"the failed one goes on as its replacement comes": {
			append([]*store.JournalEntry{
				entryAt(1, "a", 0, fails(store.Lost, "", "b")), entryAt(2, "a", 0, verdict(store.Suspect)),
				entryAt(3, "a", 0, goes(store.Running, store.Draining)), entryAt(4, "a", 0, goes(store.Draining, store.Deleting)),
			}, coming("b", 0, 5)...),
			"1 detect 1-1, 1 decide 1-1, 1 create 1-6, 1 boot 6-7, 1 healthy 7-8, 1 heal 1-8",
		},
		"a restart is judged again before it is over": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, verdict(store.Unhealthy)), entryAt(2, "a", 0, fails(store.Unhealthy, store.Stopping, "")),
				entryAt(3, "a", 0, verdict(store.Live)), entryAt(4, "a", 0, goes(store.Stopping, store.Running)),
			}, "1 detect 1-1, 1 decide 1-2, 1 healthy 2-4, 1 heal 1-4",
		},
		"unhealthy first, and dead later: the trouble began with the first": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, verdict(store.Unhealthy)), entryAt(4, "a", 0, verdict(store.Dead)),
				entryAt(6, "a", 0, fails(store.Dead, store.Deleting, "b")), entryAt(7, "b", 0, goes(store.Checking, store.Running)),
			}, "1 detect 1-1, 1 decide 1-6, 1 healthy 6-7, 1 heal 1-7",
		},
		"what is no decision": {
			[]*store.JournalEntry{
				entryAt(1, "a", 0, func(e *store.JournalEntry) { e.Claimed, e.Verdict, e.Replacement = true, store.Dead, "b" }),
				entryAt(2, "a", 0, func(e *store.JournalEntry) { e.Kind, e.Replacement = store.EntryRefusal, "b" }),
				entryAt(3, "a", 0, func(e *store.JournalEntry) { e.Instance, e.Verdict, e.Replacement = "", store.Dead, "b" }),
				entryAt(4, "a", 0, fails(store.Doomed, store.Draining, "b")),
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, again, traces := newHealings("5e4d"), newHealings("5e4d"), map[string]int{}
			var lines []string
			for _, e := range c.journal {
				spans := found.follow(e)
				lines = append(lines, render(spans, begin, traces)...)
				for i, s := range again.follow(e) {
					if s.id != spans[i].id || s.trace != spans[i].trace || !s.id.IsValid() || !s.trace.IsValid() {
						t.Errorf("%s has another ID for another leader", s.name)
					}
				}
			}
			if got := strings.Join(lines, ", "); got != c.want {
				t.Errorf("the spans are\n%s, want\n%s", got, c.want)
			}
			if len(found.open) > 0 && strings.Contains(c.want, "heal") {
				t.Errorf("%d are still open", len(found.open))
			}
		})
	}
}

// Memory is bounded for any journal, and freed when everything has ended.
//
// proves OBS-3
func TestHealingsRememberNoMoreThanTheyMay(t *testing.T) {
	h := newHealings("5e4d")
	for i := range maxOpen + 10 {
		h.follow(entryAt(1, fmt.Sprint("s", i), i, verdict(store.Suspect)))
		h.follow(entryAt(1, fmt.Sprint("o", i), i, fails(store.Dead, store.Deleting, fmt.Sprint("r", i))))
		h.follow(entryAt(1, fmt.Sprint("l", i), i, fails(store.Dead, store.Deleting, "")))
	}
	if len(h.signs) > maxOpen || len(h.open) > maxOpen+1 || len(h.left) > maxOpen {
		t.Errorf("%d, %d and %d are remembered", len(h.signs), len(h.open), len(h.left))
	}
	for i := range maxOpen + 10 {
		h.follow(entryAt(2, fmt.Sprint("r", i), i, goes(store.Checking, store.Running)))
	}
	if len(h.open) != 0 || len(h.runs) != maxOpen {
		t.Errorf("%d are open, %d run", len(h.open), len(h.runs))
	}
}

// A slot that fails repeatedly costs no more memory with each attempt.
//
// proves OBS-3
func TestFailedAttemptsAreForgotten(t *testing.T) {
	h := newHealings("5e4d")
	for i := range 50 {
		h.follow(entryAt(i, fmt.Sprint("a", i), 0, verdict(store.Dead)))
		h.follow(entryAt(i, fmt.Sprint("a", i), 0, fails(store.Dead, store.Deleting, fmt.Sprint("a", i+1))))
		if len(h.open) > maxKnown {
			t.Fatalf("after %d attempts %d instances are remembered", i+1, len(h.open))
		}
	}
	if spans := h.follow(entryAt(51, "a50", 0, goes(store.Checking, store.Running))); len(spans) != 2 || len(h.open) != 0 {
		t.Errorf("the end gives %d spans, and %d instances are still remembered", len(spans), len(h.open))
	}
}

// The running instance of a place is known, however many places there are, until it leaves.
//
// proves OBS-3
func TestWhatRunsIsKnownInEachPlace(t *testing.T) {
	h := newHealings("5e4d")
	for i := range maxOpen {
		h.follow(entryAt(1, fmt.Sprint("a", i), i, goes(store.Checking, store.Running)))
	}
	h.follow(entryAt(2, "b7", 7, goes(store.Checking, store.Running)))
	if got := h.runs[place{"web", 7}]; got != "b7" {
		t.Errorf("after %d places %s runs", maxOpen, got)
	}
	h.follow(entryAt(3, "a7", 7, goes(store.Running, store.Deleting)))
	h.follow(entryAt(3, "a8", 8, goes(store.Running, store.Deleting)))
	h.follow(entryAt(4, "z", maxOpen, goes(store.Checking, store.Running)))
	_, eighth := h.runs[place{"web", 8}]
	if h.runs[place{"web", 7}] != "b7" || eighth || h.runs[place{"web", maxOpen}] != "z" {
		t.Errorf("%s and %s run, and what has gone: %t", h.runs[place{"web", 7}], h.runs[place{"web", maxOpen}], eighth)
	}
}

// The root of a trace says what was healed, where and by what; every other span is below it. A slot
// of another group with the same number is another slot.
//
// proves OBS-3
func TestTheRootSaysWhatWasHealed(t *testing.T) {
	other := func(change func(*store.JournalEntry)) func(*store.JournalEntry) {
		return func(e *store.JournalEntry) { change(e); e.Group = "db" }
	}
	for name, c := range map[string]struct {
		journal []*store.JournalEntry
		want    map[string]string // the root's own fields; nil: there is no root
	}{
		"replaced": {[]*store.JournalEntry{
			entryAt(1, "a", 7, fails(store.Dead, store.Deleting, "b")), entryAt(2, "b", 7, goes(store.Checking, store.Running)),
		}, map[string]string{fieldVerdict: "dead", fieldGroup: "web", fieldSlot: "7", fieldReplacement: "b"}},
		"restarted": {[]*store.JournalEntry{
			entryAt(1, "a", 7, fails(store.Unhealthy, store.Stopping, "")),
			entryAt(2, "a", 7, goes(store.Checking, store.Running)),
		}, map[string]string{fieldVerdict: "unhealthy", fieldGroup: "web", fieldSlot: "7", fieldReplacement: ""}},
		"back before its replacement": {[]*store.JournalEntry{
			entryAt(1, "a", 7, fails(store.Lost, "", "b")), entryAt(2, "a", 7, verdict(store.Live)),
		}, map[string]string{fieldVerdict: "lost", fieldGroup: "web", fieldSlot: "7", fieldReplacement: ""}},
		"filled in another group": {[]*store.JournalEntry{
			entryAt(1, "a", 7, fails(store.Dead, store.Deleting, "")), entryAt(2, "b", 7, other(goes("", store.Pending))),
			entryAt(3, "b", 7, other(goes(store.Checking, store.Running))),
		}, nil},
		"its group ends": {[]*store.JournalEntry{
			entryAt(1, "a", 7, func(e *store.JournalEntry) {
				fails(store.Dead, store.Deleting, "")(e)
				e.Cause.Kind = store.CauseGroupEnds
			}),
			entryAt(2, "b", 7, goes("", store.Pending)), entryAt(3, "b", 7, goes(store.Checking, store.Running)),
		}, nil},
	} {
		found := newHealings("5e4d")
		var spans []span
		for _, e := range c.journal {
			spans = append(spans, found.follow(e)...)
		}
		if c.want == nil {
			if len(spans) > 0 {
				t.Errorf("%s: %+v", name, spans)
			}
			continue
		}
		if len(spans) == 0 {
			t.Errorf("%s: there are no spans", name)
			continue
		}
		root := spans[len(spans)-1]
		if root.name != stepHeal || root.parent.IsValid() {
			t.Errorf("%s: the root is %+v", name, root)
		}
		for _, s := range spans[:len(spans)-1] {
			if s.parent != root.id || s.trace != root.trace || s.id == root.id {
				t.Errorf("%s: %s is not below the root", name, s.name)
			}
		}
		said := map[string]string{}
		for _, f := range root.fields {
			said[string(f.Key)] = f.Value.String()
		}
		for field, want := range c.want {
			if said[field] != want {
				t.Errorf("%s: %s is %q, want %q", name, field, said[field], want)
			}
		}
	}
}
