package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// plannerFault is a line of scripts/break-planner.sh: a name, a file and a sed expression.
var plannerFault = regexp.MustCompile(`(?m)^([a-z0-9-]+)\|([a-z_/]+\.go)\|(.+)$`)

// Each fault of scripts/break-planner.sh still changes its file. Otherwise only the nightly run
// shows that a fault has lost its place.
func TestFaultsOfThePlannerStillHaveTheirPlace(t *testing.T) {
	root := projectRoot(t)
	script, err := os.ReadFile(filepath.Join(root, "scripts", "break-planner.sh"))
	if err != nil {
		t.Fatal(err)
	}
	faults := plannerFault.FindAllStringSubmatch(string(script), -1)
	if len(faults) < 50 {
		t.Errorf("only %d faults were found", len(faults))
	}
	for _, f := range faults {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f[2])))
		if err != nil {
			t.Errorf("%s: %v", f[1], err)
			continue
		}
		sed := exec.CommandContext(t.Context(), "sed", f[3])
		sed.Stdin = bytes.NewReader(source)
		var problem strings.Builder
		sed.Stderr = &problem
		switch changed, err := sed.Output(); {
		case err != nil:
			t.Errorf("%s: %v: %s", f[1], err, problem.String())
		case bytes.Equal(changed, source):
			t.Errorf("%s: %s no longer has the place that the fault changes", f[1], f[2])
		}
	}
}
