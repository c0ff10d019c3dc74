package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/provider"
)

// asFirst starts an agent as the first process of a machine, which has processes of its own.
func (b box) asFirst() *agentProcess {
	b.Helper()
	p := &agentProcess{Cmd: exec.Command(agentBinary), box: b, log: &bytes.Buffer{}, done: make(chan struct{})}
	p.Env = []string{provider.EnvBootstrap + "=" + b.bootstrap(), "PATH=" + os.Getenv("PATH")}
	p.Stderr = p.log
	p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		p.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	if err := p.Start(); err != nil {
		b.Fatal(err)
	}
	go func() { defer close(p.done); _ = p.Wait() }()
	b.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
		if b.Failed() {
			b.Logf("log of the agent:\n%s", p.log)
		}
	})
	return p
}

// childrenOf are the processes of a parent, as this host numbers them, and which of them wait to be
// collected.
func childrenOf(t testing.TB, parent int) (all, zombies int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(data[strings.LastIndex(string(data), ")")+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		all++
		if fields[0] == "Z" {
			zombies++
		}
	}
	return all, zombies
}

// The first process of a machine collects processes that have lost their parents, and ends the
// machine in order, whichever signal asks for it.
func TestFirstProcessOfAMachine(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{
		"power": syscall.SIGPWR, "halt of systemd": 37,
		"terminate": syscall.SIGTERM,
	} {
		t.Run(name, func(t *testing.T) {
			g := startGateway(t)
			b := newBox(t, []string{"sh", "-c", "for i in 1 2 3; do (sleep 0.1 &) ; done; trap 'touch ended; " +
				"exit' TERM; touch up; while :; do sleep 0.05; done"}, g)
			p := b.asFirst()
			g.healthy()
			for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
				_, err := os.Stat(filepath.Join(b.dir, "up"))
				all, zombies := childrenOf(t, p.Process.Pid)
				if err == nil && all == 1 && zombies == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("the first process has %d children, %d of which have ended; up: %v", all, zombies, err)
				}
			}
			p.signal(sig)
			goodbye := g.await("goodbye", func(m *protocol.AgentMessage) bool { return m.GetGoodbye() != nil }).GetGoodbye()
			if code := p.ended(); code != 0 || goodbye.GetKind() != protocol.Goodbye_SHUTDOWN {
				t.Errorf("code %d, goodbye %v", code, goodbye)
			}
			if _, err := os.Stat(filepath.Join(b.dir, "ended")); err != nil {
				t.Errorf("the workload did not end in order: %v", err)
			}
		})
	}
}

// Without a document there is nothing to wait for: the machine ends, and its provider shows that.
func TestFirstProcessWithoutADocument(t *testing.T) {
	g := startGateway(t)
	b := newBox(t, serving, g)
	if err := os.Remove(b.bootstrap()); err != nil {
		t.Fatal(err)
	}
	if code := b.asFirst().ended(); code != exitFailed {
		t.Errorf("code %d", code)
	}
}
