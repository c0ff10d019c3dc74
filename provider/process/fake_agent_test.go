package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/providertest"
)

// The test binary, run again with these words, is the agent.
const fakeAgent = "fake-agent"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == fakeAgent {
		if err := runFakeAgent(os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(9)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// fakeLife ends fake agents that a test which crashed has left behind.
const fakeLife = 3 * time.Minute

// runFakeAgent plays an agent, or a workload of one, in the way that mode says.
func runFakeAgent(mode string) error {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	stubborn := false
	switch mode {
	case "plain":
	case "exit3":
		os.Exit(3)
	case "exit0":
		os.Exit(0)
	case "chatty":
		fmt.Println("out of the agent")
		fmt.Fprintln(os.Stderr, "err of the agent")
		env := append(os.Environ(), "args "+strings.Join(os.Args, " "))
		if err := os.WriteFile("environment", []byte(strings.Join(env, "\n")), 0o600); err != nil {
			return err
		}
	case "stubborn", "workload":
		stubborn = true
	case "parent": // of a workload in its own process group
		if err := spawn("workload", os.Environ(), &syscall.SysProcAttr{Setpgid: true}); err != nil {
			return err
		}
	case "daemon": // of a workload that left its session and its parent
		if err := spawn("daemonizer", os.Environ(), &syscall.SysProcAttr{Setsid: true}); err != nil {
			return err
		}
	case "daemonizer":
		return spawn("workload", os.Environ(), &syscall.SysProcAttr{Setsid: true})
	case "nginx": // of a workload without a marker, which the agent records
		if err := spawn("workload", []string{"NAME=none"}, &syscall.SysProcAttr{Setsid: true}); err != nil {
			return err
		}
		if err := recordWorkload(); err != nil {
			return err
		}
	case "wiped": // of a workload without a marker
		if err := spawn("workload", []string{"NAME=none"}, &syscall.SysProcAttr{Setpgid: true}); err != nil {
			return err
		}
	default:
		return fmt.Errorf("no such fake agent: %s", mode)
	}
	if err := os.WriteFile("ready-"+mode, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	over := time.After(fakeLife)
	for {
		select {
		case <-term:
			if !stubborn {
				return os.WriteFile("ended-in-order", nil, 0o600)
			}
		case <-over:
			return errors.New("forgotten")
		}
	}
}

// recordWorkload writes what an agent writes of its workload.
func recordWorkload() error {
	for {
		text, err := os.ReadFile("ready-workload")
		if err != nil || len(text) == 0 {
			<-time.After(time.Millisecond)
			continue
		}
		pid, err := strconv.Atoi(string(text))
		if err != nil {
			return err
		}
		s, err := readStat(pid)
		if err != nil {
			return err
		}
		kernel, err := hostBootID()
		if err != nil {
			return err
		}
		data, err := json.Marshal(provider.WorkloadProcess{
			Kernel: kernel, PID: pid, Start: strconv.FormatUint(s.start, 10),
		})
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join("..", provider.WorkloadFile), data, 0o600)
	}
}

func spawn(mode string, env []string, attr *syscall.SysProcAttr) error {
	c := exec.Command(os.Args[0], fakeAgent, mode)
	c.Env, c.SysProcAttr = env, attr
	return c.Start()
}

// open makes a provider on a directory whose agents behave in the given way. What is left of the
// test's machines is ended when it is over.
func open(t *testing.T, dir, mode string) *Provider {
	t.Helper()
	// Ports by directory: tests of other packages listen at the same time.
	p, err := New(Config{
		Dir: dir, AgentCommand: []string{os.Args[0], fakeAgent, mode}, PortFrom: 21000, PortTo: 24999,
		Logger: logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		names, err := p.instances()
		if err != nil {
			t.Error(err)
		}
		for _, name := range names {
			if r, err := p.read(name); err == nil {
				if err := p.Delete(context.Background(), r.Shard, name); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return p
}

func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func request(instance string) provider.CreateRequest {
	return providertest.Request("s1", instance, "local", provider.Template{})
}

// create makes a machine and waits until its agent, and its workload if it has one, is up.
func create(t *testing.T, p *Provider, instance string) record {
	t.Helper()
	if _, err := p.Create(t.Context(), request(instance)); err != nil {
		t.Fatalf("Create: %v", err)
	}
	mode := p.command[len(p.command)-1]
	awaitFile(t, p, instance, "ready-"+mode)
	if slices.Contains([]string{"parent", "daemon", "wiped", "nginx"}, mode) {
		awaitFile(t, p, instance, "ready-workload")
	}
	return recordOf(t, p, instance)
}

func recordOf(t *testing.T, p *Provider, instance string) record {
	t.Helper()
	r, err := p.read(instance)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// eventually polls until ok, or fails the test.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("waited without success: %s", what)
		}
	}
}

func workFile(p *Provider, instance, name string) string {
	return filepath.Join(p.machineDir(instance), workDir, name)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func awaitFile(t *testing.T, p *Provider, instance, name string) {
	t.Helper()
	eventually(t, "file "+name+" of "+instance, func() bool { return exists(workFile(p, instance, name)) })
}

// pidIn reads the process that wrote a file.
func pidIn(t *testing.T, p *Provider, instance, name string) int {
	t.Helper()
	var pid int
	eventually(t, "a pid in "+name, func() bool {
		data, err := os.ReadFile(workFile(p, instance, name))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(string(data))
		return err == nil
	})
	return pid
}

// marked are the running processes with the machine's marker.
func marked(t *testing.T, shard, instance string) []identity {
	t.Helper()
	all, err := census(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found []identity
	for _, r := range all {
		if r.marker == shard+"/"+instance {
			found = append(found, r.identity)
		}
	}
	return found
}

func stateOf(t *testing.T, p *Provider, instance string) provider.Machine {
	t.Helper()
	machines, err := p.List(t.Context(), "s1")
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	for _, m := range machines {
		if m.Instance == instance {
			return m
		}
	}
	return provider.Machine{}
}

func awaitState(t *testing.T, p *Provider, instance string, want provider.State) provider.Machine {
	t.Helper()
	var m provider.Machine
	eventually(t, fmt.Sprintf("%s is %s", instance, want), func() bool {
		m = stateOf(t, p, instance)
		return m.State == want
	})
	return m
}

func runs(t *testing.T, id identity) bool {
	t.Helper()
	ok, err := id.runs()
	if err != nil {
		t.Fatal(err)
	}
	return ok
}
