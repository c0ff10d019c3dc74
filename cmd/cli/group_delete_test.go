package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A group whose spec is gone or wrong can be deleted: the replacement is a spec that a leader
// accepts.
//
// proves REC-7
func TestDeleteNeedsNoUsableSpec(t *testing.T) {
	for _, c := range []struct {
		name   string
		begin  func(w *world)
		code   Code
		size   int
		says   []string
		stdout string
	}{
		{
			"the key is gone", func(w *world) { w.put(store.KindStatus, "web", statusOf(webGroup(3), 5, 3)) }, Done, 3,
			[]string{"its key in groups/ was missing: the spec in force, of revision 5, is written in its place"},
			"web deleting rev 3\n",
		},
		{
			"the key is gone and no spec was ever in force", func(w *world) {
				w.put(store.KindStatus, "web", store.Status{Schema: 1, Group: "web", State: store.GroupRefused})
			}, Done, 0,
			[]string{"its key in groups/ was missing, and no spec is in force: an empty one"},
			"web deleting rev 3\n",
		},
		{
			"wrong", func(w *world) {
				w.put(store.KindGroups, "web", `{"schema":1,"name":"web","provider":"process","size":-1}`)
				w.put(store.KindStatus, "web", statusOf(webGroup(3), 5, 3))
			}, Done, 3,
			[]string{"its spec of revision 2 could not be used (size: -1: must be 0 to 100000): the spec in force, " +
				"of revision 5,"},
			"web deleting rev 4\n",
		},
		{"wrong and marked by hand", func(w *world) {
			w.put(store.KindGroups, "web", `{"schema":1,"name":"web","provider":"process","size":-1,"deleting":true}`)
		}, Done, 0, []string{"no spec is in force: an empty one"}, "web deleting rev 3\n"},
		{
			"no JSON", func(w *world) { w.put(store.KindGroups, "web", "web") }, Done, 0,
			[]string{"its spec of revision 2 could not be used (invalid"},
			"web deleting rev 3\n",
		},
		{"under another name", func(w *world) {
			w.put(store.KindGroups, "web", `{"schema":1,"name":"api","provider":"process"}`)
		}, Done, 0, []string{`(its name is "api", its key says "web")`}, "web deleting rev 3\n"},
		{"neither", func(*world) {}, NotFound, 0, []string{`no group "web"`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.begin(w)
			code, stdout, stderr := w.run("group", "delete", "web", "--confirm=web")
			if code != c.code || stdout != c.stdout {
				t.Errorf("exit %d: %s%s", code, stdout, stderr)
			}
			for _, say := range c.says {
				if !strings.Contains(stderr, say) {
					t.Errorf("%q is missing in\n%s", say, stderr)
				}
			}
			if code != Done {
				return
			}
			if g := w.spec("web"); !g.Deleting || g.Size != c.size || g.Name != "web" {
				t.Errorf("got %+v", g)
			}
			if code, stdout, stderr = w.run("group", "delete", "web"); code != Done ||
				!strings.Contains(stdout, "web unchanged") ||
				!strings.Contains(stderr, "already being deleted; watch it with: leasehold events -g web --follow") {
				t.Errorf("again: exit %d: %s%s", code, stdout, stderr)
			}
		})
	}
}

// A concurrent write of the key wins, whether the key was there before or not.
//
// proves REC-14
func TestDeleteInPlaceOfASpecLosesARace(t *testing.T) {
	for _, before := range []string{"", "nonsense"} {
		w := newWorld(t)
		w.put(store.KindStatus, "web", statusOf(webGroup(3), 5, 3))
		if before != "" {
			w.put(store.KindGroups, "web", before)
		}
		w.race(func() { w.put(store.KindGroups, "web", webGroup(7)) })
		code, stdout, stderr := w.run("group", "delete", "web", "--confirm=web")
		if code != Conflict || stdout != "" || w.spec("web").Deleting {
			t.Errorf("%q: exit %d: %s%s", before, code, stdout, stderr)
		}
	}
}

// A group that a leader is deleting is not written again when its key is gone.
func TestDeleteOfAGroupThatIsGoing(t *testing.T) {
	w := newWorld(t)
	g := webGroup(3)
	g.Deleting = true
	st := statusOf(g, 5, 3)
	st.State = store.GroupDeleting
	w.put(store.KindStatus, "web", st)
	code, stdout, stderr := w.run("group", "delete", "web")
	if code != Done || stdout != "web unchanged rev -\n" || !strings.Contains(stderr, "already being deleted") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// A change to a group that is being deleted would be lost with it: it is refused, and a dry run
// warns.
//
// proves REC-7
func TestApplyToAGroupThatIsGoing(t *testing.T) {
	w := newWorld(t)
	g := webGroup(3)
	g.Deleting = true
	w.put(store.KindGroups, "web", g)
	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte("name: web\nprovider: process\nsize: 3\n---\nname: new\nprovider: process\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	code, out, err := w.run("group", "apply", "-f", file)
	w.expect(code, out, err, Conflict, "2>group web is being deleted", "2>next: leasehold group delete web --wait")
	if code, _, _ := w.run("group", "show", "new"); code != NotFound {
		t.Errorf("another group of the file was written, exit %d", code)
	}
	for _, look := range []string{"group diff -f " + file, "group apply --dry-run -f " + file} {
		code, out, err := w.run(strings.Fields(look)...)
		w.expect(code, out, err, Done, "2>warning: web is being deleted: no change can be applied until it is gone")
	}
	if _, err := w.st.Commit(t.Context(),
		store.Txn{Writes: []store.Write{store.Delete(w.keys.Group("web"))}}); err != nil {
		t.Fatal(err)
	}
	if out := w.must("group", "apply", "-f", file); !strings.Contains(out, "web created") {
		t.Error(out)
	}
}

// A key with a name that no group can have is removed: a leader would refuse any value in it.
func TestDeleteOfANameThatNoGroupCanHave(t *testing.T) {
	w := newWorld(t)
	w.put(store.KindGroups, "Web", webGroup(3))
	code, stdout, stderr := w.run("group", "delete", "Web", "--confirm=Web")
	if code != Done || stdout != "Web removed rev 3\n" || !strings.Contains(stderr, "no group can have this name") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if code, _, _ := w.run("group", "delete", "Web"); code != NotFound {
		t.Errorf("it is still there: exit %d", code)
	}
}
