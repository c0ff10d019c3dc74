package evidence_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// spoil puts bytes that cannot be read in the place of a record.
func (w *world) spoil(key string) store.Revision {
	return w.event(store.Event{KV: store.KV{Key: key, Value: []byte("garbage")}})
}

// list has the provider list machines that run, given as ID and group.
func (w *world) list(machines ...string) {
	var all []provider.Machine
	for i := 0; i < len(machines); i += 2 {
		all = append(all, provider.Machine{Instance: machines[i], Group: machines[i+1], State: provider.StateRunning})
	}
	w.evidence.ListedBy("mem", w.now, all, w.content)
}

// stray has an agent without a record say hello, with the claim that a coordinator sealed for it.
func (w *world) stray(id, group string, slot int) {
	w.put(keys.Stray(id), store.Stray{
		Schema: store.Schema, Instance: id,
		Claim: &store.Claim{Group: group, Slot: slot, Managed: slot >= 0},
	})
}

// damage returns the one damaged record of the group web.
func (w *world) damage() *store.Damaged {
	w.t.Helper()
	switch list := w.group("web").Damaged; len(list) {
	case 0:
		return nil
	case 1:
		return &list[0]
	default:
		w.t.Fatalf("damaged are %+v", list)
		return nil
	}
}

// What is damage and what is not, and what is told of each: whose it is, in which slot, since when,
// and at which revisions.
//
// proves SAFE-15, SAFE-16, REC-8
func TestWhatIsDamage(t *testing.T) {
	slot := func(n int) *int { return &n }
	change := func(w *world, id string, edit func(*store.Instance)) {
		rec := w.content.Instances[id].Record
		edit(&rec)
		w.put(keys.Instance(id), rec)
	}
	lost, unreadable := store.DamageLost, store.DamageUnreadable
	for name, test := range map[string]struct {
		do   func(w *world) // to a group whose slots 0 and 3 are filled
		want *store.Damaged // but for Since, Seen and Why
		last string         // the instance whose revision before is Last
	}{
		"nothing happened": {func(*world) {}, nil, ""},
		"a record is deleted": {
			func(w *world) { w.remove(keys.Instance("two")) },
			&store.Damaged{Instance: "two", Slot: slot(3), What: lost}, "two",
		},
		"a record is deleted on purpose": {func(w *world) {
			w.put(keys.Gone(keys.Instance("two")),
				store.Gone{
					Schema: store.Schema, Instance: "two", Group: "web",
					Revision: w.content.Instances["two"].Modified,
				})
			w.remove(keys.Instance("two"))
		}, nil, ""},
		"a record is deleted, and the note came a moment later": {func(w *world) {
			rev := w.content.Instances["two"].Modified
			w.remove(keys.Instance("two"))
			w.put(keys.Gone(keys.Instance("two")),
				store.Gone{Schema: store.Schema, Instance: "two", Group: "web", Revision: rev})
		}, nil, ""},
		"an earlier record of it was deleted on purpose": {func(w *world) {
			w.put(keys.Gone(keys.Instance("two")),
				store.Gone{Schema: store.Schema, Instance: "two", Group: "web", Revision: 1})
			w.remove(keys.Instance("two"))
		}, &store.Damaged{Instance: "two", Slot: slot(3), What: lost}, "two"},
		"a record is deleted and put back": {func(w *world) {
			rec := w.content.Instances["two"].Record
			w.remove(keys.Instance("two"))
			w.group("web")
			w.put(keys.Instance("two"), rec)
		}, nil, ""},
		"the record of one on demand is deleted": {func(w *world) {
			change(w, "two", func(r *store.Instance) { r.Managed, r.Slot = false, -1 })
			w.remove(keys.Instance("two"))
		}, &store.Damaged{Instance: "two", OnDemand: true, What: lost}, "two"},
		"a record becomes garbage": {
			func(w *world) { w.spoil(keys.Instance("two")) },
			&store.Damaged{Instance: "two", Slot: slot(3), What: unreadable}, "two",
		},
		"a record becomes garbage and is put back": {func(w *world) {
			rec := w.content.Instances["two"].Record
			w.spoil(keys.Instance("two"))
			w.group("web")
			w.put(keys.Instance("two"), rec)
		}, nil, ""},
		"garbage was always in one on demand": {
			func(w *world) { w.spoil(keys.Instance("web-x-bbbbbb")) },
			&store.Damaged{Instance: "web-x-bbbbbb", OnDemand: true, What: unreadable}, "",
		},
		"garbage was always in one with a slot": {
			func(w *world) { w.spoil(keys.Instance("web-0-bbbbbb")) },
			&store.Damaged{Instance: "web-0-bbbbbb", Slot: slot(0), What: unreadable}, "",
		},
		"garbage in another group's": {func(w *world) { w.spoil(keys.Instance("db-0-bbbbbb")) }, nil, ""},
		"garbage in one of no group": {func(w *world) { w.spoil(keys.Instance("nameless")) }, nil, ""},
		"garbage in a report":        {func(w *world) { w.spoil(keys.Report("two")) }, nil, ""},
		"a machine without a record": {
			func(w *world) { w.list("web-5-bbbbbb", "web") },
			&store.Damaged{Instance: "web-5-bbbbbb", Slot: slot(5), What: lost}, "",
		},
		"a machine of slot 0": {func(w *world) {
			change(w, "one", func(r *store.Instance) { r.Slot = 1 })
			w.list("web-0-bbbbbb", "web")
		}, &store.Damaged{Instance: "web-0-bbbbbb", Slot: slot(0), What: lost}, ""},
		"a machine of another group":     {func(w *world) { w.list("db-5-bbbbbb", "db") }, nil, ""},
		"a machine with two groups":      {func(w *world) { w.list("db-5-bbbbbb", "web") }, nil, ""},
		"a machine without a slot":       {func(w *world) { w.list("nameless", "web") }, nil, ""},
		"a machine on demand":            {func(w *world) { w.list("web-x-bbbbbb", "web") }, nil, ""},
		"a machine whose slot is filled": {func(w *world) { w.list("web-3-bbbbbb", "web") }, nil, ""},
		"a machine that is no longer listed": {
			func(w *world) { w.list("web-5-bbbbbb", "web"); w.group("web"); w.list() },
			nil, "",
		},
		"a machine that gets a record": {func(w *world) {
			w.list("web-5-bbbbbb", "web")
			w.group("web")
			w.run("web", "web-5-bbbbbb")
		}, nil, ""},
		"a machine that was deleted on purpose": {func(w *world) {
			w.put(keys.Gone(keys.Instance("web-5-bbbbbb")),
				store.Gone{Schema: store.Schema, Instance: "web-5-bbbbbb", Group: "web"})
			w.list("web-5-bbbbbb", "web")
		}, nil, ""},
		"a machine whose record is garbage": {
			func(w *world) { w.spoil(keys.Instance("web-5-bbbbbb")); w.list("web-5-bbbbbb", "web") },
			&store.Damaged{Instance: "web-5-bbbbbb", Slot: slot(5), What: unreadable}, "",
		},
		"a machine in the slot of one that is being deleted": {func(w *world) {
			change(w, "two", func(r *store.Instance) { r.Phase = store.Deleting })
			w.list("web-3-bbbbbb", "web")
		}, &store.Damaged{Instance: "web-3-bbbbbb", Slot: slot(3), What: lost}, ""},
		"a machine in the slot that one on demand seems to have": {func(w *world) {
			change(w, "two", func(r *store.Instance) { r.Managed = false })
			w.list("web-3-bbbbbb", "web")
		}, &store.Damaged{Instance: "web-3-bbbbbb", Slot: slot(3), What: lost}, ""},
		"an agent with a claim": {
			func(w *world) { w.stray("odd", "web", 7) },
			&store.Damaged{Instance: "odd", Slot: slot(7), What: lost}, "",
		},
		"an agent with slot 0": {func(w *world) {
			change(w, "one", func(r *store.Instance) { r.Slot = 1 })
			w.stray("odd", "web", 0)
		}, &store.Damaged{Instance: "odd", Slot: slot(0), What: lost}, ""},
		"an agent whose record is being deleted": {func(w *world) {
			change(w, "two", func(r *store.Instance) { r.Phase = store.Deleting })
			w.stray("two", "web", 3)
		}, nil, ""},
		"an agent with a claim that goes": {func(w *world) {
			w.stray("odd", "web", 7)
			w.group("web")
			w.remove(keys.Stray("odd"))
		}, nil, ""},
		"an agent whose claim says otherwise": {
			func(w *world) { w.stray("web-5-bbbbbb", "web", 7) },
			&store.Damaged{Instance: "web-5-bbbbbb", Slot: slot(7), What: lost}, "",
		},
		"an agent of another group": {func(w *world) {
			w.stray("web-5-bbbbbb", "db", 7)
			w.list("web-5-bbbbbb", "web")
		}, nil, ""},
		"an agent that was on demand": {func(w *world) {
			w.stray("web-5-bbbbbb", "web", -1)
			w.list("web-5-bbbbbb", "web")
		}, nil, ""},
		"an agent whose slot is filled": {func(w *world) { w.stray("odd", "web", 3) }, nil, ""},
		"an agent without a claim": {func(w *world) {
			w.put(keys.Stray("web-5-bbbbbb"), store.Stray{Schema: store.Schema, Instance: "web-5-bbbbbb"})
		}, nil, ""},
		"an agent with a claim and its machine": {
			func(w *world) { w.stray("odd", "web", 7); w.list("odd", "") },
			&store.Damaged{Instance: "odd", Slot: slot(7), What: lost}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(keys.Group("web"), spec("web"))
			for i, id := range []string{"one", "two"} {
				rec := w.run("web", id)
				rec.Slot = 3 * i
				w.put(keys.Instance(id), rec)
			}
			records := 2
			// the count is another test's
			w.put(keys.Status("web"), store.Status{
				Schema: store.Schema, Group: "web", Records: &records,
				Counted: 1 << 40,
			})
			w.put(keys.Shard(), store.Shard{
				Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings(),
				Reviewed: &store.Reviewed{Seen: 1 << 41},
			})
			w.lead()
			w.takeAll()
			before := w.content.Instances[test.last].Modified
			w.pass(time.Minute)
			test.do(w)
			seen := w.content.Revision
			// the revision grows before anyone looks
			w.put(keys.Replica("r"), store.Replica{Schema: store.Schema, ID: "r"})
			if test.want != nil && test.want.What == lost && test.last == "" {
				seen = w.content.Revision // there is no key that could tell
			}
			if m, lost := w.content.Missing[keys.Instance(test.last)]; lost {
				before = max(before, m.Last) // it was changed first
			}
			// each group's is known, whichever is planned
			all := w.evidence.Snapshot(w.content, []string{""}).Damaged
			if dirty := w.takeAll(); test.want != nil &&
				(!slices.Contains(dirty, "web") || !slices.Contains(dirty, "")) {
				t.Errorf("to be planned are %q", dirty)
			}
			got := w.damage()
			if (got == nil) != (test.want == nil) {
				t.Fatalf("damaged is %+v, want %+v", got, test.want)
			}
			if inAll := slices.ContainsFunc(all,
				func(d store.Damaged) bool {
					return got != nil && d.Key == got.Key &&
						d.Seen == seen
				}); inAll != (got != nil) {
				t.Errorf("of the shard are damaged %+v", all)
			}
			if got == nil {
				return
			}
			if got.Key != keys.Instance(test.want.Instance) || got.Instance != test.want.Instance ||
				got.What != test.want.What || got.OnDemand != test.want.OnDemand ||
				(got.Slot == nil) != (test.want.Slot == nil) || got.Slot != nil && *got.Slot != *test.want.Slot {
				t.Errorf("damaged is %+v, want %+v", got, test.want)
			}
			if reason.Short(got.Cause) == "" || !got.Since.Equal(w.now) || got.Seen != seen || got.Last != before {
				t.Errorf("it is damaged since %s, seen at revision %d, last read at %d, because %+v; want %s, %d, %d",
					got.Since, got.Seen, got.Last, got.Cause, w.now, seen, before)
			}
			w.pass(time.Minute)
			w.put(keys.Replica("r"), store.Replica{Schema: store.Schema, ID: "r"}) // the revision grows
			if later := w.damage(); later == nil || later.Seen != got.Seen {
				t.Errorf("later it was seen first at revision %d, want %d", later.Seen, got.Seen)
			}
			w.through()
			w.group("web")
			if dirty := w.takeAll(); len(dirty) != 0 {
				t.Errorf("nothing is new, and planned are %q", dirty)
			}
		})
	}
}

// A new leader takes up the damage that an earlier one noted, with its times, for as long as
// nothing says that it is over. What a machine or an agent alone told of is over once all providers
// were listed and neither is there.
//
// proves SAFE-15
func TestDamageThatAnEarlierLeaderNoted(t *testing.T) {
	noted := store.Damaged{
		Key: keys.Instance("web-5-bbbbbb"), Instance: "web-5-bbbbbb", What: store.DamageLost,
		Since: epoch.Add(-time.Hour), Seen: 2, Last: 0,
	}
	remembered := noted
	remembered.Last = 2
	note := func(rev store.Revision) func(*world) {
		return func(w *world) {
			w.put(keys.Gone(noted.Key), store.Gone{
				Schema: store.Schema, Instance: noted.Instance, Group: "web",
				Revision: rev,
			})
		}
	}
	for name, test := range map[string]struct {
		noted store.Damaged
		do    func(w *world)
		still bool
	}{
		"nothing was listed yet":                  {noted, func(*world) {}, true},
		"its machine is not listed":               {noted, func(w *world) { w.list() }, false},
		"its machine is listed":                   {noted, func(w *world) { w.list("web-5-bbbbbb", "web") }, true},
		"its machine is listed without its group": {noted, func(w *world) { w.list("web-5-bbbbbb", "") }, true},
		"its agent is there": {noted, func(w *world) {
			w.put(keys.Stray("web-5-bbbbbb"), store.Stray{Schema: store.Schema, Instance: "web-5-bbbbbb"})
			w.list()
		}, true},
		"it had a record, and is not listed": {remembered, func(w *world) { w.list() }, true},
		"it has a record again": {
			remembered, func(w *world) { w.run("web", "web-5-bbbbbb") },
			false,
		},
		"a note says that it was deleted":            {remembered, note(2), false},
		"a note says that one before it was deleted": {remembered, note(1), true},
		"a note says so, and its machine is there yet": {
			noted,
			func(w *world) { note(0)(w); w.list("web-5-bbbbbb", "web") }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(keys.Group("web"), spec("web"))
			w.put(keys.Status("web"), store.Status{
				Schema: store.Schema, Group: "web",
				Damaged: []store.Damaged{test.noted},
			})
			w.lead()
			w.group("web")
			w.evidence.Snapshot(w.content, []string{""})
			test.do(w)
			if all := w.evidence.Snapshot(w.content, []string{""}).Damaged; len(all) == 1 != test.still {
				t.Errorf("of the shard are damaged %+v", all)
			}
			switch got := w.damage(); {
			case (got != nil) != test.still:
				t.Errorf("damaged is %+v", got)
			case name == "its machine is listed" && (got.Slot == nil || *got.Slot != 5):
				t.Errorf("its slot is known by now: %+v", got)
			case got != nil && (!got.Since.Equal(test.noted.Since) || got.Seen != 2):
				t.Errorf("it is damaged since %s, seen at revision %d", got.Since, got.Seen)
			}
		})
	}
	t.Run("it is damaged in another way now", func(t *testing.T) {
		w := newWorld(t)
		w.put(keys.Status("web"), store.Status{
			Schema: store.Schema, Group: "web",
			Damaged: []store.Damaged{remembered},
		})
		rev := w.spoil(noted.Key)
		w.lead()
		if got := w.damage(); got == nil || got.What != store.DamageUnreadable || !got.Since.Equal(w.now) ||
			got.Seen != rev {
			t.Errorf("damaged is %+v", got)
		}
	})
}

// note puts a gone note of an instance, at the revision before (1), of (2) or after (3) the status
// was counted.
func (w *world) note(id string, when int) {
	kv := store.KV{
		Key:   keys.Gone(keys.Instance(id)),
		Value: store.Encode(store.Gone{Schema: store.Schema, Instance: id, Group: "web"}),
	}
	kv.Modified = w.content.Status["web"].Record.Counted + store.Revision(when-2)
	change, _ := w.content.Apply(keys, store.Event{KV: kv})
	w.evidence.Changed(w.content, []cache.Change{change})
}

// review has a hold released by an operator who saw what there was one revision before (1), at (2)
// or after (3) the status was counted.
func (w *world) review(when int) {
	defer w.group("web") // a change of the shard has all groups planned
	seen := w.content.Status["web"].Record.Counted + store.Revision(when-2)
	w.put(keys.Shard(), store.Shard{
		Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings(),
		Reviewed: &store.Reviewed{Seen: seen},
	})
}

// Whatever happens, and whichever groups are planned meanwhile, what is known of damage is what a
// look at everything shows.
//
// proves SAFE-15
func TestDamageIsKnownWhoeverIsPlanned(t *testing.T) {
	happens := map[string]func(w *world){
		"a record is lost":   func(w *world) { w.remove(keys.Instance("web-0-bbbbbb")) },
		"a record is torn":   func(w *world) { w.spoil(keys.Instance("web-0-bbbbbb")) },
		"a stranger is torn": func(w *world) { w.spoil(keys.Instance("db-9-bbbbbb")) },
		"a machine is listed": func(w *world) {
			w.list("db-7-bbbbbb", "db", "web-0-bbbbbb", "web", "web-1-bbbbbb", "web")
		},
		"no machine is listed": func(w *world) { w.list() },
		"an agent is there":    func(w *world) { w.stray("odd", "db", 4) },
		"an agent goes": func(w *world) {
			w.stray("even", "db", 5)
			w.group("web")
			w.remove(keys.Stray("even"))
		},
		"a group is dropped": func(w *world) { w.remove(keys.Status("web")) },
	}
	names := []string{
		"a record is lost", "a record is torn", "a stranger is torn", "a machine is listed",
		"no machine is listed", "an agent is there", "an agent goes", "a group is dropped",
	}
	for i := range len(names) * len(names) * len(names) {
		order := []string{names[i%len(names)], names[i/len(names)%len(names)], names[i/len(names)/len(names)]}
		w := newWorld(t)
		w.recorded(2, "web-0-bbbbbb", "web-1-bbbbbb")
		w.lead()
		w.evidence.Snapshot(w.content, []string{""})
		for _, what := range order {
			if what == "a record is lost" && !w.content.Instances["web-0-bbbbbb"].Present() ||
				what == "a group is dropped" && !w.content.Status["web"].Present() {
				continue
			}
			happens[what](w)
			w.evidence.Snapshot(w.content, []string{""})
		}
		got := told(t, w.evidence.Snapshot(w.content, []string{""}).Damaged)
		w.evidence.Listed(w.content)
		want := told(t, w.evidence.Snapshot(w.content, []string{"", "db", "web"}).Damaged)
		if len(got) != len(want) {
			t.Fatalf("after %q damaged are %v, and %v when all is looked at", order, got, want)
		}
		for key, slot := range want {
			if at, there := got[key]; !there || at != slot {
				t.Fatalf("after %q damaged are %v, and %v when all is looked at", order, got, want)
			}
		}
	}
}

// A new leader knows of all damage before any group is planned, in order, also of groups of which
// there is nothing else.
//
// proves SAFE-15
func TestANewLeaderKnowsAllDamage(t *testing.T) {
	w := newWorld(t)
	w.recorded(3, "web-0-bbbbbb", "web-1-bbbbbb")
	w.put(keys.Group("db"), spec("db"))
	w.spoil(keys.Instance("db-4-bbbbbb"))
	w.spoil(keys.Instance("db-3-bbbbbb"))
	w.stray("odd", "gone", 2)
	w.put(keys.Stray("nameless"), store.Stray{Schema: store.Schema, Instance: "nameless"})
	w.put(keys.Stray("untagged"), store.Stray{Schema: store.Schema, Instance: "untagged"})
	w.content.Missing[keys.Instance("lost")] = cache.Missing{
		Kind: store.KindInstances, Name: "lost", Last: 2, At: 3,
		Instance: &store.Instance{Group: "missed", Slot: 1, Managed: true},
	}
	w.content.Missing[keys.Status("old")] = cache.Missing{Kind: store.KindStatus, Name: "old", Last: 2, At: 3}
	for range 20 { // whatever the order of a map
		w.lead()
		var got []string
		for _, d := range w.evidence.Snapshot(w.content, []string{""}).Damaged {
			got = append(got, strings.TrimPrefix(d.Key, keys.Of(store.KindInstances)))
		}
		if want := []string{"(web, unknown 1)", "db-3-bbbbbb", "db-4-bbbbbb", "lost", "odd"}; !slices.Equal(got, want) {
			t.Fatalf("damaged are %q, want %q", got, want)
		}
	}
	w.through()
	w.list("web-7-bbbbbb", "tagged", "tagged-1-bbbbbb", "tagged")
	if all := told(t, w.evidence.Snapshot(w.content, []string{""}).Damaged); all["tagged-1-bbbbbb lost"] != 1 {
		t.Errorf("a machine of an unknown group is listed, and damaged are %v", all)
	}
	if dirty := w.takeAll(); !slices.Contains(dirty, "tagged") || !slices.Contains(dirty, "") {
		t.Errorf("to be planned are %q", dirty)
	}
}

// A record that cannot be read fills no slot: an agent without a record that had the slot as well
// is damage, too.
//
// proves SAFE-15
func TestAnUnreadableRecordFillsNoSlot(t *testing.T) {
	w := newWorld(t)
	w.recorded(2, "web-0-bbbbbb", "web-1-bbbbbb")
	w.lead()
	w.spoil(keys.Instance("web-1-bbbbbb"))
	w.stray("odd", "web", 1)
	if got := told(t, w.group("web").Damaged); len(got) != 2 || got["odd lost"] != 1 ||
		got["web-1-bbbbbb unreadable"] != 1 {
		t.Errorf("damaged are %v", got)
	}
}
