package evidence_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A full pass comes to every group, also to one that is larger than what is planned in one go, and
// to none twice.
//
// proves REC-1
func TestAPassComesToLargeGroups(t *testing.T) {
	w := newWorld(t)
	w.shard(1, 1001)
	w.put(keys.Group("small"), spec("small"))
	w.put(keys.Group("web"), spec("web"))
	w.lead()
	if got, want := w.takeAll(), []string{"", "g0000", "small", "web"}; !slices.Equal(slices.Sorted(slices.Values(got)),
		want) {
		t.Errorf("planned are %q, want %q", got, want)
	}
	if got := w.evidence.NextDue(); !got.IsZero() {
		t.Errorf("the pass is through, and something is due at %s", got)
	}
}

// A group is planned once at the earliest of the times that were noted for it, and not before.
// Groups do not stand in each other's way.
//
// proves REC-1
func TestTimesToLookAgain(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.put(keys.Group(name), spec(name))
	}
	w.lead()
	w.takeAll()
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	for _, note := range []struct {
		group string
		at    int
	}{{"a", 40}, {"b", 20}, {"c", 30}, {"d", 10}, {"a", 15}, {"b", 50}} {
		w.evidence.PlanAgain(note.group, at(note.at))
	}
	w.evidence.PlanAgain("c", time.Time{}) // says nothing
	for _, c := range []struct {
		at      int
		planned []string
		next    int // 0: nothing more
	}{{9, nil, 10}, {10, []string{"d"}, 15}, {14, nil, 15}, {20, []string{"a", "b"}, 30}, {60, []string{"c"}, 0}} {
		w.now = at(c.at)
		if got := w.evidence.TakeDirty(w.content.Revision, w.now); !slices.Equal(got, c.planned) {
			t.Errorf("after %ds planned are %q, want %q", c.at, got, c.planned)
		}
		next := time.Time{}
		if c.next > 0 {
			next = at(c.next)
		}
		if got := w.evidence.NextDue(); !got.Equal(next) {
			t.Errorf("after %ds the next time is %s, want %s", c.at, got, next)
		}
	}
}

// A group that was written to waits until the cache has that write; one that was planned
// meanwhile forgets its time.
//
// proves REC-1
func TestAGroupWaitsForItsOwnWrite(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("a"), spec("a"))
	w.lead()
	w.takeAll()
	rev := w.content.Revision
	w.evidence.Wrote("a", rev+2)
	w.evidence.Wrote("a", rev+1) // an earlier write is reported later
	w.evidence.PlanAgain("a", w.now)
	for _, c := range []struct {
		more    int64
		planned int
	}{{0, 0}, {1, 0}, {2, 1}, {2, 0}} {
		if got := w.evidence.TakeDirty(rev+store.Revision(c.more), w.now); len(got) != c.planned {
			t.Errorf("%d revisions later planned are %q, want %d groups", c.more, got, c.planned)
		}
	}
	if got := w.evidence.NextDue(); !got.IsZero() {
		t.Errorf("it was planned, and is due at %s", got)
	}
}

// A pass comes to all groups that there is anything of: a spec, a file's spec, a status, or
// instances.
//
// proves REC-1
func TestAPassComesToWhateverThereIs(t *testing.T) {
	w := newWorld(t)
	w.put(keys.Group("dynamic"), spec("dynamic"))
	w.put(keys.Static("static"), spec("static"))
	w.put(keys.Status("status"), store.Status{Schema: store.Schema, Group: "status"})
	w.run("instances", "instances-0")
	w.lead()
	for range 2 {
		got := slices.Compact(slices.Sorted(slices.Values(w.takeAll())))
		if want := []string{"", "dynamic", "instances", "static", "status"}; !slices.Equal(got, want) {
			t.Errorf("planned are %q, want %q", got, want)
		}
		w.evidence.Pass(w.content)
	}
}
