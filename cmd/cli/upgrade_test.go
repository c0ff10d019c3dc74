package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// proves DAY-3
func TestUpgradeCheck(t *testing.T) {
	w := newWorld(t)
	w.serve()
	for _, id := range []string{"coord-a", "coord-b"} {
		w.put(store.KindReplicas, id, store.Replica{Schema: store.Schema, ID: id, Version: "v0.8.0"})
	}
	w.expectUpgrade(Failed, "cannot begin: 1 problem", "there is no backup of the last day", "leasehold backup FILE")
	w.put(store.KindBackup, "", store.Backup{Schema: store.Schema, At: noon.Add(-time.Hour)})
	out := w.expectUpgrade(Done, "1  coordinator coord-b", "2  coordinator coord-a", "the leader, last", "3  agents",
		"no problems")
	if strings.Contains(out, "downgrade") {
		t.Errorf("it goes up:\n%s", out)
	}
	if _, _, err := w.run("upgrade", "check", "--to", "v0.9.0"); !strings.Contains(err, "upgrade check of v0.9.0 itself") {
		t.Errorf("of formats that it cannot know it says %q", err)
	}
	w.put(store.KindGroups, "later", `{"schema":2,"name":"later"}`)
	if code, out, err := w.run("upgrade", "check"); code != Failed || !strings.Contains(out, "groups/later") ||
		!strings.Contains(out, "it has schema 2, and this release reads up to 1") {
		t.Errorf("over a record of a newer schema: exit %d\n%s%s", code, out, err)
	}
	if code, out, err := w.run("upgrade", "check"); code != Failed || !strings.Contains(out, "it is no release") {
		t.Errorf("to a version that is none: exit %d\n%s%s", code, out, err)
	}
}

func (w *world) expectUpgrade(want Code, parts ...string) string {
	w.t.Helper()
	code, out, err := w.run("upgrade", "check", "--to", "v0.9.0")
	for _, part := range parts {
		if !strings.Contains(strings.ReplaceAll(out, "\t", "  ")+err, part) {
			w.t.Errorf("%q is missing:\n%s%s", part, out, err)
		}
	}
	if code != want {
		w.t.Errorf("exit %d", code)
	}
	return out
}
