package workload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// playVar makes this test binary a workload that behaves in one of these ways.
const playVar = "LEASEHOLD_TEST_PLAY"

func TestMain(m *testing.M) {
	if role := os.Getenv(playVar); role != "" {
		play(role)
	}
	goleak.VerifyTestMain(m)
}

func play(role string) {
	switch role {
	case "fail":
		fmt.Println("about to fail")
		fmt.Fprintln(os.Stderr, "for a reason")
		os.Exit(3)
	case "serve":
		fmt.Println("ready")
		<-time.After(time.Hour)
	case "orderly":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("ready")
		<-asked
		fmt.Println("ended in order")
		os.Exit(0)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		<-time.After(time.Hour)
	case "family", "orphans":
		// A child in the same group, which does not care when its parent ends.
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), playVar+"=stubborn")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Printf("child %d\n", child.Process.Pid)
		if role == "orphans" {
			os.Exit(1)
		}
		<-time.After(time.Hour)
	case "shout":
		line := strings.Repeat("x", 1023) + "\n"
		for range 4 << 10 { // 4 MiB
			fmt.Print(line)
		}
		fmt.Println("ready")
		<-time.After(time.Hour)
	case "killed agent":
		playKilledAgent()
	case "look":
		dir, _ := os.Getwd()
		fmt.Println("dir", dir)
		for _, kv := range os.Environ() {
			fmt.Println("env", kv)
		}
		for _, arg := range os.Args[1:] {
			fmt.Println("arg", arg)
		}
		os.Exit(0)
	}
	panic("no such role: " + role)
}

// patience is how long a required event may take on a slow machine.
const patience = 2 * time.Minute

type runnerTest struct {
	*testing.T
	*Runner
	cfg Config
}

// begin makes a Runner that runs this test binary in a role. What is left of the workload ends with
// the test.
func begin(t *testing.T, role string, change func(*Config)) runnerTest {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Run: []string{exe}, Vars: map[string]string{playVar: role},
		Dir: t.TempDir(), StateDir: t.TempDir(), Boot: "boot-1",
		Instance: "web-0-a", Group: "web", Shard: "shard-1", StopTimeout: patience,
	}
	if change != nil {
		change(&cfg)
	}
	return again(t, cfg)
}

// again is another agent's Runner on the same machine.
func again(t *testing.T, cfg Config) runnerTest {
	t.Helper()
	r, err := New(cfg, Deps{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel() // no patience
		r.Stop(ended)
	})
	return runnerTest{t, r, cfg}
}

func (r runnerTest) start() {
	r.Helper()
	if err := r.Start(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.recorded()
}

// recorded waits until the record is on disk.
func (r runnerTest) recorded() {
	r.Helper()
	over := r.records.written()
	if over == nil {
		return
	}
	select {
	case <-over:
	case <-time.After(patience):
		r.Fatalf("record is not written within %s", patience)
	}
}

// eventually polls with a deadline for a condition that no event signals.
func (r runnerTest) eventually(what string, is func() bool) {
	r.Helper()
	for deadline := time.Now().Add(patience); !is(); {
		if time.Now().After(deadline) {
			r.Fatalf("%s: not within %s; output: %q", what, patience, r.output())
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (r runnerTest) output() string {
	data, _ := os.ReadFile(r.out.path)
	return string(data)
}

// says waits until the workload has written this.
func (r runnerTest) says(text string) {
	r.Helper()
	r.eventually("workload says "+text, func() bool { return strings.Contains(r.output(), text) })
}

// exit waits until the workload has ended by itself, and that is recorded.
func (r runnerTest) exit() Exit {
	r.Helper()
	e := r.told()
	r.recorded()
	return e
}

// told waits until the workload has ended by itself.
func (r runnerTest) told() Exit {
	r.Helper()
	select {
	case <-r.Changed():
	case <-time.After(patience):
		r.Fatalf("no exit within %s; output: %q", patience, r.output())
	}
	s := r.State()
	if s.Exit == nil || s.Running {
		r.Fatalf("state is %+v, want an exit", s)
	}
	return *s.Exit
}

// hang makes what reads or writes a file wait, as a disk does that hangs, until it is to answer.
func hang(t *testing.T, path string) (answer func()) {
	t.Helper()
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	answer = sync.OnceFunc(func() {
		other, err := os.OpenFile(path, os.O_RDWR, 0)
		if err = errors.Join(err, os.Remove(path)); err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = other.Close() })
	})
	t.Cleanup(answer)
	return answer
}

func lives(pid int) bool {
	s, err := readStat(pid)
	return err == nil && s.state != "Z" && s.state != "X"
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("workload has process ID %d: it does not run", pid) // 0 would be this test and its parents
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
