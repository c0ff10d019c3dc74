package tests

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Packages have the order of the versions in them: otherwise the package of a release would count
// as a downgrade of one that was built from a commit after its release candidate.
//
// proves DAY-4
func TestPackagesAreOrderedAsVersionsAre(t *testing.T) {
	script, err := os.ReadFile("../scripts/packages.sh")
	if err != nil {
		t.Fatal(err)
	}
	_, number, _ := strings.Cut(string(script), "\nnumber() {\n")
	number, _, found := strings.Cut(number, "\n}\n")
	if !found {
		t.Fatal("packages.sh has no function number")
	}
	// In ascending order. To dpkg and rpm, ~ sorts before the end, and + after it.
	for _, v := range []struct{ version, want string }{
		{"abc1234-dirty", "0.0.0~abc1234.dirty"},
		{"v1.2.3-rc1", "1.2.3~rc1"},
		{"v1.2.3-rc1-4-gabc1234", "1.2.3~rc1+4.gabc1234"},
		{"v1.2.3-rc2", "1.2.3~rc2"},
		{"v1.2.3", "1.2.3"},
		{"v1.2.3-4-gabc1234", "1.2.3+4.gabc1234"},
		{"v1.2.3-4-gabc1234-dirty", "1.2.3+4.gabc1234.dirty"},
	} {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "number() {\n"+number+"\n}\nnumber \"$1\"", "bash", v.version)
		got, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(got)) != v.want {
			t.Errorf("the package of %s has version %q, %v, want %q", v.version, got, err, v.want)
		}
	}
}
