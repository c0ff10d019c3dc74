package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// certifiedGroup is a group whose instances have certificates.
func certifiedGroup() store.Group {
	g := webGroup(4)
	g.Files = []store.File{{
		Path: "/etc/leasehold-files/tls.crt", Mode: "0644",
		Certificate: &store.FileCertificate{
			Authority: "web", Names: []string{"{{.Facts.instance}}.web.internal"}, Key: "/etc/leasehold-files/tls.key",
			Lifetime: store.Duration(time.Hour),
		},
	}}
	g.Complete()
	return g
}

// pki show lists who signs workloads' certificates, until when, and how many instances have a
// certificate of the present issuer, of an earlier one, or none. It reports replicas with different
// authorities.
//
// proves FILE-2
func TestPKIShowsTheAuthoritiesOfWorkloads(t *testing.T) {
	w, _ := pkiWorld(t)
	w.serve()
	now := time.Now()
	g := certifiedGroup()
	state := store.AuthorityState{
		Issuer: "0123456789abcdef", Name: "CN=web", Trust: 1,
		Begins: now.Add(-30 * 24 * time.Hour), Ends: now.Add(1000 * 24 * time.Hour),
	}
	replica := func(id string, state store.AuthorityState) {
		w.put(store.KindReplicas, id, store.Replica{
			Schema: store.Schema, ID: id, Address: id + ":1", Providers: []string{"process"},
			Authorities:     map[string]store.AuthorityLimits{"web": {Domains: []string{"web.internal"}}},
			AuthorityStates: map[string]store.AuthorityState{"web": state},
		})
	}
	replica("coord-a", state)
	replica("coord-b", state)
	issuers := map[string]string{"web-0-a": state.Issuer, "web-1-b": state.Issuer, "web-2-c": "another one"}
	for slot, id := range []string{"web-0-a", "web-1-b", "web-2-c", "web-3-d"} {
		rec := instanceOf(g, slot, id, store.Running)
		w.put(store.KindInstances, id, rec)
		file := store.FileReport{Path: g.Files[0].Path, State: store.FileMissing}
		if issuer := issuers[id]; issuer != "" {
			version, err := g.Files[0].Certificate.VersionFor(&rec, issuer)
			if err != nil {
				t.Fatal(err)
			}
			file.State, file.Version = store.FileDelivered, version
			file.Ends = now.Add(time.Duration(60-slot) * time.Minute)
		}
		w.put(store.KindReports, id, store.Report{
			Schema: store.Schema, Instance: id, BootID: "1", Files: []store.FileReport{file},
		})
	}
	w.fine("pki", "init")
	var doc pkiDocument
	if code, out, stderr := w.run("pki", "show", "-o", "json"); code != Done || json.Unmarshal([]byte(out), &doc) != nil {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	if len(doc.Workloads) != 1 || doc.Workloads[0].Issued != 2 || doc.Workloads[0].First != "web-1-b" ||
		len(doc.Workloads[0].Replicas) != 2 || doc.Workloads[0].Trust != 1 {
		t.Errorf("authorities: %+v", doc.Workloads)
	}
	if u := doc.Unissued; len(u) != 1 || len(u[0].Other) != 1 || u[0].Other[0] != "web-2-c" || len(u[0].Missing) != 1 ||
		u[0].Missing[0] != "web-3-d" {
		t.Errorf("unissued: %+v", doc.Unissued)
	}
	out := w.fine("pki", "show")
	for _, want := range []string{
		"FOR WORKLOADS", "coord-a,coord-b", "CN=web",
		"certificates wanted of web: 1 of another issuer or order, at web-2-c; 1 missing, at web-3-d",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "warning: authority web") {
		t.Errorf("nothing is wrong:\n%s", out)
	}

	ending := state
	ending.Issuer, ending.Ends = "fedcba9876543210", now.Add(7*24*time.Hour)
	replica("coord-b", ending)
	out = w.fine("pki", "show")
	status := w.fine("status")
	for _, want := range []string{
		"authority web for workloads' certificates is another one at coord-b than at coord-a",
		"authority web for workloads' certificates ends on ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("pki show does not say %q:\n%s", want, out)
		}
		if !strings.Contains(strings.Join(strings.Fields(status), " "), want) {
			t.Errorf("status does not say %q:\n%s", want, status)
		}
	}
}

// proves FILE-2
func TestProblemsOfAuthorities(t *testing.T) {
	good := store.AuthorityState{Issuer: "1", Name: "CN=web", Ends: noon.Add(1000 * time.Hour), Trust: 1}
	both, silent, over := good, store.AuthorityState{Problem: "its program does not answer"}, good
	both.Trust, over.Ends = 2, noon.Add(-time.Hour)
	for what, c := range map[string]struct {
		has  []store.AuthorityState
		want string
	}{
		"all is well":       {[]store.AuthorityState{good, good}, ""},
		"other bundles":     {[]store.AuthorityState{good, both}, "other certificates to trust at coord-b than at coord-a"},
		"one knows nothing": {[]store.AuthorityState{good, silent}, "is not known to coord-b: its program does not answer"},
		"it has ended":      {[]store.AuthorityState{over, over}, "has ended on "},
	} {
		var replicas []store.Replica
		for i, st := range c.has {
			replicas = append(replicas, store.Replica{
				ID: []string{"coord-a", "coord-b"}[i], AuthorityStates: map[string]store.AuthorityState{"web": st},
			})
		}
		found := story.AuthorityProblems(replicas, noon)
		if len(found) > 1 || len(found) == 1 != (c.want != "") || len(found) == 1 &&
			!strings.Contains(found[0].What, c.want) {
			t.Errorf("%s: %+v", what, found)
		}
	}
}
