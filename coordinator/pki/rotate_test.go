package pki

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/provider/durable"
)

// Promote dies after each of its steps: what is left is valid, believes both, issues with a key
// that fits, and is ended by the next Promote.
func TestAnInterruptedPromotionIsValidAndCanBeEnded(t *testing.T) {
	dir := newPlace(t, AgentsLifetime)
	must(t, Introduce(dir, AgentsLifetime))
	introduced := load(t, dir, Agents)
	in := func(dir, name string) string { return filepath.Join(dir, string(Agents), name) }
	steps := []func(dir string) error{
		func(string) error { return nil },
		func(dir string) error {
			return durable.Replace(in(dir, oldCert), certificatePEM(introduced.Issuer.Certificate), 0o644)
		},
		func(dir string) error { return durable.Rename(in(dir, nextCert), in(dir, caCert)) },
		func(dir string) error { return durable.Rename(in(dir, nextKey), in(dir, caKey)) },
	}
	for died := range steps {
		at := copyDir(t, dir)
		for _, step := range steps[:died+1] {
			must(t, step(at))
		}
		f := load(t, at, Agents)
		for _, authority := range []string{introduced.Issuer.Fingerprint(), introduced.Next.Fingerprint()} {
			if !f.Trust().Believes(authority) {
				t.Errorf("after step %d: %s is not believed", died, authority)
			}
		}
		if !fits(f.Issuer.Key, f.Issuer.Certificate) {
			t.Errorf("after step %d: the key does not fit", died)
		}
		if _, err := Open(at, nil); err != nil {
			t.Errorf("after step %d: %v", died, err)
		}
		if died == len(steps)-1 {
			if f.Stage() != Promoted {
				t.Errorf("at the end: %s", f.Stage())
			}
			continue
		}
		if f.Stage() != Introduced || f.Unfinished != (died > 0) {
			t.Errorf("after step %d: %s, unfinished %t", died, f.Stage(), f.Unfinished)
		}
		if err := Introduce(at, AgentsLifetime); err == nil {
			t.Errorf("after step %d: another was introduced", died)
		}
		if err := Retire(at); err == nil && f.Unfinished {
			t.Errorf("after step %d: the old one was retired", died)
		}
		must(t, Promote(at))
		end := load(t, at, Agents)
		if end.Stage() != Promoted || end.Issuer.Fingerprint() != introduced.Next.Fingerprint() || len(end.Old) != 1 ||
			!end.Old[0].Equal(introduced.Issuer.Certificate) {
			t.Errorf("after step %d and Promote: %s, issuer %s, %d old", died, end.Stage(), end.Issuer.Fingerprint(),
				len(end.Old))
		}
		for _, name := range []string{nextCert, nextKey} {
			if _, err := os.Stat(in(at, name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("after step %d and Promote: %s is still there", died, name)
			}
		}
	}
}

// An introduction that died before its certificate was written starts over.
func TestAnInterruptedIntroductionLeavesNothing(t *testing.T) {
	dir := newPlace(t, AgentsLifetime)
	before := load(t, dir, Agents)
	must(t, Introduce(dir, AgentsLifetime))
	must(t, os.Remove(filepath.Join(dir, string(Agents), nextCert)))
	if f := load(t, dir, Agents); f.Stage() != Settled || f.Trust().Digest() != before.Trust().Digest() {
		t.Fatalf("a key alone makes it %s", f.Stage())
	}
	must(t, Introduce(dir, AgentsLifetime))
	if f := load(t, dir, Agents); f.Stage() != Introduced || f.Next.Key == nil {
		t.Fatalf("then it is %s", f.Stage())
	}
}

func TestStepsOutOfTurnAreRefused(t *testing.T) {
	dir := newPlace(t, AgentsLifetime)
	if err := Promote(dir); err == nil {
		t.Error("promoted what was not introduced")
	}
	must(t, Introduce(dir, AgentsLifetime))
	if err := Introduce(dir, AgentsLifetime); err == nil {
		t.Error("introduced twice")
	}
	must(t, os.Remove(filepath.Join(dir, string(Agents), nextKey)))
	if err := Promote(dir); err == nil {
		t.Error("promoted without a key")
	}
	if f := load(t, dir, Agents); f.Stage() != Introduced || len(f.Old) > 0 {
		t.Errorf("then it is %s with %d old", f.Stage(), len(f.Old))
	}
}

// What a company's authority has signed beside ours is not believed.
func TestOnlyTheFirstCertificateIsBelieved(t *testing.T) {
	ours, err := newSigner(Agents, AgentsLifetime)
	must(t, err)
	root, err := newSigner(Agents, AgentsLifetime)
	must(t, err)
	dir := newPlace(t, AgentsLifetime)
	ours.Above = append(ours.Above, root.Certificate)
	must(t, ours.write(filepath.Join(dir, string(Agents), caCert), filepath.Join(dir, string(Agents), caKey)))
	a := open(t, dir)
	if trust := a.Trust(); len(trust.Authorities) != 1 || !trust.Believes(identity.Fingerprint(ours.Certificate)) {
		t.Fatalf("believes %d authorities", len(trust.Authorities))
	}
}
