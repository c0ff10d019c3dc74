package previous

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestProgramsOfTheReleaseAreBuiltAndSayTheirVersion(t *testing.T) {
	// What is set for the tree around us is nothing to the release.
	t.Setenv("GOFLAGS", "-mod=vendor")
	dir := t.TempDir()
	if err := Build(dir); err != nil {
		t.Fatal(err)
	}
	version, err := Version()
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^\d+(\.\d+)+$`).MatchString(version) {
		t.Errorf("version %q", version)
	}
	for name, ask := range map[string]string{Leasehold: "version", Agent: "--version"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name), ask).CombinedOutput()
		if err != nil || !strings.Contains(string(out), version) {
			t.Errorf("%s %s: %v: %q, want %s in it", name, ask, err, out, version)
		}
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, Cast), "unknown").CombinedOutput(); err == nil ||
		len(out) == 0 {
		t.Errorf("the cast plays a part that there is not: %q", out)
	}
}

func TestSourceIsWithoutTestsAndWithTheProtocol(t *testing.T) {
	dir := t.TempDir()
	version, err := unpack(dir)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "leasehold-"+version)
	tests, err := exec.CommandContext(t.Context(), "find", root, "-name", "*_test.go").Output()
	if err != nil || len(tests) > 0 {
		t.Errorf("%v: %s", err, tests)
	}
	if found, err := filepath.Glob(filepath.Join(root, "agent", "protocol", "protocol.proto")); err != nil ||
		len(found) != 1 {
		t.Errorf("%v: the protocol is not there: make check compares the present one with it", err)
	}
}
