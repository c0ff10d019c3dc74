package checks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// shrinkBacklog limits a listener's backlog to one connection.
func shrinkBacklog(t *testing.T, raw syscall.RawConn) {
	t.Helper()
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), 0) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

func command(run ...string) *protocol.CheckSpec {
	return &protocol.CheckSpec{Name: "command", Kind: &protocol.CheckSpec_Exec{Exec: &protocol.ExecCheck{Run: run}}}
}

func program(c *protocol.ProcessCheck) *protocol.CheckSpec {
	return &protocol.CheckSpec{Name: "program", Kind: &protocol.CheckSpec_Process{Process: c}}
}

// proves DET-9
func TestExec(t *testing.T) {
	for name, c := range map[string]struct {
		run  []string
		want Result
	}{
		"passes": {[]string{"true"}, ""},
		"fails":  {[]string{"false"}, "ended with exit code 1"},
		"says why": {
			[]string{"sh", "-c", "echo first; echo the disk is full >&2; echo; exit 3"},
			"ended with exit code 3: the disk is full",
		},
		"is no text":   {[]string{"sh", "-c", `printf 'a\377b'; exit 3`}, "ended with exit code 3: a?b"},
		"kills itself": {[]string{"sh", "-c", "kill -9 $$"}, "ended by signal killed"},
		"says much": {
			[]string{"sh", "-c", "yes | head -c 10000000; echo; echo that was it; exit 4"},
			"ended with exit code 4: that was it",
		},
		"says much more": {[]string{"sh", "-c", "yes | head -c 10000000"}, ""},
	} {
		if got := try(t, command(c.run...)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if got := try(t, command("/no/such/program")); !strings.Contains(string(got), "no such file") {
		t.Errorf("no such program: got %q", got)
	}
}

// A command sees what the workload sees, and is where it is.
//
// proves DET-9
func TestExecHasTheWorkloadsEnvironment(t *testing.T) {
	dir := t.TempDir()
	run, err := prepare(command("sh", "-c",
		`test "$greeting/$LEASEHOLD_GROUP/$LEASEHOLD_INSTANCE/$LEASEHOLD_MACHINE" = hi/web/web-0/s1/web-0 && test "$PWD" = "$0"`, dir),
		workload.Config{Dir: dir, Instance: "web-0", Group: "web", Shard: "s1"}, map[string]string{"greeting": "hi"})
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t.Context()); got != "" {
		t.Errorf("got %q", got)
	}
}

// group lists the processes that run with this mark in their environment.
func group(mark string) []int {
	var out []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if _, runs := stat(e.Name()); runs && strings.Contains(string(env), "MARK="+mark+"\x00") {
			out = append(out, pid)
		}
	}
	return out
}

// A command that ignores every polite signal and has a child that holds its output is killed with
// it.
//
// proves DET-9
func TestExecIsKilledWithItsGroup(t *testing.T) {
	for _, role := range []string{"stay", "fork"} {
		mark := filepath.Join(t.TempDir(), "mark")
		run, err := prepare(command(os.Args[0]), workload.Config{Dir: t.TempDir()},
			map[string]string{playVar: role, "MARK": mark})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan Result, 1)
		go func() { result <- run(ctx) }()
		await(t, "the command", func() bool { _, err := os.Stat(mark); return err == nil })
		if n := len(group(mark)); role == "fork" && n < 2 || n < 1 {
			t.Errorf("%s: %d processes, so that nothing is proved", role, n)
		}
		cancel()
		select {
		case got := <-result:
			if got != timedOut {
				t.Errorf("%s: got %q", role, got)
			}
		case <-time.After(patience):
			t.Fatalf("%s: it is not over", role)
		}
		await(t, "the end of all of it", func() bool { return len(group(mark)) == 0 })
	}
}

// What a command leaves behind is no reason to wait, and does not stay.
//
// proves DET-9
func TestExecThatLeavesAChild(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	run, err := prepare(command("sh", "-c", "sleep 1000 & exit 0"), workload.Config{Dir: t.TempDir()},
		map[string]string{"MARK": mark})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if got := run(ctx); got != "" {
		t.Errorf("got %q", got)
	}
	await(t, "the end of the child", func() bool { return len(group(mark)) == 0 })
}

// await polls until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !is(); {
		if time.Now().After(until) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// proves DET-9
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	zombie, err := os.StartProcess("/proc/self/exe", []string{"x", "-test.run=^$"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = zombie.Wait() }()
	await(t, "the end of a process whose exit code is not collected", func() bool {
		_, runs := stat(strconv.Itoa(zombie.Pid))
		return !runs
	})
	own, _ := stat("self")
	mine, absent := fmt.Sprint(os.Getpid()), filepath.Join(dir, "none")
	gone := fmt.Sprint(zombie.Pid)
	for name, c := range map[string]struct {
		check *protocol.ProcessCheck
		want  Result
	}{
		"by name":        {&protocol.ProcessCheck{Name: filepath.Base(os.Args[0])}, ""},
		"by kernel name": {&protocol.ProcessCheck{Name: own}, ""},
		"unknown name":   {&protocol.ProcessCheck{Name: "no-such-name"}, `no process is called "no-such-name"`},
		"part of a name": {
			&protocol.ProcessCheck{Name: own[:len(own)-1]},
			Result(fmt.Sprintf("no process is called %q", own[:len(own)-1])),
		},
		"by file": {&protocol.ProcessCheck{PidFile: write("own", mine+"\n")}, ""},
		"no file": {&protocol.ProcessCheck{PidFile: absent}, Result(absent + " does not exist")},
		"nothing in it": {
			&protocol.ProcessCheck{PidFile: write("empty", "")},
			Result(dir + "/empty holds no process ID"),
		},
		"something else": {
			&protocol.ProcessCheck{PidFile: write("odd", "-1")},
			Result(dir + "/odd holds no process ID"),
		},
		"an ended one's": {
			&protocol.ProcessCheck{PidFile: write("gone", gone)},
			Result("process " + gone + " from " + dir + "/gone does not run"),
		},
		"an endless file": {&protocol.ProcessCheck{PidFile: "/dev/zero"}, "/dev/zero holds no process ID"},
	} {
		if got := try(t, program(c.check)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A name that is longer than the kernel keeps is compared as a whole.
//
// proves DET-9
func TestProcessWithALongName(t *testing.T) {
	long := filepath.Join(t.TempDir(), "a-name-that-is-rather-long")
	if err := os.Symlink("/bin/sleep", long); err != nil {
		t.Fatal(err)
	}
	p, err := os.StartProcess(long, []string{long, "1000"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Kill(); _, _ = p.Wait() }()
	check := program(&protocol.ProcessCheck{Name: "a-name-that-is-rather-long"})
	await(t, "the process", func() bool { return try(t, check) == "" })
	if got := try(t, program(&protocol.ProcessCheck{Name: "a-name-that-is-rather-short"})); got == "" {
		t.Error("another name with the same beginning passes")
	}
	_ = p.Kill()
	await(t, "its end", func() bool { return try(t, check) != "" })
}
