package gateway_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// otherReplica says that another replica is at work that believes these.
func (w *world) otherReplica(trust identity.Trust) {
	w.t.Helper()
	w.put(w.keys.Replica("two"), store.Encode(store.Replica{
		Schema: store.Schema, ID: "two", Address: "two", Trust: trust.Digest(), Issuer: trust.Issuer,
		Believes: trust.Prints(),
	}))
}

// saysNothing reports for two minutes, in which nothing but acknowledgements may come.
func (a *agent) saysNothing(trust string) {
	a.t.Helper()
	for range 24 {
		pass(interval)
		if m := a.report(&protocol.Report{Healthy: true, Trust: trust}); m.GetAck() == nil {
			a.t.Fatalf("%v came, want nothing but acknowledgements", m)
		}
	}
}

// A replica that does not know the next authority takes no agent's trust in it away: its agents
// could speak to no other replica then.
//
// proves SEC-3
func TestAReplicaWithOldFilesTakesNobodysTrust(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		first, second := w.ca.issuer, identitytest.New(w.t, "second")
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		w.record("web-1", store.Creating)
		wide := identitytest.Trust(first, second)
		wide.Issuer = second.Print()
		w.otherReplica(wide)

		r.own = w.ca.agent("web-0", time.Hour)
		h := hello("web-0", "boot1", 1)
		h.Trust = wide.Digest()
		a := r.welcomed(h)
		defer a.hangUp()
		a.saysNothing(wide.Digest())
		m := newMachine(w.t, "web-0")
		a.send(
			&protocol.AgentMessage{
				Kind: &protocol.AgentMessage_RenewCertificate{RenewCertificate: &protocol.RenewCertificate{Request: m.request}},
			},
		)
		if c := a.next().GetCertificate(); c == nil || c.GetTrust() != nil {
			t.Errorf("a renewal is answered with %v, want a certificate and no trust", c)
		}

		m = newMachine(w.t, "web-1")
		c, err := r.joins(nil, m.asks(w.token("web-1", time.Hour)))
		if err != nil || c.GetTrust() != nil {
			t.Errorf("a join is answered with %v (%v), want a certificate and no trust", c, err)
		}
		r.own = m.pair(c)
		h = hello("web-1", "boot1", 1)
		h.Trust = identity.DigestOf(wide.Prints(), "") // of its bootstrap document
		b := r.welcomed(h)
		defer b.hangUp()
		b.saysNothing(h.GetTrust())

		w.ca.change(second, first, second) // the files are there now
		a.saysNothing(wide.Digest())
		b.believes(w.ca.Trust())
	})
}

// An agent that trusts less than we do receives our trust, whatever other replicas trust; so does
// an agent that trusts what no live replica trusts any longer.
//
// proves SEC-3
func TestTrustGrowsThoughAReplicaHasOldFiles(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		first, second := w.ca.issuer, identitytest.New(w.t, "second")
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		narrow := w.ca.Trust()
		w.otherReplica(narrow)
		r.own = w.ca.agent("web-0", time.Hour)
		h := hello("web-0", "boot1", 1)
		h.Trust = narrow.Digest()
		a := r.welcomed(h)
		defer a.hangUp()
		w.ca.change(first, first, second) // introduced here first
		wide := w.ca.Trust()
		a.believes(wide)
		w.otherReplica(wide)
		a.reports()
		w.ca.change(first, first) // taken back here first
		a.saysNothing(wide.Digest())
		w.remove(w.keys.Replica("two"))
		pass(interval)
		a.number++
		a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_Report{Report: &protocol.Report{
			Sequence: a.number,
			Healthy:  true, Trust: wide.Digest(),
		}}})
		for {
			m := a.next()
			if m.GetAck() != nil {
				continue
			}
			if got, err := identity.TrustOf(m.GetTrust().GetAuthorities(), m.GetTrust().GetIssuer()); err != nil ||
				got.Digest() != narrow.Digest() {
				t.Fatalf("%v came (%v), want the only trust that is left", m, err)
			}
			return
		}
	})
}
