package evidence_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// through takes turns until nothing is left to be planned.
func (w *world) through() {
	for range 2 {
		w.takeAll()
	}
}

// Each change has planned what it concerns, and nothing else.
//
// proves REC-1, REC-16
func TestWhatAChangeHasPlanned(t *testing.T) {
	request := func(r store.Request) func(*world) {
		return func(w *world) { r.Schema = store.Schema; w.put(keys.Request("new"), r) }
	}
	for name, test := range map[string]struct {
		do   func(w *world)
		want []string
	}{
		"an order to a group": {
			request(store.Request{Kind: store.RequestRetry, Group: "web"}),
			[]string{"web"},
		},
		"an order to an instance": {
			request(store.Request{Kind: store.RequestReplace, Instance: "web-0"}),
			[]string{"web"},
		},
		"an order to the shard": {
			request(store.Request{Kind: store.RequestEvacuate, Zone: "a"}),
			[]string{""},
		},
		"an order for an unknown instance": {request(store.Request{
			Kind:     store.RequestReplace,
			Instance: "unknown",
		}), []string{""}},
		"an order to adopt an extra": {
			request(store.Request{Kind: store.RequestAdopt, Instance: "extra"}),
			[]string{"", "web"},
		},
		"an order to replace an extra": {
			request(store.Request{Kind: store.RequestReplace, Instance: "extra"}),
			[]string{""},
		},
		"an instance with an order changes": {
			func(w *world) { w.report("ordered", "boot", false) },
			[]string{"web"},
		},
		"an instance with an order goes": {
			func(w *world) { w.remove(keys.Instance("ordered")) },
			[]string{"", "web"},
		},
		"an instance of another group goes": {func(w *world) { w.remove(keys.Instance("db-0")) }, []string{"db"}},
		"the spec changes": {
			func(w *world) { w.put(keys.Group("db"), spec("db")) },
			[]string{"db"},
		},
		"the spec of one with extras changes": {
			func(w *world) { w.put(keys.Group("web"), spec("web")) },
			[]string{"", "web"},
		},
		"the file of one with extras changes": {
			func(w *world) { w.put(keys.Static("web"), spec("web")) },
			[]string{"", "web"},
		},
		"the last of a group with an order": {
			func(w *world) { w.remove(keys.Group("gone")) },
			[]string{"", "gone"},
		},
		"the file of a group with an order": {
			func(w *world) { w.put(keys.Static("later"), spec("later")) },
			[]string{"later"},
		},
		"the status of a group with an order": {func(w *world) {
			w.put(keys.Status("later"), store.Status{Schema: store.Schema, Group: "later"})
		}, []string{"later"}},
		"the instance of a group with an order": {func(w *world) { w.run("later", "later-0") }, []string{"later"}},
		"an agent without a record": {func(w *world) {
			w.put(keys.Stray("extra"), store.Stray{Schema: store.Schema, Instance: "extra"})
		}, []string{""}},
		"an agent with a claim": {func(w *world) { w.stray("odd", "web", 0) }, []string{"", "web"}},
		"a slot": {func(w *world) {
			w.put(keys.Slot("web", 3), store.Slot{Schema: store.Schema})
		}, []string{"web"}},
		"a turn": {func(w *world) {
			w.event(store.Event{KV: store.KV{Key: keys.Turn("web"), Value: []byte(`{}`)}})
		}, nil},
		"the extra is listed still": {func(w *world) {
			w.list("web-0", "web", "ordered", "web", "db-0", "db", "extra", "web")
		}, []string{""}},
		"the shard's settings change": {func(w *world) {
			w.put(keys.Shard(), store.Shard{Schema: store.Schema, ID: "s", Settings: store.DefaultShardSettings()})
		}, []string{"", "db", "gone", "web"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, group := range []string{"web", "db", "gone"} {
				w.put(keys.Group(group), spec(group))
			}
			w.run("web", "web-0")
			w.run("web", "ordered")
			w.run("db", "db-0")
			w.put(keys.Request("1"), store.Request{
				Schema: store.Schema, Kind: store.RequestReplace,
				Instance: "ordered",
			})
			w.put(keys.Request("2"), store.Request{Schema: store.Schema, Kind: store.RequestRetry, Group: "gone"})
			w.put(keys.Request("3"), store.Request{Schema: store.Schema, Kind: store.RequestRetry, Group: "later"})
			w.lead()
			w.list("web-0", "web", "ordered", "web", "db-0", "db", "extra", "web")
			w.through()
			w.evidence.Snapshot(w.content, []string{"", "db", "gone", "web"})
			w.through()
			test.do(w)
			got := slices.Compact(slices.Sorted(slices.Values(w.takeAll())))
			if !slices.Equal(got, test.want) {
				t.Errorf("planned are %q, want %q", got, test.want)
			}
		})
	}
}

// A group of which there is anything has the orders to it: a spec, a file's spec, a status or an
// instance will do.
//
// proves REC-16
func TestWhichGroupsThereAre(t *testing.T) {
	for name, do := range map[string]func(w *world){
		"a spec":        func(w *world) { w.put(keys.Group("web"), spec("web")) },
		"a file's spec": func(w *world) { w.put(keys.Static("web"), spec("web")) },
		"a status": func(w *world) {
			w.put(keys.Status("web"), store.Status{Schema: store.Schema, Group: "web"})
		},
		"an instance":    func(w *world) { w.run("web", "web-0") },
		"nothing at all": func(*world) {},
	} {
		w := newWorld(t)
		do(w)
		w.put(keys.Request("r"), store.Request{Schema: store.Schema, Kind: store.RequestRetry, Group: "web"})
		w.lead()
		s := w.evidence.Snapshot(w.content, []string{"", "web"})
		if there := name != "nothing at all"; len(s.Groups[0].Requests) == 1 != there || len(s.Lost) == 0 != there {
			t.Errorf("%s: the group has %d requests, lost are %d", name, len(s.Groups[0].Requests), len(s.Lost))
		}
	}
}

// An order to adopt a machine waits for as long as a provider may still show it. Then it is lost.
//
// proves REC-8, REC-16
func TestAnOrderToAdoptWaitsForTheFirstList(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("web"), spec("web"))
	w.put(keys.Request("r"), store.Request{
		Schema: store.Schema, Kind: store.RequestAdopt, Instance: "extra",
		Group: "web",
	})
	w.lead()
	lost := func() int { return len(w.evidence.Snapshot(w.content, []string{"", "web"}).Lost) }
	if lost() != 0 {
		t.Error("it is lost before anything was listed")
	}
	w.through()
	w.list()
	if got := w.takeAll(); !slices.Contains(got, "") || lost() != 1 {
		t.Errorf("nothing is listed: planned are %q, lost are %d", got, lost())
	}
	w.list("extra", "web")
	if got := w.takeAll(); !slices.Contains(got, "web") || lost() != 0 {
		t.Errorf("it is listed: planned are %q, lost are %d", got, lost())
	}
	w.through()
	w.list()
	if got := w.takeAll(); !slices.Contains(got, "") || lost() != 1 {
		t.Errorf("it is no longer listed: planned are %q, lost are %d", got, lost())
	}
}

// A group is shown the machines with its tag that it is ordered to adopt, with all that is known of
// them. One whose record cannot be read is none.
//
// proves REC-8
func TestMachinesToBeAdopted(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("web"), spec("web"))
	w.put(keys.Request("1"), store.Request{Schema: store.Schema, Kind: store.RequestAdopt, Instance: "claims"})
	w.put(keys.Request("2"), store.Request{Schema: store.Schema, Kind: store.RequestReplace, Instance: "replaced"})
	w.put(keys.Request("3"), store.Request{Schema: store.Schema, Kind: store.RequestAdopt, Instance: "torn"})
	w.put(keys.Request("4"), store.Request{Schema: store.Schema, Kind: store.RequestAdopt, Instance: "nowhere"})
	w.put(keys.Request("5"), store.Request{Schema: store.Schema, Kind: store.RequestReplace, Instance: "claims"})
	w.lead()
	w.stray("claims", "web", 4)
	w.evidence.ListedBy("mem", w.now, []provider.Machine{
		{Instance: "claims"},
		{Instance: "replaced", Group: "web"},
		{Instance: "torn", Group: "web"},
		{Instance: "nowhere", Group: "nowhere"},
	}, w.content)
	w.spoil(keys.Instance("torn"))
	s := w.evidence.Snapshot(w.content, []string{"", "nowhere", "web"})
	if g := s.Groups[0]; len(g.Extras)+len(g.Requests) != 0 {
		t.Errorf("a group of which there is nothing is shown %+v", g.Extras)
	}
	g := s.Groups[1]
	if len(g.Extras) != 1 || g.Extras[0].Instance != "claims" || !g.Extras[0].Stray || g.Extras[0].Claim == nil ||
		g.Extras[0].Group != "web" {
		t.Errorf("shown are %+v", g.Extras)
	}
	if len(g.Requests) != 1 || g.Requests[0].Record.ID != "1" || len(s.Lost) != 3 {
		t.Errorf("the group's orders are %+v, lost are %+v", g.Requests, s.Lost)
	}
}

// A full pass takes a bite of a thousand instances at a time, and a group without any counts as
// one.
//
// proves REC-1
func TestHowMuchIsPlannedInOneGo(t *testing.T) {
	for name, test := range map[string]struct {
		sizes []int
		want  []int // how many groups are planned in each go, after the shard itself
	}{
		"all at once":           {[]int{500, 500}, []int{2}},
		"one more than at once": {[]int{500, 501}, []int{1, 1}},
		"a large one":           {[]int{1, 1001, 1}, []int{1, 1, 1}},
		"as many without any":   {make([]int, 1000), []int{1000}},
		"one more than that":    {make([]int, 1001), []int{1000, 1}},
	} {
		w := newWorld(t)
		for i, size := range test.sizes {
			group := fmt.Sprintf("g%04d", i)
			w.put(keys.Group(group), spec(group))
			for n := range size {
				id := fmt.Sprintf("%s-%d", group, n)
				w.put(keys.Instance(id), store.Instance{
					Schema: store.Schema, ID: id, Group: group,
					Phase: store.Deleting,
				})
			}
		}
		w.lead()
		if first := w.evidence.TakeDirty(w.content.Revision, w.now); !slices.Equal(first, []string{""}) {
			t.Errorf("%s: planned first are %q", name, first)
		}
		var got []int
		for more := w.evidence.TakeDirty(w.content.Revision,
			w.now); len(more) > 0; more = w.evidence.TakeDirty(w.content.Revision, w.now) {
			got = append(got, len(more))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: planned are %v at a time, want %v", name, got, test.want)
		}
	}
}

// The last group of a pass has its turn although something happens to another one all the time, and
// what is noted for later is forgotten once a group was planned.
//
// proves REC-1
func TestTheLastGroupOfAPassHasItsTurn(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("a"), spec("a"))
	w.put(keys.Group("b"), spec("b"))
	w.lead()
	w.through()
	w.evidence.PlanAgain("a", w.now.Add(time.Hour))
	w.evidence.Pass(w.content)
	planned := map[string]bool{}
	for range 4 {
		if w.evidence.NextDue() != w.now && !planned["b"] {
			t.Error("a pass is not through, and nothing is due")
		}
		w.put(keys.Group("a"), spec("a"))
		for _, group := range w.evidence.TakeDirty(w.content.Revision, w.now) {
			planned[group] = true
		}
	}
	if !planned["b"] || !planned[""] {
		t.Errorf("planned were %v", planned)
	}
	if got := w.evidence.NextDue(); !got.IsZero() {
		t.Errorf("it was planned, and is due at %s", got)
	}
}

// After a disturbance groups are planned in the order of their names, in each run the same.
func TestGroupsArePlannedInOrderAfterADisturbance(t *testing.T) {
	w := newWorld(t)
	w.shard(30, 100)
	w.lead()
	w.through()
	w.pass(time.Hour)
	w.evidence.Disturb("a replica stood still")
	for bite := range 3 {
		for i, got := range w.evidence.TakeDirty(w.content.Revision, w.now) {
			if want := fmt.Sprintf("g%04d", 10*bite+i); got != want {
				t.Fatalf("bite %d: planned is %s, want %s", bite, got, want)
			}
		}
	}
	w.evidence.Disturb("again") // covered by the grace of the first
	if got := w.takeAll(); len(got) != 0 {
		t.Errorf("planned are %q", got)
	}
	w.pass(time.Second) // that is over
	w.evidence.Disturb("again")
	if got := w.takeAll(); len(got) != 30 {
		t.Errorf("planned are %d groups", len(got))
	}
}

// A group's spec is read again after it was gone, also if the same revision is there again; and a
// group that says nothing at all is not paused.
//
// proves SAFE-10
func TestASpecThatWasGone(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("web"), spec("web"))
	w.lead()
	w.group("web")
	kv := w.content.Groups["web"]
	w.remove(keys.Group("web"))
	if s := w.group("web").Spec; s.Modified != 0 || s.Key != keys.Group("web") || s.Static != keys.Static("web") ||
		s.Problem != "" || s.Template != "" {
		t.Errorf("the spec of nothing is %+v", s)
	}
	delete(w.content.Groups, "web")
	other := spec("web")
	other.Size = 9
	kv.Value = store.Encode(other)
	w.content.Groups["web"] = kv
	if s := w.group("web").Spec; s.Group.Size != 9 {
		t.Errorf("the spec is %+v", s)
	}
}
