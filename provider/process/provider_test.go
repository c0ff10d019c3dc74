package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

func TestNewSaysWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	agent := []string{os.Args[0]}
	for name, c := range map[string]struct {
		config Config
		says   string
	}{
		"no directory":  {Config{AgentCommand: agent}, "directory"},
		"no agent":      {Config{Dir: t.TempDir()}, "command is not set"},
		"agent missing": {Config{Dir: t.TempDir(), AgentCommand: []string{"/no/such/agent"}}, "build or install it"},
		"ports":         {Config{Dir: t.TempDir(), AgentCommand: agent, PortFrom: 9, PortTo: 8}, "range"},
		"a file":        {Config{Dir: file, AgentCommand: agent}, file},
	} {
		if _, err := New(c.config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want word of %q", name, err, c.says)
		}
	}
}

// Root may write anywhere, so the refusal is made from what the kernel would say to others.
func TestNoPermissionSaysWhatToDo(t *testing.T) {
	err := dirError("/srv/machines", &os.PathError{Op: "mkdir", Path: "/srv/machines", Err: syscall.EACCES})
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "choose a directory") ||
		!strings.Contains(err.Error(), "/srv/machines") {
		t.Error(err)
	}
}

func TestNewStartsNothingAndMakesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	p := open(t, dir, "plain")
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if got, err := p.List(t.Context(), "s1"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestValidate(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	p.zones = []string{"a", "b"}
	for name, c := range map[string]struct {
		template provider.Template
		says     []string
	}{
		"empty":   {provider.Template{}, nil},
		"zones":   {provider.Template{Zones: []string{"b", "a"}}, nil},
		"no zone": {provider.Template{Zones: []string{"a", "c"}}, []string{`"c"`, "a, b"}},
		"type":    {provider.Template{InstanceTypes: []string{"small"}}, []string{`"small"`, "remove it"}},
		"settings": {
			provider.Template{Settings: map[string]any{"image": "x", "cpu": "2"}},
			[]string{`"cpu"`, `"image"`},
		},
	} {
		err := p.Validate(c.template)
		if (err == nil) != (c.says == nil) || err != nil && !errors.Is(err, provider.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		for _, s := range c.says {
			if err != nil && !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v, want word of %s", name, err, s)
			}
		}
	}
}

func TestNamesThatAreNoFileNames(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	for _, name := range []string{
		"", ".", "..", "../x", "a/b", ".locks", "a b", "-x", "a\x00b",
		strings.Repeat("x", 121),
	} {
		req := request(name)
		for call, err := range map[string]error{
			"Create":  second(p.Create(t.Context(), req)),
			"Stop":    p.Stop(t.Context(), "s1", name, 0),
			"Delete":  p.Delete(t.Context(), "s1", name),
			"Restart": p.Restart(t.Context(), "s1", name, ""),
		} {
			if !errors.Is(err, provider.ErrInvalid) {
				t.Errorf("%s(%q): %v, want ErrInvalid", call, name, err)
			}
		}
	}
}

func second(_ provider.Machine, err error) error { return err }

// No answer proves nothing: what cannot be read might be a machine that runs.
// proves DET-4
func TestListIsCompleteOrAnError(t *testing.T) {
	spoil := map[string]func(t *testing.T, dir string){
		"record missing": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, recordFile))) },
		"record damaged": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, recordFile), []byte(`{"sch`), 0o600))
		},
		"record elsewhere": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, recordFile), []byte(`{"schema":1,"instance":"i7"}`), 0o600))
		},
		"record newer": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, recordFile), []byte(`{"schema":99,"instance":"i1"}`), 0o600))
		},
	}
	for name, f := range spoil {
		t.Run(name, func(t *testing.T) {
			p := open(t, t.TempDir(), "plain")
			create(t, p, "i2")
			dir := p.machineDir("i1")
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.WriteFile(filepath.Join(dir, recordFile), []byte(`{"schema":1,"instance":"i1","shard":"s1"}`),
				0o600))
			if got, err := p.List(t.Context(), "s1"); err != nil || len(got) != 2 {
				t.Fatalf("before: %v, %v", got, err)
			}
			f(t, dir)
			got, err := p.List(t.Context(), "s1")
			if err == nil || got != nil || !strings.Contains(err.Error(), "i1") {
				t.Errorf("listed %v, %v", got, err)
			}
			must(t, os.RemoveAll(dir))
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTombstonesArePruned(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	for _, id := range []string{"i1", "i2"} {
		must(t, p.Delete(t.Context(), "s1", id))
	}
	old := time.Now().Add(-2 * tombstoneLife)
	must(t, os.Chtimes(p.tombstone("s1", "i1"), old, old))
	again := open(t, p.dir, "plain")
	must(t, again.Delete(t.Context(), "s1", "i3"))
	for id, want := range map[string]bool{"i1": false, "i2": true, "i3": true} {
		if got, err := p.wasDeleted("s1", id); err != nil || got != want {
			t.Errorf("%s: remembered %v (%v), want %v", id, got, err, want)
		}
	}
}

// Delete finds the processes of a machine whose directory was removed by hand.
func TestDeleteWithoutADirectory(t *testing.T) {
	p := open(t, t.TempDir(), "daemon")
	create(t, p, "i1")
	must(t, os.RemoveAll(p.machineDir("i1")))
	if len(marked(t, "s1", "i1")) == 0 {
		t.Fatal("nothing runs: the test could not fail")
	}
	must(t, p.Delete(t.Context(), "s1", "i1"))
	if left := marked(t, "s1", "i1"); len(left) > 0 {
		t.Errorf("these run still: %v", left)
	}
}

// Locks, staging and trash do not pile up.
func TestDeleteLeavesATombstoneOnly(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	create(t, p, "i1")
	must(t, p.Delete(t.Context(), "s1", "i1"))
	for _, dir := range []string{".", newDir, trashDir, locksDir} {
		entries, err := os.ReadDir(filepath.Join(p.dir, dir))
		must(t, err)
		for _, e := range entries {
			if strings.Contains(e.Name(), "i1") {
				t.Errorf("left: %s/%s", dir, e.Name())
			}
		}
	}
}

func TestHaltAndResume(t *testing.T) {
	dir := t.TempDir()
	p := open(t, dir, "parent")
	for _, id := range []string{"i1", "i2", "stopped", "crashed"} {
		create(t, p, id)
	}
	must(t, p.Stop(t.Context(), "s1", "stopped", time.Minute))
	crashed := recordOf(t, p, "crashed")
	must(t, identity{crashed.PID, crashed.Start}.signal(syscall.SIGKILL))
	awaitState(t, p, "crashed", provider.StateCrashed)
	before := recordOf(t, p, "i1")

	must(t, p.Halt(t.Context()))
	for _, id := range []string{"i1", "i2", "stopped", "crashed"} {
		if left := marked(t, "s1", id); len(left) > 0 {
			t.Errorf("%s: these run still: %v", id, left)
		}
	}
	if m := stateOf(t, p, "i1"); m.State != provider.StateStopped || !strings.Contains(m.Why, "halted") {
		t.Errorf("halted, and listed as %+v", m)
	}
	if !exists(workFile(p, "i1", "ended-in-order")) {
		t.Error("i1 was not let end in order")
	}
	must(t, p.Halt(t.Context())) // again: changes nothing

	again := open(t, dir, "parent")
	n, err := again.Resume(t.Context())
	if err != nil || n != 2 {
		t.Fatalf("resumed %d, %v; want 2", n, err)
	}
	for id, want := range map[string]provider.State{
		"i1": provider.StateRunning, "i2": provider.StateRunning, "stopped": provider.StateStopped,
		"crashed": provider.StateCrashed,
	} {
		if m := stateOf(t, again, id); m.State != want {
			t.Errorf("%s: resumed as %+v, want %s", id, m, want)
		}
	}
	after := recordOf(t, again, "i1")
	if after.Port != before.Port || after.BootID == before.BootID || after.Boot != before.Boot+1 {
		t.Errorf("resumed from %+v to %+v", before, after)
	}
	if n, err := again.Resume(t.Context()); err != nil || n != 0 {
		t.Errorf("a second Resume started %d, %v", n, err)
	}
}

// A machine that cannot come back is not resumed, but listed as stopped, with the reason: so it is
// replaced at once.
func TestMachinesAreGivenUp(t *testing.T) {
	dir := t.TempDir()
	p := open(t, dir, "parent")
	for _, id := range []string{"halted", "runs", "good"} {
		create(t, p, id)
	}
	useless := func(b provider.Bootstrap) bool { return b.Instance != "good" }
	must(t, p.Halt(t.Context()))
	if n, err := p.Resume(t.Context()); err != nil || n != 3 {
		t.Fatalf("resumed %d, %v", n, err)
	}
	r := recordOf(t, p, "halted")
	r.State, r.Halted = stepStopping, true // a halt that was interrupted
	must(t, p.write(r))
	if n, err := p.GiveUp(t.Context(), "of no use", useless); err != nil || n != 2 {
		t.Fatalf("given up %d, %v; want 2", n, err)
	}
	if n, err := p.GiveUp(t.Context(), "of no use", useless); err != nil || n != 0 {
		t.Errorf("given up %d more, %v", n, err)
	}
	if n, err := p.Resume(t.Context()); err != nil || n != 0 {
		t.Errorf("resumed %d, %v", n, err)
	}
	for _, id := range []string{"halted", "runs"} {
		if m := stateOf(t, p, id); m.State != provider.StateStopped || m.Why != "of no use" ||
			len(marked(t, "s1", id)) != 0 {
			t.Errorf("%s is listed as %+v", id, m)
		}
	}
	if m := stateOf(t, p, "good"); m.State != provider.StateRunning {
		t.Errorf("a good one is listed as %+v", m)
	}
}

// The mark is there before the agent hears of the end; a Halt that is interrupted then is made up
// for by Resume.
func TestResumeAfterAnInterruptedHalt(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	r := create(t, p, "i1")
	r.State, r.Halted = stepStopping, true
	must(t, p.write(r))
	if n, err := p.Resume(t.Context()); err != nil || n != 1 {
		t.Fatalf("resumed %d, %v", n, err)
	}
	now := recordOf(t, p, "i1")
	if got := marked(t, "s1", "i1"); len(got) != 1 || got[0].pid != now.PID || now.BootID == r.BootID || now.Halted {
		t.Errorf("record %+v; running %v", now, got)
	}
}

// What was on its way down already is ended by Halt, and is not started by Resume.
func TestHaltOfAMachineThatIsStopping(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	r := create(t, p, "i1")
	r.State = stepStopping
	must(t, p.write(r))
	must(t, p.Halt(t.Context()))
	if n, err := p.Resume(t.Context()); err != nil || n != 0 {
		t.Errorf("resumed %d, %v", n, err)
	}
	if m := stateOf(t, p, "i1"); m.State != provider.StateStopped || len(marked(t, "s1", "i1")) != 0 {
		t.Errorf("listed as %+v", m)
	}
}

// A process that opened the lock's file before its holder removed it gets no lock by that file.
func TestLockSurvivesItsRemoval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := tryAcquire(path)
	must(t, err)
	if _, err := tryAcquire(path); !errors.Is(err, errBusy) {
		t.Fatalf("taken twice: %v", err)
	}
	waiter, err := os.OpenFile(path, os.O_RDWR, 0o600)
	must(t, err)
	defer waiter.Close()
	must(t, os.Remove(path))
	unlock()
	if ours, err := claim(waiter, path); err != nil || ours {
		t.Errorf("the removed file is the lock: %v, %v", ours, err)
	}
	second, err := tryAcquire(path)
	must(t, err)
	defer second()
	if ours, err := claim(waiter, path); err != nil || ours {
		t.Errorf("the removed file is the lock beside the new one: %v, %v", ours, err)
	}
}

func TestLockEndsWithItsContext(t *testing.T) {
	p := open(t, t.TempDir(), "plain")
	for name, lock := range map[string]string{"the machine's": "i1", "the ports'": portLock} {
		unlock, err := tryAcquire(filepath.Join(p.dir, locksDir, lock))
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := p.Create(ctx, request("i1")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Create while another process has %s lock: %v", name, err)
		}
		cancel()
		if got, err := p.List(t.Context(), "s1"); err != nil || len(got) != 0 {
			t.Errorf("Create without %s lock: %v, %v", name, got, err)
		}
		unlock()
	}
	create(t, p, "i1")
}

func TestStatOfAProgramWithAnOddName(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "a) S 1 (b")
	sleep, err := exec.LookPath("sleep")
	must(t, err)
	must(t, os.Symlink(sleep, odd))
	c := exec.Command(odd, "60")
	must(t, c.Start())
	defer func() {
		must(t, c.Process.Kill())
		_ = c.Wait()
	}()
	s, err := readStat(c.Process.Pid)
	if err != nil || s.parent != os.Getpid() || s.start == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func BenchmarkList(b *testing.B) {
	p, err := New(Config{Dir: b.TempDir(), AgentCommand: []string{"sleep", "1"}})
	if err != nil {
		b.Fatal(err)
	}
	self, err := readStat(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		r := record{
			Schema: 1, Instance: fmt.Sprintf("i%d", i), Shard: "s1", State: stepStarted, HostBoot: p.hostBoot,
			PID: self.pid, Start: self.start,
		}
		if err := os.MkdirAll(p.machineDir(r.Instance), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := p.write(r); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		got, err := p.List(b.Context(), "s1")
		if err != nil || len(got) != 1000 || got[0].State != provider.StateRunning {
			b.Fatal(len(got), err)
		}
	}
}
