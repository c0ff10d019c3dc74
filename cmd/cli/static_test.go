package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/store"
)

// staticWorld has the static groups of shard.yaml.
func staticWorld(t *testing.T) *world {
	w := newWorld(t)
	w.serve()
	t.Chdir(t.TempDir())
	for name, text := range transcriptFiles {
		write(t, name, text)
	}
	w.must("config", "apply", "-f", "shard.yaml")
	return w
}

// beside returns what is set beside a static group.
func (w *world) beside(name string) store.Override {
	w.t.Helper()
	kv, err := w.st.Get(w.t.Context(), w.keys.Group(name))
	if err != nil {
		w.t.Fatalf("get override of %s: %v", name, err)
	}
	o, err := store.ReadOverride(kv.Value)
	if err != nil {
		w.t.Fatalf("%v in %s", err, kv.Value)
	}
	return o
}

// revision returns a record's revision.
func (w *world) revision(kind, name string) store.Revision {
	w.t.Helper()
	kv, err := w.st.Get(w.t.Context(), w.keys.Of(kind)+name)
	if err != nil {
		w.t.Fatalf("get %s of %s: %v", name, kind, err)
	}
	return kv.Modified
}

func (w *world) inForce(name string) store.Group {
	w.t.Helper()
	static, err := w.st.Get(w.t.Context(), w.keys.Static(name))
	if err != nil {
		w.t.Fatal(err)
	}
	kv, err := w.st.Get(w.t.Context(), w.keys.Group(name))
	if err != nil {
		kv = store.KV{}
	}
	g, err := store.ReadInForce(static.Value, kv.Value)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

// Every command that edits a group works with a static one, and what it leaves in groups/ is an
// override.
//
// proves REC-6
func TestCommandsEditAStaticGroup(t *testing.T) {
	for _, c := range []struct {
		args string
		is   func(g store.Group) bool
	}{
		{"group scale web 7", func(g store.Group) bool { return g.Size == 7 }},
		{"group pause web", func(g store.Group) bool { return g.Paused }},
		{"group stop web --confirm=web", func(g store.Group) bool { return g.Stopped && g.Size == 3 }},
		{"group restart web --recreate", func(g store.Group) bool {
			return g.Relaunch == store.Relaunch{Number: 1, Action: store.ActionRecreate}
		}},
		{"group apply -f more.yaml", func(g store.Group) bool {
			return g.Size == 5 && g.Template.InstanceType == "large" && g.Vars["colour"] == "blue" &&
				g.Workload.Run[0] == "./web"
		}},
		{"group delete web --confirm=web", func(g store.Group) bool { return g.Deleting }},
	} {
		w := staticWorld(t)
		w.must(strings.Fields(c.args)...)
		w.beside("web")
		if g := w.inForce("web"); !c.is(g) {
			t.Errorf("%s: %+v is in force", c.args, g)
		}
	}
}

// What commands set is kept by a file, and what a file leaves out is as the static group says.
//
// proves REC-6
func TestAFileBesideAStaticGroup(t *testing.T) {
	w := staticWorld(t)
	w.must("group", "pause", "web")
	w.must("group", "apply", "-f", "more.yaml")
	w.must("group", "apply", "-f", "less.yaml", "--confirm=web")
	if g := w.inForce("web"); g.Size != 1 || g.Template.InstanceType != "" || g.Vars["colour"] != "red" || !g.Paused {
		t.Errorf("got %+v", g)
	}
	w.must("group", "resume", "web")
	if o := w.beside("web"); o.Paused || *o.Size != 1 {
		t.Errorf("got %+v", o)
	}
}

// --if-revision is the newer revision of a static group and of what is set beside it, as every
// command shows it.
func TestApplyBesideAStaticGroupAtARevision(t *testing.T) {
	w := staticWorld(t)
	at := func(rev store.Revision) []string {
		return []string{"group", "apply", "-f", "more.yaml", "--if-revision", fmt.Sprint(int64(rev))}
	}
	static := w.revision(store.KindStatic, "web")
	for _, rev := range []store.Revision{0, static - 1} {
		if code, _, stderr := w.run(at(rev)...); code != Conflict ||
			!strings.Contains(stderr, fmt.Sprintf("at revision %d", static)) {
			t.Errorf("at revision %d: exit %d: %s", rev, code, stderr)
		}
	}
	if out := w.must("group", "apply", "-f", "more.yaml", "--dry-run"); !strings.Contains(out,
		fmt.Sprintf("--if-revision %d\n", static)) {
		t.Errorf("dry run of a static group at revision %d: %s", static, out)
	}
	w.must(at(static)...)
	beside := w.revision(store.KindGroups, "web")
	if code, _, stderr := w.run("group", "apply", "-f", "less.yaml", "--if-revision", fmt.Sprint(int64(static)),
		"--confirm=web"); code != Conflict ||
		!strings.Contains(stderr, fmt.Sprintf("group web is at revision %d, not %d", beside, static)) {
		t.Errorf("exit %d: %s", code, stderr)
	}
	w.must("group", "apply", "-f", "less.yaml", "--if-revision", fmt.Sprint(int64(beside)), "--confirm=web")
}

// The list has what is in force.
//
// proves REC-6
func TestTheListHasTheMerge(t *testing.T) {
	w := staticWorld(t)
	w.must("group", "scale", "web", "7")
	var all []store.Group
	if err := json.Unmarshal([]byte(w.must("group", "list", "-o", "json")), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[1].Size != 7 || all[1].Provider != "process" {
		t.Errorf("got %+v", all)
	}
}

// A change of either key is a change of the group that is waited for.
func TestWaitForAStaticGroup(t *testing.T) {
	waitWorld(t, func(w *world) {
		g := named("api", 1)
		w.put(store.KindStatic, "api", g)
		r := w.start("group scale api 2 --wait")
		g.Size = 2
		w.put(store.KindStatus, "api", statusOf(g, 10, 2))
		for slot, id := range []string{"api-0-a", "api-1-b"} {
			w.put(store.KindInstances, id, instanceOf(g, slot, id, store.Running))
		}
		r.expect(Done, "done: api 2/2 running")

		r = w.start("group scale api 3 --wait")
		g.Size = 4
		w.put(store.KindStatic, "api", g)
		r.expect(Conflict, "group api: it was changed")
	})
}

// proves REC-6
func TestEditOfAStaticGroup(t *testing.T) {
	w := staticWorld(t)
	t.Setenv("TMPDIR", t.TempDir())
	w.must("group", "scale", "web", "4")
	w.edit = func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "# Group web is static") ||
			!strings.Contains(string(text), "#   provider: process") ||
			!strings.HasSuffix(string(text), "\nname: web\nsize: 4\n") {
			t.Errorf("the draft is %s, %v", text, err)
		}
		return replaceIn(path, "\nname: web\nsize: 4", "\nname: web\nsize: 6\nvars: {colour: green}")
	}
	w.must("group", "edit", "web")
	if g := w.inForce("web"); g.Size != 6 || g.Vars["colour"] != "green" {
		t.Errorf("got %+v", g)
	}
	w.edit = func(path string) error { return replaceIn(path, "\nname: web", "\nname: web\nprovider: qemu") }
	if code, _, stderr := w.run("group", "edit", "web"); code != Failed ||
		!strings.Contains(stderr, `provider: "qemu": cannot be set: the group is static`) ||
		!strings.Contains(stderr, "your text is kept in") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// An edit of either key beside or below a static group makes the later edit of the other fail.
//
// proves REC-14
func TestALostRaceAboutAStaticGroup(t *testing.T) {
	w := staticWorld(t)
	other := w.inForce("web")
	other.Size = 9
	w.race(func() { w.put(store.KindStatic, "web", other) })
	code, stdout, stderr := w.run("group", "scale", "web", "5")
	if code != Conflict || stdout != "" || !strings.HasPrefix(stderr, "error: static group web: it was changed") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	w.race(func() { w.put(store.KindGroups, "web", store.Override{Schema: 1, Name: "web"}) })
	code, _, stderr = w.run("config", "apply", "-f", "next.yaml", "--confirm=web")
	if code != Conflict || !strings.HasPrefix(stderr, "error: group web: it was created") ||
		w.inForce("web").Size != 9 {
		t.Errorf("exit %d: %s", code, stderr)
	}
	// A group that becomes static while it is edited as a whole stays as it was.
	w.put(store.KindGroups, "new", named("new", 1))
	w.race(func() { w.put(store.KindStatic, "new", named("new", 2)) })
	if code, _, stderr := w.run("group", "scale", "new", "5"); code != Conflict ||
		!strings.HasPrefix(stderr, "error: static group new: it was created") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A hand-written record beside a static group does not stop the commands that mend it.
//
// proves SAFE-10
func TestAnOverrideThatCannotBeUsed(t *testing.T) {
	w := staticWorld(t)
	w.put(store.KindGroups, "web", `{"schema":1,"name":"web","provider":"qemu","paused":true}`)
	if code, _, stderr := w.run("group", "scale", "web", "5"); code != Failed ||
		!strings.Contains(stderr, "group web: the override of revision 9 cannot be used") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if out := w.must("group", "apply", "-f", "more.yaml"); !strings.Contains(out, "it is replaced as a whole") {
		t.Error(out)
	}
	if g := w.inForce("web"); g.Size != 5 || !g.Paused {
		t.Errorf("got %+v", g)
	}
	w.put(store.KindStatic, "api", "nonsense")
	if code, _, stderr := w.run("group", "scale", "api", "5"); code != Failed ||
		!strings.Contains(stderr, "next: leasehold config apply -f FILE") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if out := w.must("config", "apply", "-f", "shard.yaml"); !strings.Contains(out, "api changed rev") ||
		w.inForce("api").Size != 2 {
		t.Error(out)
	}
}

// static/ alone says that a static group is deleted: its override does not repeat it, which could
// outlive it.
//
// proves REC-7
func TestWhatIsSetBesideAGroupThatGoes(t *testing.T) {
	w := staticWorld(t)
	w.must("config", "apply", "-f", "next.yaml", "--prune", "--confirm=web", "--confirm=api")
	w.must("group", "scale", "api", "5")
	if o := w.beside("api"); o.Deleting || *o.Size != 5 || !w.inForce("api").Deleting {
		t.Errorf("got %+v", o)
	}
	if out := w.must("group", "delete", "api"); !strings.Contains(out, "it is already being deleted") {
		t.Error(out)
	}
}

// As many groups as a file may have are written in one transaction.
func TestConfigApplyOfAFullFile(t *testing.T) {
	w := newWorld(t)
	t.Chdir(t.TempDir())
	var b strings.Builder
	for n := range groupfile.MaxGroups {
		fmt.Fprintf(&b, "---\nname: g%d\nprovider: process\n", n)
	}
	write(t, "full.yaml", b.String())
	for _, args := range []string{"config apply -f full.yaml", "group list"} {
		if out := w.must(strings.Fields(args)...); strings.Count(out, "\ng") < groupfile.MaxGroups-1 {
			t.Errorf("%s: %s", args, out)
		}
	}
	write(t, "none.yaml", "name: g0\nprovider: process\n")
	args := []string{"config", "apply", "-f", "none.yaml", "--prune"}
	for n := range groupfile.MaxGroups {
		args = append(args, fmt.Sprintf("--confirm=g%d", n))
	}
	if out := w.must(args...); strings.Count(out, " deleting rev ") != groupfile.MaxGroups-1 {
		t.Error(out)
	}
}

// proves ROLL-4
func TestRollbackOfAStaticGroupIsTheFilesAffair(t *testing.T) {
	w := staticWorld(t)
	st := statusOf(w.inForce("web"), 9, 3)
	good := st.Accepted.InstanceSpec()
	good.Workload.Run = []string{"./old"}
	st.LastGood = &store.GoodSpec{Revision: 4, Template: good.TemplateHash(), Spec: good}
	w.put(store.KindStatus, "web", st)
	code, _, stderr := w.run("group", "rollback", "web")
	if code != Failed || !strings.Contains(stderr, "group web is static: its template is in the shard's file") ||
		!strings.Contains(stderr, "back into the shard's file, then leasehold config apply -f FILE") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A static group shrinks by its file as by any edit: confirmed. All groups of a file are written,
// or none.
//
// proves REC-6, REC-14
func TestConfigApplyIsAllOrNothing(t *testing.T) {
	w := staticWorld(t)
	if code, _, stderr := w.run("config", "apply", "-f", "next.yaml"); code != Usage ||
		!strings.Contains(stderr, "group web shrinks from 3 to 2 instances") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	w.put(store.KindGroups, "b", named("b", 1))
	before := w.all(w.keys)
	if code, _, stderr := w.run("config", "apply", "-f", "two.yaml"); code != Failed ||
		!strings.Contains(stderr, "group b is in groups/ already") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if now := w.all(w.keys); now != before {
		t.Errorf("half of the file was applied:\n%s", now)
	}
}

// What was set beside a static group and vanished is still in force: the status says so, and any
// command has it back, whole.
//
// proves SAFE-10
func TestWhatWasSetBesideAStaticGroupIsMissing(t *testing.T) {
	missing := func() *world {
		w := staticWorld(t)
		w.must("group", "apply", "-f", "more.yaml")
		st := statusOf(w.inForce("web"), w.revision(store.KindGroups, "web"), 5)
		st.Beside = &store.Beside{Revision: st.AcceptedRevision, Override: w.beside("web")}
		w.put(store.KindStatus, "web", st)
		if _, err := w.st.Commit(t.Context(),
			store.Txn{Writes: []store.Write{store.Delete(w.keys.Group("web"))}}); err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := missing()
	out := w.must("status")
	for _, want := range []string{
		"SAFE-10: what was set beside the static group at revision",
		"next: leasehold group scale web 5\n", "missing from groups/web",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the status does not say %q:\n%s", want, out)
		}
	}
	w.must("group", "scale", "web", "5")
	if g := w.inForce("web"); g.Size != 5 || g.Template.InstanceType != "large" || g.Vars["colour"] != "blue" {
		t.Errorf("%+v is in force", g)
	}
	if out := w.must("status"); strings.Contains(out, "missing") {
		t.Error(out)
	}

	w = missing()
	if code, _, stderr := w.run("group", "apply", "-f", "less.yaml"); code != Usage ||
		!strings.Contains(stderr, "shrinks from 5") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	w.must("group", "apply", "-f", "less.yaml", "--confirm=web")
	if g := w.inForce("web"); g.Size != 1 || g.Template.InstanceType != "" {
		t.Errorf("%+v is in force", g)
	}

	w = missing()
	if out := w.must("config", "apply", "-f", "shard.yaml"); !strings.Contains(out, "missing from groups/web") {
		t.Error(out)
	}
	w.must("config", "apply", "-f", "next.yaml", "--prune", "--confirm=web", "--confirm=api")
	if g := w.inForce("api"); !g.Deleting {
		t.Errorf("%+v is in force", g)
	}
}
