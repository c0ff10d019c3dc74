package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agentVar is the configuration of an agent that is killed.
const agentVar = "LEASEHOLD_TEST_AGENT"

// playKilledAgent starts a workload, and is killed as that is recorded. It leaves its process ID.
func playKilledAgent() {
	var cfg Config
	if err := json.Unmarshal([]byte(os.Getenv(agentVar)), &cfg); err != nil {
		panic(err)
	}
	r, err := New(cfg, Deps{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	r.records.save = func(path string, rec *record) error {
		if err := os.WriteFile(path+".pid", fmt.Append(nil, rec.PID), 0o600); err != nil {
			panic(err)
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	_ = r.Start(context.Background()) // it does not get that far
	<-time.After(patience)
}

// An agent that is killed between starting the workload and recording it leaves nothing that runs,
// so that the next one starts the only one.
//
// proves SAFE-9, PROV-7
func TestAnAgentThatIsKilledBeforeItsRecordLeavesNothing(t *testing.T) {
	r := begin(t, "serve", nil)
	cfg, err := json.Marshal(map[string]any{
		"Run": r.cfg.Run, "Vars": r.cfg.Vars, "Dir": r.cfg.Dir, "StateDir": r.cfg.StateDir, "Boot": r.cfg.Boot,
	})
	if err != nil {
		t.Fatal(err)
	}
	killed := exec.Command(r.cfg.Run[0])
	killed.Env = append(os.Environ(), playVar+"=killed agent", agentVar+"="+string(cfg))
	if out, err := killed.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the agent was not killed: %v: %s", err, out)
	}
	text, err := os.ReadFile(r.records.path + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		t.Fatal(err)
	}
	r.eventually("what it has left ends", func() bool { return !lives(pid) })
	r.start()
	r.says("ready")
	if n := strings.Count(r.output(), "ready"); n != 1 || r.State().PID == pid {
		t.Errorf("%d workloads were started; output %q", n, r.output())
	}
}

// A start that is called off while it is recorded runs nothing, and leaves no record.
func TestAStartThatIsCalledOffWhileItIsRecorded(t *testing.T) {
	r := begin(t, "serve", nil)
	ctx, callOff := context.WithCancel(t.Context())
	var pid int
	save := r.records.save
	r.records.save = func(path string, rec *record) error {
		if rec != nil {
			pid = rec.PID
			callOff()
		}
		return save(path, rec)
	}
	err := r.Start(ctx)
	r.recorded()
	if !errors.Is(err, ErrWaits) || r.State().Running || lives(pid) || r.output() != "" {
		t.Errorf("start: %v, state %+v, output %q", err, r.State(), r.output())
	}
	if _, err := os.Stat(r.records.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a record: %v", err)
	}
	r.records.save = save
	r.start()
	r.says("ready")
}

// What cannot be executed is said at once, and is not recorded.
func TestWhatCannotBeExecuted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("\x7fELF is no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := begin(t, "serve", func(c *Config) { c.Run = []string{file} })
	if err := r.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "exec "+file) {
		t.Errorf("start: %v", err)
	}
	if e := r.exit(); e.Code != 127 || !strings.Contains(e.Why, "could not be started") {
		t.Errorf("exit is %+v", e)
	}
	if _, err := os.Stat(r.records.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a record: %v", err)
	}
}
