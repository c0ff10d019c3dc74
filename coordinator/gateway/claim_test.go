package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/claim"
	"github.com/leasehold/leasehold/store"
)

// proves SEC-5
func TestLongClaimIsMalformed(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		r.own = w.ca.agent("web-0", time.Hour)
		h := helloTrusting(w, "web-0")
		h.Claim = []byte(strings.Repeat("x", protocol.MaxClaim+1))
		a := r.call(h)
		defer a.hangUp()
		a.ends()
	})
}

// claims are those that the agent received since the last call.
func (a *agent) claims() [][]byte {
	a.t.Helper()
	a.wantedRaw()
	var out [][]byte
	for _, m := range a.told {
		if len(m.GetClaim()) > 0 {
			out = append(out, m.GetClaim())
		}
	}
	a.told = nil
	return out
}

// The claim is sealed once for each change of its content, and is not sent to an agent that has it
// already.
//
// proves SAFE-17
func TestClaimIsSentWhenItChanges(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		r.own = w.ca.agent("web-0", time.Hour)
		a := r.welcomed(helloTrusting(w, "web-0"))
		defer a.hangUp()
		got := a.claims()
		if len(got) != 1 {
			t.Fatalf("%d claims were told at first", len(got))
		}
		for range 3 {
			a.reports()
		}
		w.workloadRecord("web-0", func(i *store.Instance) { i.Phase = store.Draining })
		if n := len(a.claims()); n != 0 || w.ca.sealed() != 1 {
			t.Errorf("told %d claims and sealed %d, and nothing of it was new", n, w.ca.sealed())
		}
		w.workloadRecord("web-0", func(i *store.Instance) { i.Ref = "i-1" })
		if got = append(got, a.claims()...); len(got) != 2 || w.ca.sealed() != 2 {
			t.Fatalf("told %d claims, sealed %d", len(got), w.ca.sealed())
		}
		for i, more := range []int{1, 0} { // an old one, then the newest
			h := helloTrusting(w, "web-0")
			h.Epoch, h.Claim = uint64(10+i), got[i]
			b := r.welcomed(h)
			if n := len(b.claims()); n != more {
				t.Errorf("agent with claim %d is told %d more", i, n)
			}
			b.hangUp()
		}
	})
}

// A hello without a record is recognized by a claim that a coordinator has sealed, for this
// instance of this shard.
//
// proves SAFE-17, SEC-5
func TestClaimOfAStray(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		sealed := map[string][]byte{}
		for _, id := range []string{"web-0", "web-1"} {
			w.workloadRecord(id, func(i *store.Instance) { i.Slot = 3 })
			r.own = w.ca.agent(id, time.Hour)
			a := r.welcomed(helloTrusting(w, id))
			sealed[id] = a.claims()[0]
			a.hangUp()
			w.remove(w.keys.Instance(id))
			w.remove(w.keys.Stray(id))
		}
		pass(time.Second)
		r.own = w.ca.agent("web-0", time.Hour)
		epoch := uint64(10)
		claimOf := func(shown []byte) *store.Claim {
			epoch++
			h := helloTrusting(w, "web-0")
			h.Epoch, h.Claim = epoch, shown
			r.refused(h, protocol.Refused_UNKNOWN)
			pass(time.Second)
			return read[store.Stray](w, w.keys.Stray("web-0")).Record.Claim
		}
		spoiled := append([]byte(nil), sealed["web-0"]...)
		spoiled[20] ^= 1
		for name, shown := range map[string][]byte{
			"none": nil, "another's": sealed["web-1"], "spoiled": spoiled,
			"garbage": []byte("x"),
		} {
			if c := claimOf(shown); c != nil {
				t.Errorf("%s: taken for %+v", name, c)
			}
		}
		if c := claimOf(sealed["web-0"]); c == nil || c.Slot != 3 || c.Instance != "web-0" {
			t.Errorf("its own: taken for %+v", c)
		}
		ignored := 0
		for _, e := range r.entries() {
			if e.What == "claim ignored" && e.Rule == "SAFE-17" {
				ignored++
			}
		}
		if ignored != 2 {
			t.Errorf("%d entries tell of claims that were ignored, want one for each reason: %+v", ignored, r.entries())
		}
	})
}

// Once another authority issues, it seals claims: the previous one will not be trusted for ever.
//
// proves SAFE-17, SEC-3
func TestClaimIsSealedAnewByTheNextAuthority(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		first, second := w.ca.issuer, identitytest.New(w.t, "second")
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		r.own = w.ca.agent("web-0", time.Hour)
		a := r.welcomed(helloTrusting(w, "web-0"))
		defer a.hangUp()
		old := a.claims()
		w.ca.change(second, first, second)
		pass(time.Second)
		got := a.claims()
		if len(old) != 1 || len(got) != 1 {
			t.Fatalf("told %d claims, then %d", len(old), len(got))
		}
		if _, err := claim.Open(got[0], identitytest.Trust(second)); err != nil {
			t.Error(err)
		}
		h := helloTrusting(w, "web-0")
		h.Epoch, h.Claim = 10, old[0]
		b := r.welcomed(h)
		defer b.hangUp()
		if n := len(b.claims()); n != 1 {
			t.Errorf("an agent that shows the old seal is told %d", n)
		}
	})
}

// A note that was written before the claim was sealed is of an earlier life of the instance.
//
// proves SAFE-14
func TestNoteOfALifeBeforeTheClaim(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		rev := w.gone("web-0")
		pass(time.Hour)
		w.workloadRecord("web-0", nil)
		pass(time.Second)
		r.own = w.ca.agent("web-0", 3*time.Hour)
		a := r.welcomed(helloTrusting(w, "web-0"))
		shown := a.claims()[0]
		a.hangUp()
		w.remove(w.keys.Instance("web-0"))
		pass(time.Second)
		h := helloTrusting(w, "web-0")
		h.Epoch, h.Claim = 10, shown
		r.refused(h, protocol.Refused_UNKNOWN)

		w.noted("web-0", rev) // which is deleted on purpose after that
		h.Epoch = 11
		if m := r.refused(h, protocol.Refused_RETIRED); m.GetRevision() != int64(rev) ||
			m.GetPhase() != protocol.PhaseGone {
			t.Errorf("it is told %v", m)
		}
	})
}
