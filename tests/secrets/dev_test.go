package secrets

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/harness"
	"github.com/leasehold/leasehold/tests/machines"
)

// In leasehold dev secrets work at once, with a key that it made itself, and show neither in what
// it prints nor in anything that it keeps.
//
// proves SEC-6
func TestSecretsInDev(t *testing.T) {
	values := map[string]string{
		"db-password": "hunter2/" + rand.Text(), "api-token": "tok+" + rand.Text(),
		"file-key": "key/" + rand.Text(),
	}
	r := build(t)
	data := filepath.Join(r.dir, ".local", "state", "leasehold", "dev")
	file := filepath.Join(r.dir, "web.yaml") // dev has no authority for workloads
	if err := os.WriteFile(file, []byte(strings.Replace(group, withKey, "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(r.program, "dev", "--etcd-listen=127.0.0.1:0", "--listen=127.0.0.1:0", "--log-level=debug",
		"--group", file)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, r.environment(), &r.logged, &r.logged
	dev, err := harness.Start("dev", cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(data, "machines")
	t.Cleanup(func() { machines.Kill(place, machines.Shards(place)) })
	end := func() {
		dev.Signal(syscall.SIGINT)
		select {
		case <-dev.Ended():
		case <-time.After(longest):
			dev.Kill()
			t.Error("dev did not end")
		}
	}
	t.Cleanup(end)
	r.until("dev is ready", func() bool { return strings.Contains(string(r.logged.Bytes()), "ready  etcd ") })

	for name, value := range values {
		r.leasehold(value+"\n", "secret", "set", name)
	}
	instance := ""
	r.until("the workload has ended, and checks fail", func() bool {
		out, _ := r.command("", "instance", "list")
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "web-0-") {
				instance = strings.Fields(line)[0]
			}
		}
		shown, _ := r.command("", "instance", "show", instance, "-o", "json")
		logs, _ := r.command("", "instance", "logs", instance)
		return strings.Contains(shown, "refused: [secret ") && strings.Contains(logs, "I say [secret db-password]")
	})
	r.everyCommand(file, instance)
	if n := search(t, data, values, ownWords); n < 6 {
		t.Errorf("only %d files were searched", n)
	}
	end()
	search(t, data, values, ownWords)
	lookAt(t, "what dev printed", r.logged.Bytes(), values)
	lookAt(t, "what commands printed", r.printed.Bytes(), values)
	if log, err := os.ReadFile(filepath.Join(data, "dev.log")); err != nil ||
		!strings.Contains(string(log), "agent registered") {
		t.Errorf("dev.log, which was searched, does not have what dev does: %v", err)
	}
}

// until is await, for a run of which only the output is known.
func (r *run) until(what string, is func() bool) {
	r.t.Helper()
	harness.Await(r.t, what, longest, 50*time.Millisecond, is, func() string {
		return fmt.Sprintf("%s\n%s", tail(r.logged.Bytes()), tail(r.printed.Bytes()))
	})
}
