package pki

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestInit(t *testing.T) {
	dir := newPlace(t, AgentsLifetime)
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o644)
		if d.IsDir() {
			want = 0o700
		} else if filepath.Ext(path) == ".key" {
			want = 0o600
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: mode %04o, want %04o", path, info.Mode().Perm(), want)
		}
		if !d.IsDir() && filepath.Ext(path) != ".key" && filepath.Ext(path) != ".crt" {
			t.Errorf("%s was left", path)
		}
		return nil
	}))
	names := map[string]bool{}
	for _, kind := range []Kind{Agents, Operators} {
		c := load(t, dir, kind).Issuer.Certificate
		names[c.Subject.String()] = true
		if !c.IsCA || c.MaxPathLen != 0 || !c.MaxPathLenZero || c.KeyUsage != x509.KeyUsageCertSign ||
			c.PublicKeyAlgorithm != x509.ECDSA {
			t.Errorf("%s: CA %t, path length %d, key usage %b", kind, c.IsCA, c.MaxPathLen, c.KeyUsage)
		}
	}
	if len(names) != 2 {
		t.Errorf("names: %v", names)
	}
	before := load(t, dir, Agents)
	for _, again := range []map[Kind]time.Duration{
		{Agents: AgentsLifetime, Operators: OperatorsLifetime},
		{Agents: AgentsLifetime},
		{Operators: OperatorsLifetime},
	} {
		if err := Init(dir, again); !errors.Is(err, ErrExists) {
			t.Errorf("made another over it: %v", err)
		}
	}
	if load(t, dir, Agents).Issuer.Fingerprint() != before.Issuer.Fingerprint() {
		t.Error("the authority was exchanged")
	}
}

func TestInitMakesWhatIsAskedForOnly(t *testing.T) {
	dir := t.TempDir()
	must(t, Init(dir, map[Kind]time.Duration{Agents: AgentsLifetime}))
	if _, err := Load(dir, Operators); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("operators' authority: %v", err)
	}
	must(t, Init(dir, map[Kind]time.Duration{Operators: OperatorsLifetime}))
	open(t, dir)
}

func TestIssueOperator(t *testing.T) {
	dir := newPlace(t, AgentsLifetime)
	pool := x509.NewCertPool()
	pool.AddCert(load(t, dir, Operators).Issuer.Certificate)

	alice, err := IssueOperator(dir, Order{Name: "alice"})
	must(t, err)
	if alice.Name() != "alice" || alice.Server() ||
		!slices.Equal(alice.Certificate.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) {
		t.Errorf("alice is %q for %v", alice.Name(), alice.Certificate.ExtKeyUsage)
	}
	etcd, err := IssueOperator(dir,
		Order{Name: "etcd1", Hosts: []string{"etcd1.example", "10.0.0.1", "::1"}, Lifetime: time.Hour})
	must(t, err)
	for _, host := range []string{"etcd1.example", "10.0.0.1", "::1"} {
		if _, err := etcd.Certificate.Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); err != nil {
			t.Errorf("etcd1 as %s: %v", host, err)
		}
	}
	if _, err := etcd.Certificate.Verify(x509.VerifyOptions{
		Roots:   load(t, dir, Agents).Trust().Pool(),
		DNSName: "etcd1.example",
	}); err == nil {
		t.Error("agents believe what the operators' authority issues")
	}
	all, unreadable, err := ListIssued(dir)
	must(t, err)
	if len(all) != 2 || len(unreadable) > 0 || all[0].Name() != "alice" || all[1].Name() != "etcd1" ||
		!all[1].Server() {
		t.Errorf("issued: %v, unreadable: %v", all, unreadable)
	}
	if _, err := IssueOperator(dir, Order{Name: "alice"}); !errors.Is(err, ErrExists) {
		t.Errorf("alice twice: %v", err)
	}
	again, err := IssueOperator(dir, Order{Name: "alice", Renew: true})
	must(t, err)
	if again.Certificate.Equal(alice.Certificate) {
		t.Error("not renewed")
	}
	for _, o := range []Order{
		{},
		{Name: "../alice"},
		{Name: "-x"},
		{Name: ".x"},
		{Name: "a b"},
		{Name: "bob", Hosts: []string{"etcd1:2379"}},
		{Name: "bob", Hosts: []string{""}},
		{Name: "bob", Lifetime: -1},
	} {
		if _, err := IssueOperator(dir, o); err == nil {
			t.Errorf("issued %+v", o)
		}
	}
}
