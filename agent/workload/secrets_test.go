package workload

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/secrets"
)

func password(value string) []secrets.Received {
	return []secrets.Received{{Variable: "DB_PASSWORD", Name: "db", Value: []byte(value), Revision: 1}}
}

// proves SEC-6
func TestWorkloadWaitsForItsSecrets(t *testing.T) {
	t.Setenv("LEASEHOLD_SECRETS_KEY", "k1:AAAA")
	hidden := secrets.New()
	hidden.Want(map[string]string{"DB_PASSWORD": "db"})
	r := begin(t, "look", func(c *Config) { c.Secrets = hidden })
	if err := r.Start(t.Context()); !errors.Is(err, ErrWaits) {
		t.Fatalf("started without its secrets: %v", err)
	}
	if s := r.State(); s.Running || s.Exit != nil || s.Waits != "secrets: no coordinator has sent its secrets yet" {
		t.Errorf("state is %+v", s)
	}
	hidden.Tell([]secrets.Received{{Variable: "DB_PASSWORD", Name: "db", Problem: "there is none"}})
	if err := r.Start(t.Context()); !errors.Is(err, ErrWaits) ||
		!strings.Contains(r.State().Waits, "db (DB_PASSWORD): there is none") {
		t.Fatalf("started without a secret: %v, %+v", err, r.State())
	}
	hidden.Tell(password("hunter2"))
	r.start()
	e := r.exit()
	r.says("env DB_PASSWORD=hunter2\n")
	if strings.Contains(r.output(), "LEASEHOLD_SECRETS_KEY") {
		t.Error("the workload sees the key")
	}
	if strings.Contains(string(e.Output), "hunter2") ||
		!strings.Contains(string(e.Output), "env DB_PASSWORD=[secret db]") {
		t.Errorf("last words are %q", e.Output)
	}
	// The record is on disk, and the workload's own output is the one file with the value.
	files, err := filepath.Glob(filepath.Join(r.cfg.StateDir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("files %q, %v", files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(string(data), "hunter2"); has != (filepath.Base(f) == "workload.log") {
			t.Errorf("%s has the value: %t", filepath.Base(f), has)
		}
	}
}

// Output from before an agent was there, or knew the secrets again, is reported once they are
// known.
//
// proves SEC-6, DET-19
func TestLastWordsWaitForTheSecrets(t *testing.T) {
	hidden := secrets.New()
	hidden.Tell(password("hunter2"))
	first := begin(t, "", func(c *Config) {
		c.Run = []string{"sh", "-c", "echo I say $DB_PASSWORD; echo ready; exec sleep 100000"}
		c.Secrets = hidden
	})
	first.start()
	first.says("ready")
	pid := first.State().PID
	first.Release()

	cfg := first.cfg
	cfg.Secrets = secrets.New()
	cfg.Secrets.Want(map[string]string{"DB_PASSWORD": "db"})
	second := again(t, cfg)
	second.start() // a running workload continues
	if s := second.State(); !s.Running || s.PID != pid {
		t.Fatalf("state is %+v, want process %d to go on", s, pid)
	}
	kill(t, pid)
	if e := second.exit(); !e.Withheld || len(e.Output) != 0 {
		t.Fatalf("exit is %+v, want its last words withheld", e)
	}
	if data, err := os.ReadFile(filepath.Join(cfg.StateDir, "workload.json")); err != nil ||
		strings.Contains(string(data), "hunter2") {
		t.Errorf("record is %s, %v", data, err)
	}
	third := again(t, cfg) // and the agent is restarted again
	third.start()
	third.exit()
	fourth := again(t, cfg)
	fourth.start()
	fourth.exit()
	cfg.Secrets.Tell(password("hunter2"))
	third.State() // has the output read; the agent's loop does not wait for the disk
	<-third.Changed()
	if e := third.State().Exit; e == nil || e.Withheld || string(e.Output) != "I say [secret db]\nready\n" {
		t.Errorf("exit is %+v", e)
	}

	// A disk that hangs holds up neither the loop nor the agent's end.
	if err := os.Remove(cfg.StateDir + "/workload.log"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(cfg.StateDir+"/workload.log", 0o600); err != nil {
		t.Fatal(err)
	}
	fourth.State() // has a pipe read that has no writer
	fourth.Release()
	if e := fourth.State().Exit; e == nil || !e.Withheld {
		t.Errorf("exit is %+v, want its last words withheld", e)
	}
	pipe, err := os.OpenFile(cfg.StateDir+"/workload.log", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = pipe.Close()
	<-fourth.Changed()
	fourth.Release() // there are no readers any longer
	if e := fourth.State().Exit; e == nil || e.Withheld {
		t.Errorf("exit is %+v", e)
	}
}

// proves SEC-6
func TestSecretsOfHooksAndCommands(t *testing.T) {
	hidden := secrets.New()
	hidden.Tell(password("hunter2"))
	cfg := Config{Dir: t.TempDir(), StateDir: t.TempDir(), Boot: "boot-1", Secrets: hidden}
	exit, err := cfg.RunOnce(t.Context(), []string{"sh", "-c", "echo it is $DB_PASSWORD"}, nil)
	if err != nil || string(exit.Output) != "it is [secret db]\n" {
		t.Errorf("a command beside the workload says %q, %v", exit.Output, err)
	}
	deps, run := Deps{Logger: slog.New(slog.DiscardHandler)}, []string{"sh", "-c", "echo it is $DB_PASSWORD."}
	if err := Command(t.Context(), cfg, deps, run, nil); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(cfg.StateDir, "command.log")); err != nil || string(data) != "it is .\n" {
		t.Errorf("the command for a lost lease says %q, %v: it gets no secrets", data, err)
	}
	if _, err := Expand("run", []string{"${DB_PASSWORD}"}, nil, nil); err == nil {
		t.Error("a secret can be put into a command line")
	}
}

// A drain hook has the secrets, and what it says goes into the log and its record without them.
//
// proves SEC-6, DRAIN-1
func TestWhatADrainHookSays(t *testing.T) {
	hidden := secrets.New()
	hidden.Tell(password("hunter2"))
	var log strings.Builder
	cfg := Config{Dir: t.TempDir(), StateDir: t.TempDir(), Boot: "boot-1", Secrets: hidden}
	h, err := NewHook(cfg, Deps{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	h.Want(&Drain{Token: "d1", Run: []string{"sh", "-c", "echo leaving with $DB_PASSWORD; exit 4"}, Timeout: patience})
	select {
	case <-h.Changed():
	case <-time.After(patience):
		t.Fatal("the hook did not end")
	}
	h.Close(false)
	record, err := os.ReadFile(filepath.Join(cfg.StateDir, "drain.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "leaving with [secret db]") ||
		strings.Contains(log.String()+string(record), "hunter2") {
		t.Errorf("log: %s\nrecord: %s", log.String(), record)
	}
}
