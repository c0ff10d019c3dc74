package cli

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// readerFunc is a reader that is a function.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// An operator who releases a hold that the shard put on itself has seen the machines that caused
// it: that is recorded, and the command says what happens to them.
//
// proves SAFE-12, REC-8
func TestReleaseOfAHoldForExtraMachines(t *testing.T) {
	w := newWorld(t)
	shard := func() store.Shard {
		t.Helper()
		kv, err := w.st.Get(t.Context(), w.keys.Shard())
		if err != nil {
			t.Fatal(err)
		}
		v, err := store.Decode[store.Shard](kv)
		if err != nil {
			t.Fatal(err)
		}
		return v.Record
	}
	const why = "4 machines have our tag and no record: web-0-a, web-1-b"
	held := store.Shard{
		Schema: store.Schema, ID: "x1", Name: "default",
		Settings: store.ShardSettings{OrphanGrace: store.Duration(20 * time.Minute)},
	}
	held.Hold = &store.Hold{By: "leasehold", Why: why, At: noon.Add(-time.Hour), Extras: 4}
	w.put(store.KindShard, "", held)
	_, stdout, stderr := w.run("release")
	if !strings.HasPrefix(stdout, "default released rev ") {
		t.Errorf("printed %s", stdout)
	}
	for _, want := range []string{
		why,
		"orphan_grace starts again: those not adopted within 20m0s are removed permanently",
		"leasehold instance adopt ID",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("the operator is not told %q:\n%s", want, stderr)
		}
	}
	if s := shard(); s.Hold != nil || s.Reviewed == nil || *s.Reviewed != (store.Reviewed{Extras: 4, At: noon}) {
		t.Errorf("the shard's record is %+v", s)
	}
	if code, _, stderr := w.run("hold", ""); code != Usage || !strings.Contains(stderr, "why: missing") ||
		shard().Hold != nil {
		t.Errorf("a hold without a reason: exit %d: %s", code, stderr)
	}
	// The next hold is an operator's: its end says nothing of machines, and the earlier review is
	// kept.
	w.must("hold", "a drill")
	if out := w.must("release"); strings.Contains(out, "orphan_grace") || shard().Reviewed == nil {
		t.Errorf("printed %s", out)
	}
	// Machines for lost records are made only once that is confirmed: the old ones may still run.
	g := webGroup(2)
	w.put(store.KindStatus, "web", statusOf(g, w.put(store.KindGroups, "web", g), 0))
	lost := held
	lost.Hold = &store.Hold{By: "leasehold", Why: "2 records are lost", At: noon, Damage: 2}
	w.put(store.KindShard, "", lost)
	if code, _, stderr := w.run("release"); code != Usage || !strings.Contains(stderr, "--confirm=default") ||
		shard().Hold == nil {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := w.run("release", "--dry-run"); code != Done || shard().Hold == nil {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := w.run("release", "--confirm=default"); code != Done || shard().Hold != nil {
		t.Errorf("exit %d: %s", code, stderr)
	}
	// A hold that got another reason while the operator was thinking is not released.
	w.put(store.KindShard, "", lost)
	more := lost
	more.Hold = &store.Hold{By: "leasehold", Why: "300 records are lost", At: noon, Damage: 300, Seen: 9}
	w.terminal = true
	w.stdin = io.MultiReader(readerFunc(func([]byte) (int, error) {
		w.put(store.KindShard, "", more)
		return 0, io.EOF
	}), strings.NewReader("default\n"))
	if code, _, stderr := w.run("release"); code != Conflict || shard().Hold == nil || shard().Hold.Damage != 300 {
		t.Errorf("exit %d, the hold is %+v: %s", code, shard().Hold, stderr)
	}
	w.terminal = false
	// A release that cannot be written is not reported.
	w.put(store.KindShard, "", held)
	w.race(func() { w.put(store.KindShard, "", held) })
	if code, _, stderr := w.run("release"); code != Conflict || strings.Contains(stderr, "orphan_grace") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
