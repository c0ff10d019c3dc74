package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Where no report says how the workload ended, the console output that was kept replaces its last
// words.
//
// proves DET-19
func TestLogsOfADeadMachineAreItsConsole(t *testing.T) {
	w := newWorld(t)
	dead := store.JournalEntry{
		Schema: 1, Rule: "DET-4", Group: "web", Instance: "web-0-a", What: "dead",
		Why: "crashed", Verdict: store.Dead, Revision: 3,
	}
	kept := store.JournalEntry{
		Schema: 1, Rule: "DET-19", Group: "web", Instance: "web-0-a",
		What: "console output kept", Console: "booting\nkernel panic\n", Revision: 3,
	}
	w.journal(2*time.Hour, dead)
	w.journal(time.Hour, kept)
	code, out, aside := w.run("instance", "logs", "web-0-a")
	if code != Done || out != "booting\nkernel panic\n" || !strings.Contains(aside, "console") {
		t.Errorf("code %d, shows %q, beside it %q", code, out, aside)
	}
	ended := kept
	ended.Console, ended.What, ended.Workload = "", "workload ended",
		&store.WorkloadExit{Code: 2, Output: "its own words\n"}
	w.journal(90*time.Minute, ended)
	if _, out, _ := w.run("instance", "logs", "web-0-a"); out != "its own words\n" {
		t.Errorf("shows %q, and the workload's own words are kept", out)
	}
}
