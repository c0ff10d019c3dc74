package machines

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/provider"
)

// A workload without its environment is found by the record of its agent, and so are its children
// once it has ended; another process that has its number by now is left alone.
func TestAWorkloadWithoutEnvironmentIsKilled(t *testing.T) {
	kernel, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*provider.WorkloadProcess){
		"its own":           func(*provider.WorkloadProcess) {},
		"another process's": func(w *provider.WorkloadProcess) { w.Start = "1" },
		"before a reboot":   func(w *provider.WorkloadProcess) { w.Kernel = "another" },
	} {
		t.Run(what, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "sleep", "1000")
			cmd.Env, cmd.SysProcAttr = []string{}, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			start, runs := startOf(cmd.Process.Pid)
			if !runs {
				t.Fatal("it does not run")
			}
			w := provider.WorkloadProcess{Kernel: strings.TrimSpace(string(kernel)), PID: cmd.Process.Pid, Start: start}
			change(&w)
			dir := t.TempDir()
			data, err := json.Marshal(w)
			if err == nil {
				err = os.Mkdir(filepath.Join(dir, "web-0"), 0o700)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "web-0", provider.WorkloadFile), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			found := workloads(dir)
			if own := what == "its own"; len(found) == 1 != own || own && found[0] != cmd.Process.Pid {
				t.Errorf("found %v", found)
			}
			Kill(dir, nil)
			if what != "its own" {
				_ = cmd.Process.Kill() // it runs for the test alone
			}
			if err := cmd.Wait(); err == nil {
				t.Error("it ended by itself")
			}
		})
	}
}
