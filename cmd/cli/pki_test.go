package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

var (
	prints = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
	alice  = regexp.MustCompile(`(?m)^alice\t`)
)

// pkiWorld returns a world with a place for certificates, on its own clock.
func pkiWorld(t *testing.T) (w *world, dir string) {
	w = newWorld(t)
	w.now = time.Now
	dir = filepath.Join(t.TempDir(), "pki")
	t.Setenv("LEASEHOLD_PKI", dir)
	return w, dir
}

// fine runs a command that must succeed, and returns what it printed, without what differs from run
// to run.
func (w *world) fine(args ...string) string {
	w.t.Helper()
	code, stdout, stderr := w.run(args...)
	if code != Done {
		w.t.Fatalf("%s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return prints.ReplaceAllString(stdout+stderr, "########")
}

func TestPKIInitAndIssue(t *testing.T) {
	w, dir := pkiWorld(t)
	if out := w.fine("pki", "init"); !strings.Contains(out, "agents\t") ||
		!strings.Contains(out, "no other host             operators/ca.key") {
		t.Errorf("init says:\n%s", out)
	}
	code, _, stderr := w.run("pki", "init")
	if code != Failed || !strings.Contains(stderr, "already, and nothing was made") ||
		!strings.Contains(stderr, "next: leasehold pki show") {
		t.Errorf("the second time: exit %d\n%s", code, stderr)
	}
	w.fine("pki", "issue", "alice", "--lifetime", "20d")
	if code, _, stderr := w.run("pki", "issue", "alice"); code != Failed || !strings.Contains(stderr, "--renew") {
		t.Errorf("alice the second time: exit %d\n%s", code, stderr)
	}
	w.fine("pki", "issue", "alice", "--renew", "--host", "alice.example")
	var doc issuedCertificate
	if err := json.Unmarshal([]byte(w.fine("pki", "issue", "etcd1", "--host", "10.0.0.1", "-o", "json")),
		&doc); err != nil || doc.Name != "etcd1" || len(doc.Hosts) != 1 {
		t.Errorf("issued %+v, %v", doc, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "issued", "etcd1.key")); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(filepath.Join(dir, "operators", "ca.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := w.run("pki", "issue", "bob"); code != Failed ||
		!strings.Contains(stderr, "next: chmod 600 ") {
		t.Errorf("with a key that others may read: exit %d\n%s", code, stderr)
	}
}

func TestPKIOfOneKindOnly(t *testing.T) {
	w, _ := pkiWorld(t)
	w.fine("pki", "init", "--only", "agents", "--lifetime", "30d")
	out := w.fine("pki", "show")
	if !strings.Contains(out, "not seen: there is no certificate authority in") ||
		strings.Contains(out, "operators\tissues") {
		t.Errorf("show says:\n%s", out)
	}
	if code, _, _ := w.run("pki", "issue", "alice"); code != Failed {
		t.Errorf("issued without an authority: exit %d", code)
	}
	w.fine("pki", "init", "--only", "operators")
	w.fine("pki", "issue", "alice")
}

// What needs no etcd works without, and says what it could not see.
func TestPKIWithoutEtcd(t *testing.T) {
	w, dir := pkiWorld(t)
	w.open = func(context.Context, Connection) (store.Store, func() error, error) {
		return nil, nil, errors.Join(errors.New("no member answers"), store.ErrUnavailable)
	}
	w.fine("pki", "init")
	if out := w.fine("pki", "show"); !strings.Contains(out, "not seen: replicas and agents: no member answers") {
		t.Errorf("show says:\n%s", out)
	}
	w.fine("pki", "rotate")
	if code, _, stderr := w.run("pki", "rotate"); code != Unreachable {
		t.Errorf("the step that must ask: exit %d\n%s", code, stderr)
	}
	if f, err := pki.Load(dir, pki.Agents); err != nil || f.Stage() != pki.Introduced {
		t.Errorf("then it is %s, %v", f.Stage(), err)
	}
	if out := w.fine("pki", "rotate", "--force"); !strings.Contains(out,
		"it is unknown which replicas and agents this disconnects") {
		t.Errorf("forced it says:\n%s", out)
	}
}

func TestPKIRotateRefusesAndNames(t *testing.T) {
	w, dir := pkiWorld(t)
	w.serve()
	web := webGroup(2)
	for slot, id := range []string{"web-0-a", "web-1-b"} {
		w.put(store.KindInstances, id, instanceOf(web, slot, id, store.Running))
	}
	w.fine("pki", "init")
	w.fine("pki", "rotate")
	code, _, stderr := w.run("pki", "rotate")
	for _, want := range []string{
		"replica coord-a does not trust",
		"web-1-b has not reported which authorities it trusts", "promote: this would disconnect 4 replicas and agents",
		"next: leasehold pki rotate --wait",
	} {
		if code != Failed || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, it does not say %q:\n%s", code, want, stderr)
		}
	}
	if f, err := pki.Load(dir, pki.Agents); err != nil || f.Stage() != pki.Introduced {
		t.Errorf("then it is %s, %v", f.Stage(), err)
	}
	if out := w.fine("pki", "rotate", "--force"); !strings.Contains(out, "web-0-a has not reported") ||
		!strings.Contains(out, "promoted") {
		t.Errorf("forced it says:\n%s", out)
	}
	if code, _, _ := w.run("pki", "rotate", "--force", "--wait"); code != Usage {
		t.Errorf("--force --wait: exit %d", code)
	}
}

// A replica and its agents follow the files, as they do: --wait takes every step, each when they
// have come along.
func TestPKIRotateWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "pki")
		db := memstore.New(memstore.Config{})
		defer db.Close()
		w := &world{
			t: t, db: db, st: db.Connect(), keys: store.KeysOf("default"), now: time.Now,
			stdin: strings.NewReader(""),
		}
		w.fine("pki", "init", "--pki", dir)
		first, err := pki.Load(dir, pki.Agents)
		if err != nil {
			t.Fatal(err)
		}
		web := webGroup(1)
		w.put(store.KindInstances, "web-0-a", instanceOf(web, 0, "web-0-a", store.Running))
		follow := func() {
			f, err := pki.Load(dir, pki.Agents)
			if err != nil {
				t.Error(err)
				return
			}
			trust := f.Trust()
			w.put(store.KindReplicas, "coord-a",
				store.Replica{Schema: 1, ID: "coord-a", Trust: trust.Digest(), Issuer: trust.Issuer})
			w.put(store.KindReports, "web-0-a", store.Report{
				Schema: 1, Instance: "web-0-a", Trust: trust.Digest(),
				Certificate: &store.CertificateReport{Issuer: trust.Issuer, Ends: time.Now().Add(time.Hour)},
			})
		}
		follow()
		done := make(chan string, 1)
		go func() { done <- w.fine("pki", "rotate", "--wait", "--pki", dir) }()
		var out string
		for out == "" {
			select {
			case out = <-done:
			case <-time.After(7 * time.Second):
				follow()
			}
		}
		for _, want := range []string{
			"introduced", "promote waits for replica coord-a, web-0-a", "promoted",
			"retire waits for replica coord-a, web-0-a", "alone", "done after",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("it does not say %q:\n%s", want, out)
			}
		}
		last, err := pki.Load(dir, pki.Agents)
		if err != nil || last.Stage() != pki.Settled || last.Issuer.Fingerprint() == first.Issuer.Fingerprint() {
			t.Errorf("at the end it is %s, %v", last.Stage(), err)
		}
		code, _, stderr := w.run("pki", "rotate", "--wait", "--pki", dir, "--timeout", "1m")
		if code != TimedOut || !strings.Contains(stderr, "web-0-a does not trust") {
			t.Errorf("no agent follows: exit %d\n%s", code, stderr)
		}
	})
}

func TestPKIShow(t *testing.T) {
	w, dir := pkiWorld(t)
	w.serve()
	w.fine("pki", "init")
	w.fine("pki", "issue", "alice")
	w.fine("pki", "rotate")
	f, err := pki.Load(dir, pki.Agents)
	if err != nil {
		t.Fatal(err)
	}
	trust := f.Trust()
	for id, issuer := range map[string]string{"coord-a": trust.Issuer, "coord-b": ""} {
		r := store.Replica{Schema: 1, ID: id, Issuer: issuer}
		if issuer != "" {
			r.Trust = trust.Digest()
		}
		w.put(store.KindReplicas, id, r)
	}
	for slot, id := range []string{"web-0-a", "web-1-b"} {
		w.put(store.KindInstances, id, instanceOf(webGroup(2), slot, id, store.Running))
	}
	w.put(store.KindReports, "web-0-a",
		store.Report{
			Schema: 1, Instance: "web-0-a", Trust: trust.Digest(),
			Certificate: &store.CertificateReport{Issuer: trust.Issuer, Ends: time.Now().Add(time.Hour)},
		})
	out := w.fine("pki", "show")
	for _, want := range []string{
		"agents\tissues\t########", "agents\tnext\t########", "operators\tissues\t########",
		"It waits for replica coord-b, web-1-b", "coord-a\t########\tall of these", "coord-b\t-\tothers",
		"agents: 1 of 2 trust all", "1 with an unknown certificate", "1 with a certificate of ########",
		"ends first: the certificate of agent web-0-a", "warning: replica coord-b uses other authorities",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if !alice.MatchString(out) || strings.Contains(out, "alice.crt ends on") {
		t.Errorf("alice is not there, or warned of:\n%s", out)
	}
	var doc pkiDocument
	if err := json.Unmarshal([]byte(w.fine("pki", "show", "-o", "json")), &doc); err != nil || doc.Agents.Count != 2 ||
		len(*doc.Rotation.Waits) != 2 {
		t.Errorf("in JSON: %+v, %v", doc, err)
	}

	w.now = func() time.Time { return time.Now().Add(350 * 24 * time.Hour) }
	out = w.fine("pki", "show")
	if !strings.Contains(out, "warning: issued/alice.crt ends on") ||
		!strings.Contains(out, "leasehold pki issue alice --renew") {
		t.Errorf("fifteen days before the end of alice:\n%s", out)
	}
	w.now = func() time.Time { return time.Now().Add(pki.AgentsLifetime - 100*24*time.Hour) }
	out = w.fine("pki", "show")
	if !strings.Contains(out, "warning: the agents' authority ends on") ||
		!strings.Contains(out, "alice.crt expired on") {
		t.Errorf("a hundred days before the end of the authority:\n%s", out)
	}
}
