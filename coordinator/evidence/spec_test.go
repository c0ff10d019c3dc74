package evidence_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// proves SAFE-10
func TestSpecIsReadOnceForEachRevision(t *testing.T) {
	w := newWorld(t)
	g := spec("web")
	rev := w.put(keys.Group("web"), g)
	w.lead()
	reads := func(n int) {
		t.Helper()
		for range 3 {
			w.group("web")
		}
		if w.validated != n {
			t.Errorf("read %d times, want %d", w.validated, n)
		}
	}
	reads(1)
	w.run("web", "web-0")
	reads(1)
	w.evidence.Listed(w.content) // it may be another database, with the same revisions
	reads(2)
	if s := w.group("web").Spec; s.Problem != "" || s.Modified != rev || s.Group.Size != 3 ||
		s.Template != g.InstanceSpec().TemplateHash() {
		t.Errorf("spec is %+v", s)
	}
	g.Size, g.Labels = 5, map[string]string{"problem": "no such zone"}
	w.put(keys.Group("web"), g)
	reads(3)
	if s := w.group("web").Spec; s.Problem != "no such zone" || s.Group.Size != 5 {
		t.Errorf("spec is %+v", s)
	}
	g.Deleting = true // then it does not matter (REC-7)
	w.put(keys.Group("web"), g)
	reads(3)
	w.put(keys.Group("web"), spec("api"))
	if s := w.group("web").Spec; !strings.Contains(s.Problem, `its name is "api"`) {
		t.Errorf("spec is %+v", s)
	}
	w.put(keys.Group("web"), spec("web"))
	reads(4)
	w.remove(keys.Group("web"))
	if s := w.group("web").Spec; s.Modified != 0 || s.Key != keys.Group("web") || s.Group.Name != "" {
		t.Errorf("spec of no group is %+v", s)
	}
	w.event(store.Event{KV: store.KV{Key: keys.Group("web")}})
	if s := w.group("web").Spec; s.Problem == "" || s.Modified == 0 {
		t.Errorf("spec of an empty key is %+v", s)
	}
}

// proves REC-6
func TestStaticGroupAndWhatOverridesIt(t *testing.T) {
	w := newWorld(t)
	w.lead()
	w.evidence.TakeDirty(w.content.Revision, w.now)
	static := w.put(keys.Static("web"), spec("web"))
	if got := w.evidence.TakeDirty(w.content.Revision, w.now); len(got) != 1 || got[0] != "web" {
		t.Errorf("planned are %q", got)
	}
	w.evidence.Pass(w.content)
	if got := w.evidence.TakeDirty(w.content.Revision, w.now); len(got) != 2 || got[1] != "web" {
		t.Errorf("a full pass plans %q", got)
	}
	s := w.group("web").Spec
	if s.Modified != 0 || s.Static != keys.Static("web") || s.StaticModified != static || s.Group.Size != 3 ||
		s.Problem != "" {
		t.Errorf("spec is %+v", s)
	}
	size := 7
	dynamic := w.put(keys.Group("web"), store.Override{Schema: store.Schema, Name: "web", Size: &size})
	if s = w.group("web").Spec; s.Modified != dynamic || s.StaticModified != static || s.Group.Size != 7 ||
		s.Problem != "" {
		t.Errorf("spec is %+v", s)
	}
	changed := spec("web")
	changed.Workload.Run = []string{"serve"}
	w.put(keys.Static("web"), changed)
	if s = w.group("web").Spec; s.Group.Size != 7 || len(s.Group.Workload.Run) != 1 ||
		s.Template != changed.InstanceSpec().TemplateHash() {
		t.Errorf("spec is %+v", s)
	}
	w.put(keys.Group("web"), spec("web"))
	if s = w.group("web").Spec; !strings.Contains(s.Problem, "REC-6") {
		t.Errorf("spec is %+v", s)
	}
}

// What a provider says of a template may be several errors, a line each. People read it as one
// line.
func TestProblemsOfAProviderAreDistinguished(t *testing.T) {
	w := newWorld(t)
	w.lead()
	g := spec("web")
	g.Labels = map[string]string{"problem": errors.Join(errors.New("no zone mars"),
		errors.New("no zone venus")).Error()}
	w.put(keys.Group("web"), g)
	if s := w.group("web").Spec; s.Problem != "no zone mars; no zone venus" {
		t.Errorf("the problem is %q", s.Problem)
	}
}
