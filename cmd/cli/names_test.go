package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A number from outside that no running coordinator has is refused where the file names it, in each
// way to change a group. A group that is to go may name it.
//
// proves AUTO-1, ROLL-5
func TestUnknownSources(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.put(store.KindReplicas, "coord-b", store.Replica{
		Schema: store.Schema, ID: "coord-b", Address: "127.0.0.1:7401", Version: "v0", Providers: []string{"process"},
		Since: noon, Sources: []string{"errors", "queue"},
	})
	g := webGroup(2)
	before := w.put(store.KindGroups, "web", g)
	w.put(store.KindStatus, "web", statusOf(g, before, 2))
	const head = "name: web\nprovider: process\nworkload: {run: [./web]}\n"
	const known = head + "scale: {min: 2, max: 4, targets: [{from: queue, value: 10}]}\n" +
		"rollout: {analysis: [{from: errors, max: 0.5, for: 1m}]}\n"
	for text, parts := range map[string][]string{
		head + "scale:\n  max: 4\n  targets:\n  - {metric: cpu, value: 50}\n  - {from: queu, value: 10}\n": {
			`scale.targets[1].from: no running coordinator has the metric "queu"; they have: errors, queue (AUTO-1)`, ":8:12)",
		},
		head + "size: 2\nrollout:\n  canary: 1\n  analysis:\n  - {from: latency, max: 2}\n": {
			`rollout.analysis[0].from: no running coordinator has the metric "latency"; they have: errors, queue (ROLL-5)`,
			":8:12)",
		},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "web.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		edit := basedOn(before)
		_, err := w.eva().Apply(t.Context(), "web", []byte(text), edit)
		refusedByAPI(t, "an edit", err, http.StatusUnprocessableEntity, parts[0])
		edit.DryRun = true
		_, err = w.eva().Apply(t.Context(), "web", []byte(text), edit)
		refusedByAPI(t, "a dry run", err, http.StatusUnprocessableEntity, parts[0])
		w.edit = func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
		for command, says := range map[string]string{
			"group edit": w.refused("group", "edit", "web"), "group apply": w.refused("group", "apply", "-f", file),
			"group apply --dry-run": w.refused("group", "apply", "-f", file, "--dry-run"),
			"apply --diff":          w.refused("apply", "-f", dir, "--diff"),
		} {
			for _, part := range parts {
				if !strings.Contains(says, part) {
					t.Errorf("%s says %s, and not %s", command, says, part)
				}
			}
		}
	}
	if w.revision(store.KindGroups, "web") != before {
		t.Error("it is written")
	}
	w.edit = func(path string) error { return os.WriteFile(path, []byte(known), 0o600) }
	if code, _, says := w.run("group", "edit", "web"); code != Done {
		t.Errorf("a known source is refused: %s", says)
	}
}

// A name that a group has already prevents no other change, even if no coordinator has it any
// longer. A new unknown name is refused, with the hint of the similar name.
//
// proves AUTO-1
func TestSourcesOfBeforeStopNoChange(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.put(store.KindReplicas, "coord-b", store.Replica{
		Schema: store.Schema, ID: "coord-b", Address: "127.0.0.1:7401", Version: "v0", Providers: []string{"process"},
		Since: noon, Sources: []string{"errors"},
	})
	g := webGroup(2)
	g.Scale = &store.ScaleSpec{Min: new(2), Max: 4, Targets: []store.ScaleTarget{{From: "queue", Value: 10}}}
	g.Complete()
	before := w.put(store.KindGroups, "web", g)
	w.put(store.KindStatus, "web", statusOf(g, before, 2))
	text := func(size, more string) string {
		return "name: web\nprovider: process\nworkload: {run: [./web]}\nscale:\n  min: 2\n  max: " + size +
			"\n  targets:\n  - {from: queue, value: 10}\n" + more
	}
	w.edit = func(path string) error {
		return os.WriteFile(path, []byte(text("5", "  - {from: erors, value: 1}\n")), 0o600)
	}
	says := w.refused("group", "edit", "web")
	for _, part := range []string{
		`scale.targets[1].from: no running coordinator has the metric "erors"`,
		"use from: errors, or name it under metrics", "then leasehold group apply -f ",
	} {
		if !strings.Contains(says, part) {
			t.Errorf("it says %s, and not %s", says, part)
		}
	}
	if strings.Contains(says, `"queue"`) {
		t.Errorf("the name of before is refused: %s", says)
	}
	edit := basedOn(before)
	edit.DryRun = true
	if _, err := w.eva().Apply(t.Context(), "web", []byte(text("5", "")), edit); err != nil {
		t.Errorf("a dry run: %v", err)
	}
	w.edit = func(path string) error { return os.WriteFile(path, []byte(text("5", "")), 0o600) }
	if code, _, refusal := w.run("group", "edit", "web"); code != Done {
		t.Errorf("an edit: %s", refusal)
	}
	if w.revision(store.KindGroups, "web") == before {
		t.Error("it is not written")
	}
}
