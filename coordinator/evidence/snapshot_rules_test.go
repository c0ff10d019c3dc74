package evidence_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// A snapshot has a group's records as they are, and the keys of those that are not there.
//
// proves REC-6
func TestSnapshotHasTheGroupsRecords(t *testing.T) {
	w := newWorld(t)
	size := 7
	staticRev := w.put(keys.Static("web"), spec("web"))
	overrideRev := w.put(keys.Group("web"), store.Override{Schema: store.Schema, Name: "web", Size: &size})
	statusRev := w.put(keys.Status("web"), store.Status{Schema: store.Schema, Group: "web", Health: 42})
	rec := w.run("web", "web-0")
	rec.ID = "web-1"
	w.put(keys.Instance("web-1"), rec) // it has neither alive nor report
	w.lead()
	g := w.group("web")
	if s := g.Spec; s.Key != keys.Group("web") || s.Static != keys.Static("web") || s.Modified != overrideRev ||
		s.StaticModified != staticRev ||
		s.Group.Size != 7 || s.Problem != "" || s.Template == "" {
		t.Errorf("the spec is %+v", s)
	}
	if b := g.Spec.Beside; b == nil || b.Revision != overrideRev || b.Override.Size == nil || *b.Override.Size != 7 {
		t.Errorf("beside the file is set %+v", b)
	}
	if g.Status.Modified != statusRev || g.Status.Record.Health != 42 || g.Status.Key != keys.Status("web") {
		t.Errorf("the status is %+v", g.Status)
	}
	for i, id := range []string{"web-0", "web-1"} {
		in := g.Instances[i]
		if in.Record.ID != id || in.Alive.Key != keys.Alive(id) || in.Report.Key != keys.Report(id) ||
			in.Alive.Present() != (i == 0) || in.Report.Present() != (i == 0) {
			t.Errorf("%s: alive %+v, report %+v", id, in.Alive, in.Report)
		}
	}
	if in := g.Instances[1]; !in.AliveGone.Equal(w.now) {
		t.Errorf("an instance without a session is without one since %s", in.AliveGone)
	}
	none := w.evidence.Snapshot(w.content, []string{"unknown"}).Groups[0]
	if s := none.Spec; s.Key != keys.Group("unknown") || s.Static != keys.Static("unknown") || s.Modified != 0 ||
		none.Status.Key != keys.Status("unknown") {
		t.Errorf("of a group that is not there: %+v", none)
	}
}

// What was set beside a static group and vanished is a problem of its spec, until something is
// there again.
//
// proves SAFE-10
func TestSpecFromWhichSomethingVanished(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Static("web"), spec("web"))
	size := 7
	override := store.Override{Schema: store.Schema, Name: "web", Size: &size}
	accepted := spec("web")
	w.put(keys.Status("web"), store.Status{
		Schema: store.Schema, Group: "web", Accepted: &accepted,
		Beside: &store.Beside{Revision: 5, Override: override},
	})
	w.lead()
	if got := w.group("web").Spec.Problem; !strings.Contains(got, "is missing") {
		t.Errorf("the problem is %q", got)
	}
	w.put(keys.Group("web"), override)
	if got := w.group("web").Spec.Problem; got != "" {
		t.Errorf("it is there again, and the problem is %q", got)
	}
}

// A shard's record that cannot be read stops all that destroys; a group's own slot stops the group.
// What is known of a status, an instance or a session from before goes on being known (SAFE-16).
//
// proves SAFE-3, SAFE-12, SAFE-16
func TestWhatCannotBeRead(t *testing.T) {
	spoil := func(w *world, key string) { w.event(store.Event{KV: store.KV{Key: key, Value: []byte("{")}}) }
	for key, want := range map[string]struct{ stale, web bool }{
		keys.Shard():           {true, false},
		keys.Instance("web-9"): {true, false},
		keys.Alive("web-0"):    {false, false},
		keys.Status("web"):     {false, true},
		keys.Slot("web", 3):    {false, true},
		keys.Status("db"):      {false, false},
		keys.Slot("db", 3):     {false, false},
		keys.Report("web-0"):   {false, false},
	} {
		w := newWorld(t)
		w.put(keys.Group("web"), spec("web"))
		w.run("web", "web-0")
		w.lead()
		spoil(w, key)
		s := w.evidence.Snapshot(w.content, []string{"web"})
		if (s.Stale.Kind != "") != want.stale || (s.Groups[0].Unreadable != "") != want.web {
			t.Errorf("%s cannot be read: stale %v, the group %q", key, s.Stale, s.Groups[0].Unreadable)
		}
	}
	w := newWorld(t)
	w.remove(keys.Shard())
	w.lead()
	if s := w.evidence.Snapshot(w.content, nil); s.Stale.Kind == "" {
		t.Error("without the shard's record the cache may be used to destroy")
	}
}

// An extra machine is left alone while the group that its tag names is paused: by its spec or,
// where that cannot be in force, by the last one that was.
//
// proves REC-8, REC-13
func TestExtraMachinesOfPausedGroups(t *testing.T) {
	paused, running := spec("web"), spec("web")
	paused.Paused = true
	wrong := paused
	wrong.Size = -1
	for name, test := range map[string]struct {
		spec     store.Group
		accepted *store.Group
		want     bool
	}{
		"running": {running, &paused, false}, "paused": {paused, &running, true},
		"paused, and never accepted": {paused, nil, true},
		"wrong, and was paused":      {wrong, &paused, true}, "wrong, and was running": {wrong, &running, false},
		"wrong, and never accepted": {wrong, nil, false},
	} {
		w := newWorld(t)
		w.put(keys.Group("web"), test.spec)
		w.put(keys.Status("web"), store.Status{Schema: store.Schema, Group: "web", Accepted: test.accepted})
		w.lead()
		w.evidence.ListedBy("mem", w.now, []provider.Machine{{Instance: "extra", Group: "web"}}, w.content)
		if x := w.evidence.Snapshot(w.content, []string{""}).Extras; len(x) != 1 || x[0].Paused != test.want {
			t.Errorf("%s: extra are %+v", name, x)
		}
	}
}

// An instance that enters another phase restarts its time; one whose record changes otherwise
// does not.
//
// proves SAFE-13
func TestSinceWhenAPhaseIs(t *testing.T) {
	w := newWorld(t)
	rec := w.run("web", "web-0")
	w.lead()
	begun := w.instance("web", "web-0").PhaseStart
	w.pass(time.Minute)
	rec.Address = "other"
	w.put(keys.Instance("web-0"), rec)
	if got := w.instance("web", "web-0").PhaseStart; !got.Equal(begun) {
		t.Errorf("its address changed, and its phase began at %s, want %s", got, begun)
	}
	rec.Phase = store.Draining
	w.put(keys.Instance("web-0"), rec)
	if got := w.instance("web", "web-0").PhaseStart; !got.Equal(w.now) {
		t.Errorf("its phase changed, and began at %s, want %s", got, w.now)
	}
}
