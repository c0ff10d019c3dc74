package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/machines"
)

// guests are the machines of an imitated cloud: agents on this host. They get what cloud-init would
// write from their user data.
type guests struct{ dir string }

// guest is one boot of a machine.
type guest struct {
	agent *exec.Cmd
	ended chan struct{} // closed when the agent and all that it started have ended
}

// boot starts a machine's agent with its bootstrap document.
func (g guests) boot(id string, document []byte, env ...string) (*guest, error) {
	dir := filepath.Join(g.dir, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "bootstrap.json")
	if err := os.WriteFile(path, document, 0o600); err != nil {
		return nil, err
	}
	mark := g.dir + "/" + id
	one := &guest{ended: make(chan struct{})}
	one.agent = exec.Command(bin("leasehold-agent"), "--bootstrap", path, "--state-dir", filepath.Join(dir, "state"))
	one.agent.Env = append(env, "PATH="+os.Getenv("PATH"), machines.EnvTest+"="+mark)
	one.agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the kernel ends the agent with the thread that started it
		defer runtime.UnlockOSThread()
		defer close(one.ended)
		err := one.agent.Start()
		if err == nil {
			err = os.WriteFile(g.pidFile(id), fmt.Append(nil, one.agent.Process.Pid), 0o600)
		}
		started <- err
		if one.agent.Process == nil {
			return
		}
		entry := fmt.Sprintf("program %d\n", one.agent.Process.Pid)
		fmt.Fprint(undertaker, entry)
		_ = one.agent.Wait() // however it ended
		machines.KillMarked(machines.EnvTest, mark)
		fmt.Fprint(undertaker, "ended "+entry)
	}()
	return one, <-started
}

// end signals the agent and waits until the machine is down.
func (o *guest) end(sig syscall.Signal) error {
	err := o.agent.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-o.ended
	return err
}

func (g guests) pidFile(id string) string { return filepath.Join(g.dir, id, "pid") }

// remove kills all machines.
func (g guests) remove() { machines.KillMarked(machines.EnvTest, g.dir+"/") }

// pidIn reads the process of a machine's agent.
func (w *world) pidIn(file string) (pid int) {
	w.t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		_, err = fmt.Sscan(string(text), &pid)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return pid
}

// file writes a file of the world and returns its path.
func (w *world) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// healsCrash kills the agent of an instance whose provider tells a crash, and waits until the group
// is healed.
func (l *laptop) healsCrash(group, victim string, pid, size int) {
	l.t.Helper()
	before := l.caughtUp()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		l.t.Fatal(err)
	}
	dead := l.awaitEntry("the replacement being asked for", before,
		func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
	if dead.Rule != "DET-4" {
		l.t.Errorf("not replaced because it was dead: %s", dead)
	}
	l.await("the group being healed",
		func() bool { return l.h.complete(group, size) && !slices.Contains(l.h.wanted(group), victim) })
}

// recreates applies a change that needs other machines, and waits until it has them.
func (l *laptop) recreates(group, file string, size int) {
	l.t.Helper()
	ids := l.h.wanted(group)
	l.must("group", "apply", "-f", file, "--confirm", group, "--wait")
	l.await("the change", func() bool {
		return l.h.complete(group, size) && !slices.ContainsFunc(ids, func(id string) bool {
			return slices.Contains(l.h.wanted(group), id)
		})
	})
}

// showsSchema fails unless provider show prints a schema with this word.
func (l *laptop) showsSchema(provider, word string) {
	l.t.Helper()
	if text := l.must("provider", "show", provider); !strings.Contains(text, word) {
		l.t.Errorf("provider show does not print the schema:\n%s", text)
	}
}

// quit ends dev with Ctrl-C.
func (l *laptop) quit() {
	l.t.Helper()
	l.dev.Signal(syscall.SIGINT)
	l.waitEnd(l.dev)
}
