package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// raced lets something happen right before the first transaction.
type raced struct {
	store.Store
	once  sync.Once
	first func()
}

func (r *raced) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	r.once.Do(r.first)
	return r.Store.Commit(ctx, txn)
}

// race makes the next writing command lose against first.
func (w *world) race(first func()) {
	plain := w.st
	w.st = &raced{Store: plain, first: func() {
		mine := w.st
		w.st = plain
		first()
		w.st = mine
	}}
}

// For any command that edits a group, an earlier edit is kept and the later one ends with 4.
//
// proves REC-14
func TestALostRaceChangesNothing(t *testing.T) {
	for _, c := range []struct{ name, args, next string }{
		{"scale", "group scale web 9", "leasehold group show web, then leasehold group scale web 9"},
		{"stop", "group stop web --confirm=web", "leasehold group show web, then leasehold group stop web"},
		{"restart", "group restart web", "leasehold group show web, then leasehold group restart web"},
		{"pause", "group pause web", "leasehold group show web, then leasehold group pause web"},
		{"apply", "group apply -f web.yaml", "leasehold group diff -f web.yaml, then leasehold group apply again"},
		{
			"apply of two files", "group apply -f web.yaml -f two.yaml",
			"leasehold group diff -f web.yaml -f two.yaml, then leasehold group apply again",
		},
		{"apply at a revision", "group apply -f web.yaml --if-revision 2", "leasehold group diff -f web.yaml"},
		{"delete", "group delete web --confirm=web", "leasehold group show web"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			t.Chdir(t.TempDir())
			write(t, "web.yaml", transcriptFiles["web.yaml"])
			write(t, "two.yaml", transcriptFiles["two.yaml"])
			w.put(store.KindGroups, "web", webGroup(3))
			w.race(func() { w.put(store.KindGroups, "web", webGroup(7)) })
			code, stdout, stderr := w.run(strings.Fields(c.args)...)
			if code != Conflict || stdout != "" {
				t.Errorf("exit %d, printed %q", code, stdout)
			}
			want := "error: group web: it was changed (revision 3) after revision 2, on which this edit was based; " +
				"that change stands, and nothing was written\nnext: " + c.next
			if !strings.HasPrefix(stderr, want) {
				t.Errorf("got  %s\nwant %s", stderr, want)
			}
			if g := w.spec("web"); g.Size != 7 || g.OperatorState != (store.OperatorState{}) {
				t.Errorf("the winner's edit is gone: %+v", g)
			}
		})
	}
}

// A group created at the same moment is not overwritten either, and a file is applied as a whole or
// not at all.
//
// proves REC-14
func TestALostRaceAboutANewGroup(t *testing.T) {
	w := newWorld(t)
	t.Chdir(t.TempDir())
	write(t, "two.yaml", transcriptFiles["two.yaml"])
	w.race(func() {
		g := webGroup(7)
		g.Name = "b"
		w.put(store.KindGroups, "b", g)
	})
	code, _, stderr := w.run("group", "apply", "-f", "two.yaml")
	if code != Conflict || !strings.Contains(stderr, "group b: it was created in the meantime (revision 2)") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, _ := w.run("group", "show", "a"); code != NotFound {
		t.Errorf("half of the file was applied")
	}
}

// together holds every transaction back until all who take part have theirs ready.
type together struct {
	store.Store
	ready *sync.WaitGroup
}

func (m together) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	m.ready.Done()
	m.ready.Wait()
	return m.Store.Commit(ctx, txn)
}

// Of many edits based on the same revision, exactly one wins, and all others report that.
//
// proves REC-14
func TestOfConcurrentEditsExactlyOneWins(t *testing.T) {
	const editors = 8
	w := newWorld(t)
	w.put(store.KindGroups, "web", webGroup(1))
	var all, ready sync.WaitGroup
	ready.Add(editors)
	codes := make([]Code, editors)
	for i := range editors {
		all.Go(func() {
			one := *w
			one.st = together{Store: w.db.Connect(), ready: &ready}
			codes[i], _, _ = one.runCtx(t.Context(), "group", "scale", "web", strconv.Itoa(10+i))
		})
	}
	all.Wait()
	winner := -1
	for i, c := range codes {
		switch {
		case c == Done && winner < 0:
			winner = i
		case c != Conflict:
			t.Errorf("editor %d ended with %d", i, c)
		}
	}
	if winner < 0 || w.spec("web").Size != 10+winner {
		t.Errorf("editor %d won, and the size is %d", winner, w.spec("web").Size)
	}
}

func TestEditKeepsTheTextThatLost(t *testing.T) {
	w := newWorld(t)
	w.put(store.KindGroups, "web", webGroup(3))
	t.Setenv("TMPDIR", t.TempDir())
	var draft string
	w.edit = func(path string) error {
		draft = path
		w.put(store.KindGroups, "web", webGroup(7))
		return replaceIn(path, "size: 3", "size: 5")
	}
	code, _, stderr := w.run("group", "edit", "web")
	if code != Conflict || !strings.Contains(stderr, "your text is kept in "+draft) ||
		!strings.Contains(stderr, "next: leasehold group diff -f "+draft) {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if text, err := os.ReadFile(draft); err != nil || !strings.Contains(string(text), "size: 5") {
		t.Errorf("the text is gone: %v", err)
	}
	if w.spec("web").Size != 7 {
		t.Error("the winner's edit is gone")
	}
	// The kept text can be applied unchanged.
	if code, _, stderr := w.run("group", "apply", "-f", draft, "--confirm=web"); code != Done ||
		w.spec("web").Size != 5 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestEdit(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range []struct {
		name, old, new string
		code           Code
		says           string
		size           int
		next           string // with DRAFT for the file that is kept
	}{
		{"changed", "size: 3", "size: 5", Done, "web changed rev 3", 5, ""},
		{"left as it is", "", "", Done, "web unchanged rev 2", 3, ""},
		{"a comment only", "size: 3", "# three\nsize: 3", Done, "web unchanged rev 2", 3, ""},
		{
			"wrong", "size: 3", "sise: 3", Failed, "sise: unknown field: did you mean size?", 3,
			"correct DRAFT, then leasehold group apply -f DRAFT",
		},
		{
			"another group", "name: web", "name: api", Usage, "the text must define the group web and no other", 3,
			"leasehold group apply -f DRAFT, to change other groups",
		},
		{
			"smaller", "size: 3", "size: 1", Usage, "must be confirmed", 3,
			"leasehold group apply -f DRAFT --confirm=web",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			g := webGroup(3)
			g.Paused = true // an edit does not end a pause
			w.put(store.KindGroups, "web", g)
			var draft string
			w.edit = func(path string) error {
				draft = path
				return replaceIn(path, c.old, c.new)
			}
			code, stdout, stderr := w.run("group", "edit", "web")
			if code != c.code || !strings.Contains(stdout+stderr, c.says) {
				t.Errorf("exit %d: %s%s", code, stdout, stderr)
			}
			if got := w.spec("web"); got.Size != c.size || !got.Paused {
				t.Errorf("got %+v", got)
			}
			if _, err := os.Stat(draft); (err == nil) != (c.next != "") {
				t.Errorf("the draft: %v", err)
			}
			if next := "next: " + strings.ReplaceAll(c.next, "DRAFT", draft) + "\n"; c.next != "" &&
				!strings.HasSuffix(stderr, next) {
				t.Errorf("%q is missing in\n%s", next, stderr)
			}
		})
	}
}

func TestConfirmAtATerminal(t *testing.T) {
	for typed, want := range map[string]Code{"web\n": Done, "yes\n": Failed, "": Failed} {
		w := newWorld(t)
		w.terminal, w.stdin = true, strings.NewReader(typed)
		w.put(store.KindGroups, "web", webGroup(3))
		code, _, stderr := w.run("group", "delete", "web")
		if code != want || w.spec("web").Deleting != (want == Done) {
			t.Errorf("typed %q: exit %d: %s", typed, code, stderr)
		}
		if !strings.Contains(stderr, "type web to continue: ") {
			t.Errorf("not asked: %s", stderr)
		}
	}
}

// Answers that arrive together, as from a pipe at a terminal, are each the answer to one question.
func TestEachQuestionHasItsAnswer(t *testing.T) {
	inv := &Invocation{env: Env{Stdin: strings.NewReader("web\ndb\n"), Stderr: io.Discard, StdinTerminal: true}}
	if err := inv.confirmAll(t.Context(), nil, []act{{"web", "web ends"}, {"db", "db ends"}}); err != nil {
		t.Error(err)
	}
}

// Orders are keys for the leader, with the name of the operator.
//
// proves REC-16
func TestOrdersAreLeftForTheLeader(t *testing.T) {
	w := newWorld(t)
	w.put(store.KindInstances, "web-0-a", instanceOf(webGroup(1), 0, "web-0-a", store.Running))
	code, _, stderr := w.run("instance", "replace", "web-0-a")
	if code != Done || !strings.Contains(stderr, "no coordinator is running: the order is carried out when one is") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	kv, err := w.st.Get(t.Context(), w.keys.Request("order1"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.Decode[store.Request](kv)
	want := store.Request{
		Schema: 1, ID: "order1", Kind: store.RequestReplace, Group: "web", Instance: "web-0-a",
		By: "eve@desk", At: noon,
	}
	if err != nil || r.Record != want {
		t.Errorf("got %+v, %v", r.Record, err)
	}
	w.race(func() {
		if _, err := w.st.Commit(t.Context(),
			store.Txn{Writes: []store.Write{store.Delete(w.keys.Instance("web-0-a"))}}); err != nil {
			t.Error(err)
		}
	})
	if code, _, stderr := w.run("instance", "replace", "web-0-a"); code != Conflict ||
		!strings.Contains(stderr, "was removed in the meantime; no order was given") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A newer program's spec is neither shown as broken nor overwritten.
func TestANewerSchemaIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	t.Chdir(t.TempDir())
	write(t, "web.yaml", transcriptFiles["web.yaml"])
	w.put(store.KindGroups, "web", `{"schema":99,"name":"web"}`)
	for _, args := range []string{"group apply -f web.yaml", "group scale web 3", "group delete web --confirm=web"} {
		code, _, stderr := w.run(strings.Fields(args)...)
		if code != Failed || !strings.Contains(stderr, "newer schema") ||
			!strings.Contains(stderr, "next: leasehold version") {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
}

// A hint can be pasted into a shell, for any file names.
func TestFileFlags(t *testing.T) {
	f := Files{Files: []string{"a.yaml", "-", "it's here.yaml"}}
	if got, want := f.flags(), `-f a.yaml -f - -f 'it'\''s here.yaml'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func replaceIn(path, old, new string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), old, new, 1)), 0o600)
}
