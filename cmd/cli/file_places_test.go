package cli

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

const filesRoot = "/etc/leasehold-files"

// withRoots is a group with one file, and two instances whose agents have reported where they write
// files; the second one is to write below /srv as well.
func withRoots(w *world) {
	w.serve()
	g := webGroup(2)
	g.Files = []store.File{{Path: "/opt/old", Text: new("old")}}
	g.Complete()
	w.put(store.KindStatus, "web", statusOf(g, w.put(store.KindGroups, "web", g), 2))
	for slot, id := range []string{"web-0-a1", "web-1-b1"} {
		w.put(store.KindInstances, id, instanceOf(g, slot, id, store.Running))
		w.put(store.KindAlive, id, store.Alive{
			Schema: 1, Instance: id, Replica: "coord-a", Lease: "00aa", BootID: "boot1", Epoch: 2,
			State: store.StreamOpen, Since: noon, Agent: "v0",
		})
		w.put(store.KindReports, id, store.Report{
			Schema: 1, Instance: id, BootID: "boot1", Received: noon, Healthy: true,
			FilesRoots: []string{filesRoot, "/srv"}[:slot+1],
		})
	}
}

// fileAt returns a group file with files at these paths, one per line from the seventh on.
func fileAt(head string, paths ...string) string {
	var b strings.Builder
	b.WriteString("name: web\nprovider: process\nsize: 2\nworkload: {run: [./web]}\n" + head + "\nfiles:\n")
	for _, path := range paths {
		fmt.Fprintf(&b, "- {path: %q, text: hello}\n", path)
	}
	return b.String()
}

// A new file that an agent cannot write is refused where it is in the text. What is not known to be
// outside is left to the machine.
//
// proves FILE-1
func TestFilesOutsideOfTheAgentsDirectories(t *testing.T) {
	const vars = "vars: {home: /srv/app, below: ..}"
	for name, c := range map[string]struct {
		change func(w *world)
		head   string
		path   string
		says   string // "": it is applied
	}{
		"below":                {path: filesRoot + "/app.conf"},
		"below one alone":      {path: "/srv/app.conf", says: "agent of web-0-a1 writes files (/etc/leasehold-files)"},
		"outside":              {path: "/opt/new", says: "/opt/new is in no directory"},
		"with a similar name":  {path: filesRoot + "-2/a", says: "add /etc/leasehold-files-2 to"},
		"the directory itself": {path: filesRoot, says: "is in no directory"},
		"by a variable":        {path: "${home}/a", says: "/srv/app/a is in no directory"},
		"out by a variable":    {path: filesRoot + "/${below}/a", says: "is in no directory"},
		"by a fact":            {path: "/srv/${instance}/a", says: "/srv/web-0-a1/a is in no directory"},
		"below by a fact":      {path: filesRoot + "/${slot}/a"},
		"by the machine's":     {path: "${dir}/files/a"},
		"wanted before":        {path: "/opt/old"},
		"wanted before, other": {path: "/opt/old", head: "template: {zones: [a, b]}"},
		"for other machines":   {path: "/opt/new", head: "template: {instance_type: large}"},
		"not connected": {path: "/opt/new", change: func(w *world) {
			for _, id := range []string{"web-0-a1", "web-1-b1"} {
				w.put(store.KindAlive, id, store.Alive{Schema: 1, Instance: id, BootID: "boot1", State: store.StreamLeft})
			}
		}},
		"of another boot": {path: "/opt/new", change: func(w *world) {
			for _, id := range []string{"web-0-a1", "web-1-b1"} {
				w.put(store.KindAlive, id, store.Alive{Schema: 1, Instance: id, BootID: "boot2", State: store.StreamOpen})
			}
		}},
		"leaving": {path: "/srv/a", change: func(w *world) {
			w.put(store.KindInstances, "web-0-a1", instanceOf(webGroup(2), 0, "web-0-a1", store.Draining))
		}},
		"of an older agent": {path: "/opt/new", change: func(w *world) {
			for _, id := range []string{"web-0-a1", "web-1-b1"} {
				w.put(store.KindReports, id, store.Report{Schema: 1, Instance: id, BootID: "boot1"})
			}
		}},
		"of an older and a new agent": {path: "/opt/new", says: "the agent of web-1-b1", change: func(w *world) {
			w.put(store.KindReports, "web-0-a1", store.Report{Schema: 1, Instance: "web-0-a1", BootID: "boot1"})
		}},
		"on a machine of its own directory": {
			path: "/opt/new", says: "choose a path below ${dir}/files, or add /opt", change: func(w *world) {
				w.put(store.KindReports, "web-0-a1", store.Report{
					Schema: 1, Instance: "web-0-a1", BootID: "boot1", FilesRoots: []string{"/var/machines/web-0-a1/work/files"},
				})
			},
		},
		"unreadable": {path: "/srv/a", change: func(w *world) { w.put(store.KindReports, "web-0-a1", "}garbage") }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			withRoots(w)
			if c.change != nil {
				c.change(w)
			}
			if c.head == "" {
				c.head = vars
			}
			text := fileAt(c.head, c.path)
			before := w.revision(store.KindGroups, "web")
			dir := t.TempDir()
			file := filepath.Join(dir, "web.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			edit := basedOn(before)
			edit.DryRun = true
			_, foreseen := w.eva().Apply(t.Context(), "web", []byte(text), edit)
			dry, _, drySays := w.run("group", "apply", "-f", file, "--dry-run")
			differs, _, differsSays := w.run("apply", "-f", dir, "--diff")
			if c.says == "" {
				if foreseen != nil || dry != Done || differs != Differs && differs != Done {
					t.Errorf("a dry run is refused: %v; %d: %s; %d: %s", foreseen, dry, drySays, differs, differsSays)
				}
				if code, _, says := w.run("group", "apply", "-f", file); code != Done {
					t.Errorf("it is refused: %d: %s", code, says)
				}
				return
			}
			refusedByAPI(t, "a dry run", foreseen, http.StatusUnprocessableEntity, c.says)
			edit.DryRun = false
			_, err := w.eva().Apply(t.Context(), "web", []byte(text), edit)
			refusedByAPI(t, "an edit", err, http.StatusUnprocessableEntity, c.says)
			for command, says := range map[string]string{
				"group apply --dry-run": drySays, "apply --diff": differsSays,
				"group apply": w.refused("group", "apply", "-f", file), "apply": w.refused("apply", "-f", dir),
			} {
				if !strings.Contains(says, c.says) || !strings.Contains(says, file+":7:10)") {
					t.Errorf("%s says %s", command, says)
				}
			}
			if w.revision(store.KindGroups, "web") != before {
				t.Error("it is written")
			}
		})
	}
}

// refused runs a command that is to fail, and returns what it says.
func (w *world) refused(args ...string) string {
	w.t.Helper()
	code, _, says := w.run(args...)
	if code != Failed {
		w.t.Errorf("%v ends with %d", args, code)
	}
	return says
}

// An edited text is refused and kept. The key and the bundle of a certificate are files, too. A new
// group has no agents that could say anything.
//
// proves FILE-1
func TestFilesOutsideInTextsAndCertificates(t *testing.T) {
	w := newWorld(t)
	withRoots(w)
	text := fileAt("vars: {}") + "- path: /etc/leasehold-files/tls.crt\n" +
		"  certificate: {authority: web, names: [a.example], key: /srv/tls.key, bundle: /opt/ca.crt}\n"
	w.edit = func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	says := w.refused("group", "edit", "web")
	for _, part := range []string{
		"files[0].certificate.key: /srv/tls.key is in no directory", "files[0].certificate.bundle: /opt/ca.crt is in no",
		":8:", "then leasehold group apply -f", "your text is kept in",
	} {
		if !strings.Contains(says, part) {
			t.Errorf("%q is missing in %s", part, says)
		}
	}
	file := filepath.Join(t.TempDir(), "other.yaml")
	other := strings.Replace(fileAt("vars: {}", "/opt/new"), "name: web", "name: other", 1)
	if err := os.WriteFile(file, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, says := w.run("group", "apply", "-f", file); code != Done {
		t.Errorf("a new group is refused: %s", says)
	}
}

// A static group is judged with what is set beside it.
//
// proves FILE-1, REC-6
func TestFilesOutsideInAStaticGroup(t *testing.T) {
	w := newWorld(t)
	withRoots(w)
	g := w.spec("web")
	if _, err := w.st.Commit(t.Context(), store.Txn{Writes: []store.Write{
		store.Delete(w.keys.Group("web")), store.Put(w.keys.Static("web"), store.Encode(g)),
	}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "shard.yaml")
	if err := os.WriteFile(file, []byte(fileAt("vars: {home: /srv}", "${home}/a")), 0o600); err != nil {
		t.Fatal(err)
	}
	if says := w.refused("config", "apply", "-f", file); !strings.Contains(says, "files[0].path: /srv/a is in no") ||
		!strings.Contains(says, "shard.yaml:7:10)") {
		t.Errorf("config apply says %s", says)
	}
}
