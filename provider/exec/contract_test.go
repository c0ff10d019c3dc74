package exec_test

import (
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
