package exec_test

import (
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/exec"
	"github.com/leasehold/leasehold/provider/providertest"
)

// The example that the documentation shows keeps every promise that it claims.
//
// proves PROV-1, PROV-2
func TestTheShellExampleKeepsTheContract(t *testing.T) {
	for _, tool := range []string{"bash", "jq", "flock", "setsid"} {
		if _, err := osexec.LookPath(tool); err != nil {
			t.Fatalf("%s is missing: scripts/test-needs.sh installs what the tests need", tool)
		}
	}
	dir := t.TempDir()
	p := open(t, exec.Config{
		Command: []string{"../../docs/providers/examples/processes.sh"},
		// A machine that says so, so that its console can be written to, and ends when it is told.
		Config: map[string]any{"dir": dir, "agent": []string{"sleep", "100000"}},
	})
	of := func(m provider.Machine) string { return filepath.Join(dir, "machines", m.Instance) }
	pid := func(m provider.Machine) int {
		var pid int
		text, _ := os.ReadFile(filepath.Join(of(m), "process"))
		_, _ = fmt.Sscan(string(text), &pid)
		return pid
	}
	processes := map[string]int{} // of the machines that Remains has seen alive
	providertest.Run(t, "exec (processes.sh)", providertest.Harness{
		Poll: 50 * time.Millisecond,
		Open: func() (provider.Provider, error) { return p, nil },
		Kill: func(m provider.Machine) error { return syscall.Kill(pid(m), syscall.SIGKILL) },
		Remains: func(m provider.Machine) string {
			if n := pid(m); n > 0 {
				processes[m.Instance] = n
			}
			if _, err := os.Stat(of(m)); err == nil {
				return "directory " + of(m)
			}
			if n := processes[m.Instance]; n > 0 && syscall.Kill(n, 0) == nil {
				text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", n))
				if strings.HasPrefix(string(text), "sleep") {
					return fmt.Sprintf("process %d", n)
				}
			}
			return ""
		},
		Print: func(m provider.Machine, text string) error {
			f, err := os.OpenFile(filepath.Join(of(m), "console"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString(text)
			return err
		},
	})
}

// A call that is repeated after one that died half-way completes it: each trace is what the example
// had made by then.
//
// proves SAFE-8
func TestTheShellExampleCompletesCallsThatDied(t *testing.T) {
	dir := t.TempDir()
	p := open(t, exec.Config{
		Command: []string{"../../docs/providers/examples/processes.sh"},
		Config:  map[string]any{"dir": dir, "agent": []string{"sleep", "100000"}},
	})
	req := providertest.Request("s1", "web-0-a", "local", provider.Template{})
	home := filepath.Join(dir, "machines", "web-0-a")
	state := func() (m provider.Machine) {
		all, err := p.List(t.Context(), "s1")
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 {
			m = all[0]
		}
		return m
	}
	kill := func() { // the machine, and the note that it was started
		text, err := os.ReadFile(filepath.Join(home, "process"))
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Sscan(string(text), &pid); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(syscall.Kill(pid, syscall.SIGKILL), os.Remove(filepath.Join(home, "process"))); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.MkdirAll(filepath.Join(dir, "machines", ".new.web-0-a", "left"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), req); err != nil || state().State != provider.StateRunning {
		t.Fatalf("Create after one that died before the machine was whole: %v, %+v", err, state())
	}
	kill()
	if _, err := p.Create(t.Context(), req); err != nil || state().State != provider.StateRunning {
		t.Errorf("Create after one that died before it started the machine: %v, %+v", err, state())
	}
	first := state().BootID
	kill()
	if err := os.WriteFile(filepath.Join(home, "boot"), []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(t.Context(), "s1", "web-0-a", first); err != nil || state().State != provider.StateRunning {
		t.Errorf("Restart after one that died before it started the machine: %v, %+v", err, state())
	}
	if err := os.MkdirAll(filepath.Join(dir, "machines", ".gone.web-0-a", "left"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), "s1", "web-0-a"); err != nil || state().Instance != "" {
		t.Errorf("Delete: %v, %+v", err, state())
	}
	if left, err := os.ReadDir(filepath.Join(dir, "machines")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func open(t *testing.T, c exec.Config) provider.Provider {
	t.Helper()
	if os.Geteuid() == 0 && c.User == "" {
		c.User = "root"
	}
	p, err := exec.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
