package agentcmd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/provider"
)

// DefaultBootstrap is the bootstrap document's default path for an agent that is its machine's
// first process.
const DefaultBootstrap = "/etc/leasehold/bootstrap.json"

// tooSoon is the least run time of an agent that is restarted after a crash.
const tooSoon = 10 * time.Second

// sigHalt is SIGRTMIN+3, which tells systemd to halt. LXC sends it in place of SIGPWR to a first
// process that blocks SIGPWR, as one of the threads of a Go program that listens to signals does.
const sigHalt = syscall.Signal(37)

// First runs as the first process of a machine, for example of a container. It starts this program
// again with the same arguments, as the agent, and stays beside it: it reaps orphaned processes and
// passes on requests to stop. The machine ends with it: when it was asked to, or when the agent has
// ended by itself. It restarts an agent that crashes after a while, and the new agent adopts the
// workload. First returns the exit code.
//
// The agent is a process of its own because only a parent that waits for no other children may reap
// all of them.
func First(args []string, log *slog.Logger) int {
	if err := mountProc(); err != nil {
		log.Warn("the agent needs /proc", "error", err)
	}
	program, err := os.Executable()
	if err != nil {
		log.Error("find this program", "error", err)
		return 1
	}
	f := first{
		asked: make(chan os.Signal, 8), children: make(chan os.Signal, 1), log: log,
		start: func() (int, error) { return startAgent(program, args) },
		end:   func(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) },
		reap:  reap,
		now:   time.Now,
	}
	signal.Notify(f.asked, syscall.SIGPWR, sigHalt, syscall.SIGTERM, os.Interrupt)
	signal.Notify(f.children, syscall.SIGCHLD)
	return f.run()
}

type first struct {
	asked, children chan os.Signal
	log             *slog.Logger
	start           func() (pid int, err error)
	end             func(pid int) error
	reap            func() (map[int]syscall.WaitStatus, error)
	now             func() time.Time
}

func (f first) run() int {
	asked := false
	for {
		began := f.now()
		pid, err := f.start()
		if err != nil {
			f.log.Error("start the agent", "error", err)
			return 1
		}
		var status syscall.WaitStatus
		for ended := false; !ended; {
			select {
			case <-f.asked:
				if !asked { // a second signal would kill the agent
					f.terminate(pid)
				}
				asked = true
			case <-f.children:
				all, err := f.reap()
				if err != nil {
					f.log.Warn("collect ended processes", "error", err)
				}
				status, ended = all[pid]
			}
		}
		code := status.ExitStatus()
		if status.Signaled() {
			code = 128 + int(status.Signal())
		}
		if ran := f.now().Sub(began); asked || code == 0 || ran < tooSoon {
			f.log.Info("the agent has ended, and the machine with it", "code", code, "asked", asked)
			return code
		}
		f.log.Error("the agent crashed and is restarted", "code", code)
	}
}

func (f first) terminate(pid int) {
	if err := f.end(pid); err != nil && !errors.Is(err, syscall.ESRCH) {
		f.log.Error("ask the agent to end", "error", err)
	}
}

func startAgent(program string, args []string) (int, error) {
	p, err := os.StartProcess(program, append([]string{program}, args...), &os.ProcAttr{
		Env: firstEnvironment(os.Environ()), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return 0, err
	}
	pid := p.Pid // Release forgets it
	return pid, p.Release()
}

// firstEnvironment adds the variables that a first process does not get.
func firstEnvironment(env []string) []string {
	for _, v := range []string{
		provider.EnvBootstrap + "=" + DefaultBootstrap,
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root",
		"TERM=dumb", // its output goes to a console log
	} {
		name, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			env = append(env, v)
		}
	}
	return env
}

// reap collects all children that have ended.
func reap() (map[int]syscall.WaitStatus, error) {
	all := map[int]syscall.WaitStatus{}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD) || err == nil && pid == 0:
			return all, nil
		case err != nil:
			return all, err
		default:
			all[pid] = status
		}
	}
}

// mountProc mounts /proc unless it is mounted for this machine's own processes, as LXD does.
func mountProc() error {
	if self, err := os.Readlink("/proc/self"); err == nil && self == "1" {
		return nil
	}
	if err := os.MkdirAll("/proc", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}
