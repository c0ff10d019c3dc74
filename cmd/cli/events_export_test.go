package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// past puts a group with some history: an instance that died an hour ago, and the summary of a day
// that the journal no longer has.
func (w *world) past() {
	w.serve()
	w.put(store.KindShard, "", store.Shard{
		Schema: store.Schema, ID: "x1", Name: "default", Created: noon.AddDate(0, 0, -60),
		Settings: store.DefaultShardSettings(),
	})
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = "web", 1, "process"
	g.Complete()
	rev := w.put(store.KindGroups, "web", g)
	w.put(store.KindStatus, "web", statusOf(g, rev, 1))
	slot := 0
	w.journal(time.Hour, store.JournalEntry{
		Group: "web", Instance: "web-0-a", Slot: &slot, Kind: store.EntryVerdict, Verdict: store.Dead,
	})
	w.journal(time.Hour-time.Second, store.JournalEntry{
		Group: "web", Instance: "web-0-a", Slot: &slot, From: store.Running, To: store.Deleting, Verdict: store.Dead,
		Replacement: "web-0-b", Cause: store.Cause{Kind: store.CauseDown},
	})
	w.journal(time.Hour-20*time.Second, store.JournalEntry{
		Group: "web", Instance: "web-0-b", Slot: &slot, From: store.Checking, To: store.Running,
	})
	day := noon.AddDate(0, 0, -20).UTC().Format(store.DayLayout)
	w.put(store.KindDays, day, store.DayDone{Schema: store.Schema, Day: day, Groups: 1})
	w.put(store.KindDays, day+"/web", store.Day{
		Schema: store.Schema, Group: "web", Day: day, Wanted: store.Duration(24 * time.Hour),
		Lost:   store.Duration(time.Minute),
		Causes: []store.Cost{{Why: "change", Lost: store.Duration(time.Minute), Times: 2}},
	})
}

// A report on a file of events says the same as one on the shard, and a damaged file is refused
// with the place.
//
// proves DAY-5
func TestExportOfEvents(t *testing.T) {
	w := newWorld(t)
	w.past()
	t.Chdir(t.TempDir())
	code, file, stderr := w.run("events", "export", "--since", "30d")
	if code != Done || strings.Count(file, "\n") != 7 {
		t.Fatalf("%d: %s\n%s", code, stderr, file)
	}
	for name, text := range map[string]string{"events": file, "half": file[:len(file)/2]} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, want, _ := w.run("report", "--since", "30d", "-g", "web")
	code, got, stderr := w.run("report", "--from", "events", "-g", "web")
	if code != Done || got != want || !strings.Contains(got, "change: 1m, 2 times") ||
		!strings.Contains(got, "machine died: 20s, 1 time") {
		t.Errorf("%d, %s: the file says\n%swant\n%s", code, stderr, got, want)
	}
	if code, _, stderr := w.run("report", "--from", "half"); code != Failed || !strings.Contains(stderr, "(byte") {
		t.Errorf("half a file: %d, %s", code, stderr)
	}
	if code, _, stderr := w.run("report", "--from", "events", "-g", "wob"); code != NotFound {
		t.Errorf("another group: %d, %s", code, stderr)
	}
	if code, _, _ := w.run("report", "--from", "missing"); code != Usage {
		t.Errorf("no file: %d", code)
	}
}
