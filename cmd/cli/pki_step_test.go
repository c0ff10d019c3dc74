package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
)

// rotationAt creates an agents' authority at a stage of a rotation.
func rotationAt(t *testing.T, steps ...func(dir string) error) (dir string, f pki.Files) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "pki")
	err := pki.Init(dir, map[pki.Kind]time.Duration{
		pki.Agents:    pki.AgentsLifetime,
		pki.Operators: pki.OperatorsLifetime,
	})
	for _, step := range steps {
		if err == nil {
			err = step(dir)
		}
	}
	if err == nil {
		f, err = pki.Load(dir, pki.Agents)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, f
}

func introduced(dir string) error { return pki.Introduce(dir, pki.AgentsLifetime) }

// proves SEC-1: a step of a rotation is refused while it would disconnect a machine or replica, or
// while that is unknown.
func TestWhoIsCutOffByAStep(t *testing.T) {
	_, settled := rotationAt(t)
	_, half := rotationAt(t, introduced)
	_, after := rotationAt(t, introduced, pki.Promote)
	promoted := half.Trust()
	promoted.Issuer = half.Next.Fingerprint()
	both, stranger := half.Trust().Digest(), settled.Trust().Digest()
	oldPrint, newPrint := pki.Signer{Certificate: after.Old[0]}.Fingerprint(), after.Issuer.Fingerprint()

	replica := func(at store.Revision, trust, issuer string) store.Versioned[store.Replica] {
		return store.Versioned[store.Replica]{
			Modified: at,
			Record:   store.Replica{ID: "a", Trust: trust, Issuer: issuer},
		}
	}
	agent := func(trust string, held *store.CertificateReport) agentSeen {
		return agentSeen{
			id: "web-1", phase: store.Running, called: true, created: 5,
			report: &store.Report{Trust: trust, Certificate: held},
		}
	}
	newcomer := func(created store.Revision, called bool) agentSeen {
		return agentSeen{id: "web-2", phase: store.Booting, called: called, created: created}
	}
	held := func(issuer string, ends time.Time) *store.CertificateReport {
		return &store.CertificateReport{Issuer: issuer, Ends: ends}
	}
	later, before := noon.Add(time.Hour), noon.Add(-time.Hour)
	mute := agentSeen{id: "web-3", phase: store.Checking, called: true, created: 5}

	for name, c := range map[string]struct {
		files    pki.Files
		replicas []store.Versioned[store.Replica]
		agents   []agentSeen
		step     rotationStep
		cut      []string // beginnings of who and why
	}{
		"making another is harmless": {
			settled,
			[]store.Versioned[store.Replica]{replica(9, "x", "y")},
			[]agentSeen{mute},
			introduce, nil,
		},

		"all believe it": {
			half,
			[]store.Versioned[store.Replica]{replica(9, both, "")},
			[]agentSeen{agent(both, nil)},
			promote, nil,
		},
		"no replica or agent": {half, nil, nil, promote, nil},
		"promoted elsewhere already": {
			half,
			[]store.Versioned[store.Replica]{replica(9, promoted.Digest(), "")},
			[]agentSeen{agent(promoted.Digest(), nil)},
			promote, nil,
		},
		"a replica does not": {
			half,
			[]store.Versioned[store.Replica]{replica(9, both, ""), replica(9, stranger, "")},
			[]agentSeen{agent(both, nil)},
			promote,
			[]string{"replica a does not trust the next authority"},
		},
		"an agent does not": {
			half,
			[]store.Versioned[store.Replica]{replica(9, both, "")},
			[]agentSeen{agent(stranger, nil)},
			promote,
			[]string{"web-1 does not trust the next authority"},
		},
		"an agent has not said": {
			half,
			[]store.Versioned[store.Replica]{replica(9, both, "")},
			[]agentSeen{agent("", nil)},
			promote,
			[]string{"web-1 has not reported which authorities"},
		},
		"one that registered and never reported": {
			half,
			[]store.Versioned[store.Replica]{replica(9, both, "")},
			[]agentSeen{mute},
			promote,
			[]string{"web-3 has not reported which authorities"},
		},
		"a machine made before": {
			half,
			[]store.Versioned[store.Replica]{replica(9, both, "")},
			[]agentSeen{newcomer(8, true)},
			promote,
			[]string{"web-2 has not registered yet"},
		},
		"a machine made after": {
			half,
			[]store.Versioned[store.Replica]{replica(9, both, "")},
			[]agentSeen{newcomer(10, true)},
			promote, nil,
		},
		"a machine not asked for yet": {
			half,
			[]store.Versioned[store.Replica]{replica(9, both, "")},
			[]agentSeen{newcomer(8, false)},
			promote, nil,
		},
		"a machine, and no replica to tell it": {
			half, nil,
			[]agentSeen{newcomer(10, true)},
			promote,
			[]string{"web-2 has not registered yet"},
		},

		"all have new ones": {
			after,
			[]store.Versioned[store.Replica]{replica(9, "", newPrint)},
			[]agentSeen{agent("", held(newPrint, later))},
			retire, nil,
		},
		"an agent has an old one": {
			after,
			[]store.Versioned[store.Replica]{replica(9, "", newPrint)},
			[]agentSeen{agent("", held(oldPrint, later))},
			retire,
			[]string{"web-1 has a certificate of the old authority, until 2026-03-01T13:00:00Z"},
		},
		"its old one has ended": {
			after,
			[]store.Versioned[store.Replica]{replica(9, "", newPrint)},
			[]agentSeen{agent("", held(oldPrint, before))},
			retire, nil,
		},
		"an agent has not said which": {
			after,
			[]store.Versioned[store.Replica]{replica(9, "", newPrint)},
			[]agentSeen{agent("", nil)},
			retire,
			[]string{"web-1 has not reported which certificate"},
		},
		"a replica issues old ones": {
			after,
			[]store.Versioned[store.Replica]{replica(9, "", oldPrint)},
			nil,
			retire,
			[]string{"replica a does not issue"},
		},
		"one joined and has not reported": {
			after,
			[]store.Versioned[store.Replica]{replica(9, "", newPrint)},
			[]agentSeen{newcomer(8, true)},
			retire,
			[]string{"web-2 has not registered yet"},
		},
		"one that is made after all issued": {
			after,
			[]store.Versioned[store.Replica]{replica(9, "", newPrint)},
			[]agentSeen{newcomer(10, true)},
			retire, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if step := stepAfter(c.files); step != c.step {
				t.Errorf("the next step is %s, want %s", step, c.step)
			}
			var got []string
			for _, one := range cutOffBy(c.files, trustSeen{c.replicas, c.agents}, noon) {
				got = append(got, one.Who+" "+one.Why)
			}
			if !slices.EqualFunc(got, c.cut, strings.HasPrefix) {
				t.Errorf("cuts off %q, want %q", got, c.cut)
			}
		})
	}
	unfinished := half
	unfinished.Unfinished = true
	if step := stepAfter(unfinished); step != finish ||
		len(cutOffBy(unfinished, trustSeen{agents: []agentSeen{mute}}, noon)) > 0 {
		t.Errorf("an interrupted step is %s", step)
	}
}
