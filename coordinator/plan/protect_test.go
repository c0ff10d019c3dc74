package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A protection keeps what is planned off an instance until its time is over or an order ends it,
// and says by which operator, why and until when. Meanwhile notices act as ever.
//
// proves REC-13
func TestAProtectionEnds(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 1 })
	w.place("a", 0, store.Running)
	becomesOutdated := func(r *store.Instance) { r.Template, r.Spec.Template.InstanceType = "t0", "small" }
	protect := func(change func(*store.Request)) {
		t.Helper()
		w.order(store.RequestProtect, "a", func(r *store.Request) { r.Mode = store.ProtectRemoval }, change)
		w.step()
	}
	for _, wrong := range []time.Duration{-time.Second, store.MaxProtection + 1} {
		protect(func(r *store.Request) { r.For = store.Duration(wrong) })
		if w.instance("a").Record.Protected != "" || len(w.names(store.KindRequests)) > 0 {
			t.Fatalf("for %s: %+v", wrong, w.instance("a").Record)
		}
	}
	protect(func(r *store.Request) { r.For, r.Why = store.Duration(time.Hour), "a long build" })
	rec := w.instance("a").Record
	if p := rec.Protection; rec.Protected != store.ProtectRemoval || p == nil || p.By != "ann" ||
		p.Why != "a long build" || p.Ends == nil || p.Ends.For != store.Duration(time.Hour) {
		t.Fatalf("protected %q: %+v", rec.Protected, rec.Protection)
	}
	if last := rec.Last; last.Why != "ordered by ann: a long build" || last.Cause.Text != "a long build" {
		t.Errorf("the journal says %q, %+v", last.Why, last.Cause)
	}
	w.change("a", becomesOutdated)
	w.pass(time.Second)
	blocked := w.blockedBy()
	if len(blocked) != 1 || blocked[0].Rule != "REC-13" || blocked[0].Why != "it is protected by ann: a long build" ||
		blocked[0].Until != "2026-01-01T01:00:00Z, or leasehold instance protect a --off" {
		t.Errorf("blocked: %+v", blocked)
	}
	if got := w.briefly(); got != "" {
		t.Errorf("planned %q", got)
	}
	p, _ := w.step()
	if want := w.now.Add(time.Hour - time.Second); p.Wake.After(want) {
		t.Errorf("looks again at %s, later than the protection's end %s", p.Wake, want)
	}
	w.pass(time.Hour - 2*time.Second)
	if w.step(); w.instance("a").Record.Protected == "" {
		t.Error("it ends too early")
	}
	w.pass(time.Second)
	w.step()
	if rec := w.instance("a").Record; rec.Protected != "" || rec.Protection != nil ||
		rec.Last.Why != "the protection for 1h0m0s that ann ordered is over" {
		t.Errorf("it is protected still: %+v", rec)
	}
	if got := w.briefly(); got != "ROLL-1 +0" {
		t.Errorf("planned %q", got)
	}

	protect(func(r *store.Request) { r.Mode = store.ProtectHeal })
	if p := w.instance("a").Record.Protection; p == nil || p.Ends != nil {
		t.Errorf("without a time it is %+v", p)
	}
	protect(func(r *store.Request) { r.Mode = store.ProtectOff })
	if rec := w.instance("a").Record; rec.Protected != "" || rec.Protection != nil {
		t.Errorf("it is protected still: %+v", rec)
	}

	protect(func(r *store.Request) { r.For = store.Duration(time.Hour) })
	w.change("a", spotted)
	if got := w.briefly(); got != "SPOT-2 +0" {
		t.Errorf("planned %q, a notice spares no instance", got)
	}
}

// While a failed instance that is protected from removal is being replaced, no healthy one is
// removed in its stead: it may be surplus itself in a moment.
//
// proves REC-4
func TestAHealthyOneStaysWhileAnotherIsReplaced(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion = 2, 0 })
		w.place("a", 0, store.Running)
		w.place("b", 1, store.Running, protected)
		w.place("c", 2, store.Running)
		w.turn("b", false)
		want := "HEAL-9 -a"
		if replaced {
			w.place("r", 1, store.Booting, replaces("b"))
			want = ""
		}
		if got := w.briefly(); got != want {
			t.Errorf("a replacement is under way: %t; planned %q, want %q: %+v", replaced, got, want, w.blockedBy())
		}
	}
}
