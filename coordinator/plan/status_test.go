package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// All news of a group are told by the transaction that records them: one that is overtaken, or
// whose answer is lost, tells nothing twice.
//
// proves REC-15
func TestNewsComeWithWhatRecordsThem(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 2 })
	w.place("a", 0, store.Running)
	w.place("b", 1, store.Running)
	w.step()
	w.edit(func(g *store.Group) { g.Template.InstanceType = "large" })
	var told []string
	for _, a := range Compute(w.snapshot(), w.now).Actions {
		if len(a.Writes) == 0 {
			t.Errorf("%s is told by a transaction that changes nothing", a.What())
		}
		if a.Instance != "" {
			continue
		}
		for _, entry := range a.JournalEntries() {
			told = append(told, entry.Rule)
		}
	}
	if !slices.Equal(told, []string{"REC-1", "ROLL-1"}) {
		t.Errorf("told by %q", told)
	}
}

// proves SAFE-10
func TestStatusOfAGroupThatNeverWas(t *testing.T) {
	refused := Group{Name: "web", Spec: Spec{Modified: 9, Problem: "size: -1"}}
	p := Compute(Snapshot{Keys: store.KeysOf("s"), Groups: []Group{refused}}, epoch)
	if len(p.Actions) != 1 || p.Actions[0].What() != "spec not accepted" {
		t.Fatalf("a refused spec: %+v", p.Actions)
	}
	v, err := store.Decode[store.Status](store.KV{Value: p.Actions[0].Writes[0].Value})
	if err != nil || v.Record.State != store.GroupRefused || v.Record.OK || v.Record.Health != 0 {
		t.Errorf("its status: %+v, %v", v.Record, err)
	}
	gone := Group{Name: "web"}
	gone.Status.Key, gone.Status.Modified, gone.Status.Record = "/leasehold/s/status/web", 10, v.Record
	p = Compute(Snapshot{Keys: store.KeysOf("s"), Groups: []Group{gone}}, epoch)
	if len(p.Actions) != 1 || len(p.Actions[0].Writes) != 1 || !p.Actions[0].Writes[0].Delete ||
		p.Actions[0].Writes[0].Key != gone.Status.Key {
		t.Errorf("its key is gone: %+v", p.Actions)
	}
}

// proves REC-10
func TestHealthScore(t *testing.T) {
	for _, c := range []struct{ healthy, requested, want int }{
		{0, 0, 100},
		{3, 0, 100},
		{0, 1, 0},
		{1, 1, 100},
		{2, 3, 66},
		{3, 2, 100},
		{999, 1000, 99},
		{99_999, 100_000, 99},
	} {
		if got := HealthScore(c.healthy, c.requested); got != c.want {
			t.Errorf("%d of %d: %d%%, want %d%%", c.healthy, c.requested, got, c.want)
		}
	}
}

// proves REC-10
func TestStatus(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 3 })
	w.place("a", 0, store.Running)
	w.place("b", 1, store.Running, outdated)
	w.place("c", 2, store.Checking)
	w.place("x", -1, store.Deleting)
	w.turn("b", false)
	w.step()
	st := read[store.Status](w, w.keys.Status(w.group)).Record
	if st.Health != 33 || st.OK || st.State != store.GroupStarted || st.Outdated != 1 ||
		st.Phases[store.Running] != 2 || st.Verdicts[store.Unhealthy] != 1 {
		t.Errorf("status %+v", st)
	}
	if st.Accepted == nil || st.AcceptedRevision != w.spec().Modified {
		t.Errorf("accepted %+v at %d", st.Accepted, st.AcceptedRevision)
	}
	for _, c := range []struct {
		paused, deleting bool
		want             store.GroupState
	}{{true, false, store.GroupPaused}, {false, true, store.GroupDeleting}, {false, false, store.GroupStarted}} {
		w.edit(func(g *store.Group) { g.Paused, g.Deleting = c.paused, c.deleting })
		w.step()
		if st := read[store.Status](w, w.keys.Status(w.group)).Record; st.State != c.want {
			t.Errorf("state %s, want %s", st.State, c.want)
		}
	}
}

// A status is written when it has changed, and only then.
//
// proves REC-10
func TestStatusIsWrittenOnChange(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 1 })
	w.place("a", 0, store.Running)
	w.step()
	before := w.rev
	for range 5 {
		w.pass(time.Second)
		w.step()
	}
	if w.rev != before {
		t.Errorf("%d writes though nothing changed", w.rev-before)
	}
	many := newTestWorld(t)
	many.edit(func(g *store.Group) { g.Size, g.Heal.Policy = 60, store.HealNone })
	for i := range 60 {
		id := fmt.Sprintf("i%d", i)
		many.place(id, i, store.Running)
		many.turn(id, false)
	}
	many.step()
	blocked := read[store.Status](many, many.keys.Status(many.group)).Record.Blocked
	if len(blocked) != maxBlocked+1 || blocked[maxBlocked].What != "40 more" {
		t.Errorf("%d entries of what is blocked, the last %+v", len(blocked), blocked[len(blocked)-1])
	}
}
