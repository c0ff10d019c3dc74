package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

func TestAgentGetsItsDocumentAndNothingElse(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "leaked")
	p := open(t, t.TempDir(), "chatty")
	r := create(t, p, "i1")
	data, err := os.ReadFile(workFile(p, "i1", "environment"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.SplitSeq(string(data), "\n") {
		name, value, _ := strings.Cut(line, "=")
		if want, ok := map[string]string{
			provider.EnvMachine: "s1/i1", provider.EnvBootID: r.BootID,
			provider.EnvBootstrap: filepath.Join(p.machineDir("i1"), bootstrapFile),
		}[name]; ok && value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
		if strings.Contains(line, "=") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := []string{"HOME", provider.EnvBootstrap, provider.EnvBootID, provider.EnvMachine, "PATH"}
	slices.Sort(want)
	if os.Getenv("HOME") != "" && !slices.Equal(names, want) {
		t.Errorf("environment of the agent: %v, want %v", names, want)
	}

	doc, err := os.ReadFile(filepath.Join(p.machineDir("i1"), bootstrapFile))
	if err != nil {
		t.Fatal(err)
	}
	b, err := provider.ReadBootstrap(doc)
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{
		"port": strconv.Itoa(r.Port), "host": "127.0.0.1", "address": "127.0.0.1:" + strconv.Itoa(r.Port),
		"dir": filepath.Join(p.dir, "i1", "work"),
	}
	// What specs are checked for.
	all := (&store.Instance{}).Facts("")
	maps.Copy(all, facts)
	if known, _ := store.MachineFacts("process"); !slices.Equal(known, slices.Sorted(maps.Keys(all))) {
		t.Errorf("specs may name the facts %v", known)
	}
	if fmt.Sprint(b.Facts) != fmt.Sprint(facts) || b.Instance != "i1" || b.JoinToken == "" {
		t.Errorf("document: %+v", b)
	}
	for name, mode := range map[string]fs.FileMode{
		"": 0o700 | fs.ModeDir, bootstrapFile: 0o600, recordFile: 0o600,
		logFile: 0o600,
	} {
		info, err := os.Stat(filepath.Join(p.machineDir("i1"), name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%q: mode %v, error %v", name, info.Mode(), err)
		}
	}
	log, err := os.ReadFile(p.LogPath("i1"))
	if err != nil || !strings.Contains(string(log), "out of the agent\nerr of the agent\n") {
		t.Errorf("log: %q, %v", log, err)
	}
	s, err := readStat(r.PID)
	if err != nil || s.sessn != r.PID || s.pgrp != r.PID {
		t.Errorf("the agent is not in a session of its own: %+v, %v", s, err)
	}
}

// A new provider, as after a crash of the coordinator, knows every machine and can end it.
// proves SAFE-8, ELECT-3
func TestNewProviderFindsAll(t *testing.T) {
	dir := t.TempDir()
	p := open(t, dir, "plain")
	for _, id := range []string{"i1", "i2", "i3"} {
		create(t, p, id)
	}
	p.Stop(t.Context(), "s1", "i2", time.Minute)
	want, err := p.List(t.Context(), "s1")
	if err != nil || len(want) != 3 {
		t.Fatalf("%v, %v", want, err)
	}
	again := open(t, dir, "plain")
	got, err := again.List(t.Context(), "s1")
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("the new provider lists %v (%v), the old one %v", got, err, want)
	}
	before := recordOf(t, p, "i1")
	if m, err := again.Create(t.Context(), request("i1")); err != nil || m.BootID != before.BootID {
		t.Errorf("Create by the new provider: %+v, %v", m, err)
	}
	if err := again.Delete(t.Context(), "s1", "i1"); err != nil {
		t.Fatal(err)
	}
	if left := marked(t, "s1", "i1"); len(left) > 0 {
		t.Errorf("these run still: %v", left)
	}
}

// An agent outlives the program that started it; here that is a program that is killed the moment
// it has.
func TestAgentOutlivesACoordinatorThatIsKilled(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command(os.Args[0], "-test.run=^TestCoordinatorHelper$", "-test.count=1")
	c.Env = append(os.Environ(), coordinatorDir+"="+dir)
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the coordinator was not killed: %v\n%s", err, out)
	}
	p := open(t, dir, "plain")
	awaitFile(t, p, "i1", "ready-plain")
	m := stateOf(t, p, "i1")
	if m.State != provider.StateRunning {
		t.Fatalf("listed as %+v", m)
	}
	again, err := p.Create(t.Context(), request("i1"))
	if err != nil || again.BootID != m.BootID || len(marked(t, "s1", "i1")) != 1 {
		t.Errorf("Create: %+v, %v; running: %v", again, err, marked(t, "s1", "i1"))
	}
	r := recordOf(t, p, "i1")
	if err := (identity{r.PID, r.Start}).signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if m := awaitState(t, p, "i1", provider.StateCrashed); m.Why == "" {
		t.Error("no word on why")
	}
}

const coordinatorDir = "LEASEHOLD_TEST_COORDINATOR_DIR"

// TestCoordinatorHelper is the program of the test above. Run by itself it proves the same without
// the kill.
func TestCoordinatorHelper(t *testing.T) {
	dir := os.Getenv(coordinatorDir)
	if dir == "" {
		p := open(t, t.TempDir(), "plain")
		create(t, p, "i1")
		return
	}
	p, err := New(Config{
		Dir: dir, AgentCommand: []string{os.Args[0], fakeAgent, "plain"}, PortFrom: 21000,
		PortTo: 24999,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), request("i1")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// proves SAFE-8
func TestCreateCompletesWhatWasInterrupted(t *testing.T) {
	t.Run("BeforeTheDirectoryAppeared", func(t *testing.T) {
		p := open(t, t.TempDir(), "plain")
		staged := filepath.Join(p.dir, newDir, "i1")
		if err := os.MkdirAll(filepath.Join(staged, workDir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(staged, recordFile), []byte(`{"sche`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := p.List(t.Context(), "s1"); err != nil || len(got) != 0 {
			t.Errorf("listed %v, %v", got, err)
		}
		create(t, p, "i1")
		if got := marked(t, "s1", "i1"); len(got) != 1 {
			t.Errorf("these run: %v", got)
		}
	})
	t.Run("BeforeTheFork", func(t *testing.T) {
		p := open(t, t.TempDir(), "plain")
		r, err := p.make(t.Context(), request("i1"))
		if err != nil {
			t.Fatal(err)
		}
		if m := stateOf(t, p, "i1"); m.State != provider.StateStarting {
			t.Errorf("listed as %+v", m)
		}
		later := request("i1")
		later.Bootstrap.JoinToken = "a-newer-token"
		if _, err := p.Create(t.Context(), later); err != nil {
			t.Fatal(err)
		}
		now := recordOf(t, p, "i1")
		if now.State != stepStarted || now.Port != r.Port || len(marked(t, "s1", "i1")) != 1 {
			t.Errorf("completed to %+v; running: %v", now, marked(t, "s1", "i1"))
		}
		doc, err := os.ReadFile(filepath.Join(p.machineDir("i1"), bootstrapFile))
		if err != nil || !strings.Contains(string(doc), "a-newer-token") {
			t.Errorf("the document belongs to the interrupted call: %s, %v", doc, err)
		}
	})
	t.Run("AfterTheFork", func(t *testing.T) {
		p := open(t, t.TempDir(), "parent")
		r := create(t, p, "i1")
		forget(t, p, r, startGrace/2)
		if m := stateOf(t, p, "i1"); m.State != provider.StateStarting {
			t.Errorf("at once: listed as %+v", m)
		}
		forget(t, p, r, 2*startGrace)
		if m := stateOf(t, p, "i1"); m.State != provider.StateRunning {
			t.Errorf("later: listed as %+v, but the agent runs", m)
		}
		m, err := p.Create(t.Context(), request("i1"))
		if err != nil || m.State != provider.StateRunning || m.BootID != r.BootID {
			t.Errorf("Create: %+v, %v", m, err)
		}
		if now := recordOf(t, p, "i1"); now.PID != r.PID || now.Start != r.Start || now.State != stepStarted {
			t.Errorf("the agent %d was not taken up again: %+v", r.PID, now)
		}
		if got := marked(t, "s1", "i1"); len(got) != 2 {
			t.Errorf("these run, want agent and workload: %v", got)
		}
	})
	t.Run("AfterTheForkAndTheAgentEnded", func(t *testing.T) {
		p := open(t, t.TempDir(), "parent")
		r := create(t, p, "i1")
		old := identity{r.PID, r.Start}
		if err := old.signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the agent's end", func() bool { return !runs(t, old) })
		workload := pidIn(t, p, "i1", "ready-workload")
		forget(t, p, r, 2*startGrace)
		if m := stateOf(t, p, "i1"); m.State != provider.StateFailed || m.Why == "" {
			t.Errorf("listed as %+v", m)
		}
		if _, err := p.Create(t.Context(), request("i1")); err != nil {
			t.Fatal(err)
		}
		now := recordOf(t, p, "i1")
		if now.PID == r.PID || now.BootID == r.BootID || !runs(t, identity{now.PID, now.Start}) {
			t.Errorf("not started again: %+v", now)
		}
		eventually(t, "the old workload's end", func() bool {
			return !slices.ContainsFunc(marked(t, "s1", "i1"), func(id identity) bool { return id.pid == workload })
		})
	})
	t.Run("RestartAfterTheIntent", func(t *testing.T) {
		p := open(t, t.TempDir(), "plain")
		r := create(t, p, "i1")
		forget(t, p, r, 0)
		if err := p.Restart(t.Context(), "s1", "i1", ""); err != nil {
			t.Fatal(err)
		}
		now := recordOf(t, p, "i1")
		if got := marked(t, "s1", "i1"); len(got) != 1 || got[0].pid != now.PID || now.BootID == r.BootID {
			t.Errorf("record %+v; running %v", now, got)
		}
	})
	t.Run("DeleteAfterTheIntent", func(t *testing.T) {
		p := open(t, t.TempDir(), "parent")
		forget(t, p, create(t, p, "i1"), 0)
		if err := p.Delete(t.Context(), "s1", "i1"); err != nil {
			t.Fatal(err)
		}
		if got := marked(t, "s1", "i1"); len(got) != 0 {
			t.Errorf("these run still: %v", got)
		}
	})
}

// forget makes a record what it was between fork and record of the process, so long ago.
func forget(t *testing.T, p *Provider, r record, ago time.Duration) {
	t.Helper()
	r.State, r.PID, r.Start = stepStarting, 0, 0
	r.Begun = (sinceHostBoot() - ago).Milliseconds()
	if err := p.write(r); err != nil {
		t.Fatal(err)
	}
}

// proves SAFE-8
func TestProvidersTogetherMakeOne(t *testing.T) {
	dir := t.TempDir()
	const n = 4
	var wg sync.WaitGroup
	for range n {
		p := open(t, dir, "plain")
		for _, id := range []string{"i1", "i2", "i3"} {
			wg.Go(func() {
				if _, err := p.Create(context.Background(), request(id)); err != nil {
					t.Errorf("Create: %v", err)
				}
			})
		}
	}
	wg.Wait()
	ports := map[int]bool{}
	p := open(t, dir, "plain")
	for _, id := range []string{"i1", "i2", "i3"} {
		eventually(t, "the agent of "+id, func() bool { return len(marked(t, "s1", id)) > 0 })
		if got := marked(t, "s1", id); len(got) != 1 {
			t.Errorf("%s: these run: %v", id, got)
		}
		ports[recordOf(t, p, id).Port] = true
	}
	if len(ports) != 3 {
		t.Errorf("ports are shared: %v", ports)
	}
}

func TestPorts(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	taken := busy.Addr().(*net.TCPAddr).Port
	p := open(t, t.TempDir(), "plain")
	p.portFrom, p.portTo = taken, taken
	if _, err := p.Create(t.Context(), request("i1")); !errors.Is(err, provider.ErrCapacity) {
		t.Errorf("Create with the only port taken: %v, want ErrCapacity", err)
	}
	if got, err := p.List(t.Context(), "s1"); err != nil || len(got) != 0 {
		t.Errorf("a machine without a port is listed: %v, %v", got, err)
	}
	busy.Close()
	if _, err := p.Create(t.Context(), request("i1")); err != nil {
		t.Errorf("Create once the port is free: %v", err)
	}
	if _, err := open2(t, p.dir, taken).Create(t.Context(), request("i2")); !errors.Is(err, provider.ErrCapacity) {
		t.Errorf("Create with the only port recorded by another machine: %v, want ErrCapacity", err)
	}
}

// open2 is another provider on the same directory with a single port.
func open2(t *testing.T, dir string, port int) *Provider {
	t.Helper()
	p := open(t, dir, "plain")
	p.portFrom, p.portTo = port, port
	return p
}

func TestAgentThatCannotBeStarted(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	good := p.command
	p.command = []string{filepath.Join(p.dir, "removed-agent")}
	if _, err := p.Create(t.Context(), request("i1")); err == nil {
		t.Fatal("Create succeeded without an agent")
	}
	if m := stateOf(t, p, "i1"); m.State != provider.StateFailed || !strings.Contains(m.Why, "removed-agent") {
		t.Errorf("listed as %+v", m)
	}
	p.command = good
	if m, err := p.Create(t.Context(), request("i1")); err != nil || m.State != provider.StateRunning {
		t.Errorf("repeated: %+v, %v", m, err)
	}
}

func TestLogIsBounded(t *testing.T) {
	p := open(t, t.TempDir(), "chatty")
	create(t, p, "i1")
	if err := os.Truncate(p.LogPath("i1"), maxLog+1); err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(t.Context(), "s1", "i1", ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new log", func() bool {
		info, err := os.Stat(p.LogPath("i1"))
		return err == nil && info.Size() > 0 && info.Size() < 1000
	})
	if info, err := os.Stat(p.LogPath("i1") + ".1"); err != nil || info.Size() != maxLog+1 {
		t.Errorf("the old log: %v, %v", info, err)
	}
}

func TestRecordIsReadable(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	create(t, p, "i1")
	data, err := os.ReadFile(filepath.Join(p.dir, "i1", recordFile))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{
		"schema", "shard", "instance", "group", "zone", "port", "pid", "start", "host_boot",
		"boot", "state", "created",
	} {
		if m[k] == nil || m[k] == "" {
			t.Errorf("%s is missing in %s", k, data)
		}
	}
}
