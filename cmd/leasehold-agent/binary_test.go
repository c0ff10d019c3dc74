package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// agentBinary is built once, as for a release.
var agentBinary string

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "leasehold-agent-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	agentBinary = filepath.Join(dir, "leasehold-agent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=1.2.3", "-o", agentBinary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build agent: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// The agent is put on every machine, so it is small.
func TestBinaryIsSmall(t *testing.T) {
	const most = 20 << 20
	info, err := os.Stat(agentBinary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MiB", float64(info.Size())/(1<<20))
	if info.Size() >= most {
		t.Errorf("agent has %d bytes, must stay below %d: look what it links with go list -deps", info.Size(), most)
	}
}

// forAll are packages below provider/ that every program may link: one writes files, one shortens
// texts.
var forAll = []string{"provider/durable", "provider/clip"}

// An agent never speaks to etcd and never makes machines, so it links nothing that does.
func TestBinaryLinksNeitherEtcdNorProviders(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/leasehold/leasehold/"
	deps := strings.Fields(string(out))
	for _, d := range deps {
		for _, banned := range []string{
			"go.etcd.io/", module + "store", module + "coordinator", module + "provider/", module + "tests",
		} {
			if strings.HasPrefix(d, banned) && !slices.Contains(forAll, strings.TrimPrefix(d, module)) {
				t.Errorf("agent links %s", d)
			}
		}
	}
	if !strings.Contains(string(out), module+"agent\n") {
		t.Errorf("among %d packages the agent itself is missing: the list is not of the agent", len(deps))
	}
}

func TestCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"version": {[]string{"--version"}, 0, "1.2.3\n", ""},
		"unknown flag": {
			[]string{"--nonsense"},
			2, "",
			"error: unknown flag --nonsense\nnext: leasehold-agent --help\n",
		},
		"bad level":   {[]string{"--log-level=loud"}, 2, "", "next: leasehold-agent --help\n"},
		"no document": {nil, 1, "", "error: no bootstrap document: name it with --bootstrap or LEASEHOLD_BOOTSTRAP\n"},
		"missing": {
			[]string{"--bootstrap=/nowhere/b.json"},
			1, "",
			"error: bootstrap document /nowhere/b.json does not exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(agentBinary, c.args...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != c.code || stdout.String() != c.stdout ||
				!strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("code %d, stdout %q, stderr %q; want %d, %q and %q", code, stdout.String(), stderr.String(),
					c.code, c.stdout, c.stderr)
			}
		})
	}
}

// Run here, it also makes this test depend on everything that the binary is built from: a result
// that go test remembers then never belongs to an older binary.
func TestExitCodeOfARunThatCannotBegin(t *testing.T) {
	for _, name := range []string{"LEASEHOLD_BOOTSTRAP", "LEASEHOLD_STATE_DIR"} {
		t.Setenv(name, "")
	}
	if code := run(nil); code != exitFailed {
		t.Errorf("code %d without a document, want %d", code, exitFailed)
	}
	if code := run([]string{"--nonsense"}); code != exitUsage {
		t.Errorf("code %d for a flag that does not exist, want %d", code, exitUsage)
	}
}
