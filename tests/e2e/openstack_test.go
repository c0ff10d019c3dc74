package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/machines"
)

// stack is an OpenStack of ours whose servers are agents on this host. They get what cloud-init
// would write from their user data.
type stack struct {
	*openstacktest.Cloud
	t   *testing.T
	dir string
}

func newStack(t *testing.T, dir string) *stack {
	t.Helper()
	s := &stack{Cloud: openstacktest.New(), t: t, dir: filepath.Join(dir, "stack")}
	s.Set(func(c *openstacktest.Cloud) { c.Boot = s.boot })
	t.Cleanup(func() {
		s.Close()
		machines.KillMarked(machines.EnvTest, s.dir+"/")
	})
	return s
}

func (s *stack) pidFile(id string) string { return filepath.Join(s.dir, id, "pid") }

// documentOf is the bootstrap document in user data.
func documentOf(data string) ([]byte, error) {
	var config struct {
		Files []struct{ Path, Content string } `json:"write_files"`
	}
	text, is := strings.CutPrefix(data, "#cloud-config\n")
	if err := json.Unmarshal([]byte(text), &config); err != nil || !is || len(config.Files) == 0 {
		return nil, fmt.Errorf("user data are no cloud-config with files: %w", err)
	}
	return []byte(config.Files[0].Content), nil
}

// boot starts a server's agent.
func (s *stack) boot(server openstacktest.Server, ended func()) (func(hard bool), error) {
	dir := filepath.Join(s.dir, server.ID)
	document, err := documentOf(server.UserData)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	path := filepath.Join(dir, "bootstrap.json")
	if err == nil {
		err = os.WriteFile(path, document, 0o600)
	}
	if err != nil {
		return nil, err
	}
	mark := s.dir + "/" + server.ID
	agent := exec.Command(bin("leasehold-agent"), "--bootstrap", path, "--state-dir", filepath.Join(dir, "state"))
	agent.Env = []string{"PATH=" + os.Getenv("PATH"), machines.EnvTest + "=" + mark}
	agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, over := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the kernel ends the agent with the thread that started it
		defer runtime.UnlockOSThread()
		defer close(over)
		err := agent.Start()
		if err == nil {
			err = os.WriteFile(s.pidFile(server.ID), fmt.Append(nil, agent.Process.Pid), 0o600)
		}
		started <- err
		if agent.Process == nil {
			return
		}
		entry := fmt.Sprintf("program %d\n", agent.Process.Pid)
		fmt.Fprint(undertaker, entry)
		_ = agent.Wait() // however it ended
		machines.KillMarked(machines.EnvTest, mark)
		fmt.Fprint(undertaker, "ended "+entry)
		ended()
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return func(hard bool) {
		signal := syscall.SIGTERM
		if hard {
			signal = syscall.SIGKILL
		}
		if err := agent.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			s.t.Error(err)
		}
		<-over
	}, nil
}

// A group of servers of an OpenStack of ours comes up once the shard has the password, heals when a
// guest ends, is changed, has a copy whose agent never registered, and leaves nothing.
//
// proves PROV-4, PROV-5, PROV-8, SEC-6
func TestAGroupOnOpenStack(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	s := newStack(t, l.dir)
	write := func(name, text string) string {
		path := filepath.Join(l.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	providers := write("providers.yaml", fmt.Sprintf(`providers:
  stack:
    openstack:
      auth_url: %s/identity/v3
      region: one
      user: %s
      project: %s
      password_secret: stack
      zones: {a: {availability_zone: nova}}
      image: %s
      rate: 200
      call_timeout: 30s
`, s.URL, openstacktest.User, openstacktest.Project, openstacktest.Image))
	group := func(size int, team string) string {
		return write("web.yaml", fmt.Sprintf(`name: web
size: %d
provider: stack
template:
  instance_types: [%s, %s]
  tags: {team: %s}
  settings: {networks: [%s]}
workload: {run: [sleep, infinity]}
`, size, openstacktest.LargeFlavor, openstacktest.Flavor, team, openstacktest.Network))
	}
	s.Set(func(c *openstacktest.Cloud) { c.Full = map[string]bool{openstacktest.LargeFlavor: true} })
	l.startDev("--listen", l.address(), "--providers", providers, "--group", group(3, "web"))
	l.follow()
	l.must("secret", "set", "stack", "--from-file", write("password", openstacktest.Password))
	l.await("the group", func() bool { return l.h.complete("web", 3) })

	victim := l.h.wanted("web")[0]
	var pid int
	for _, server := range s.Servers() {
		if server.Metadata["leasehold_instance"] != victim {
			continue
		}
		text, err := os.ReadFile(s.pidFile(server.ID))
		if err == nil {
			_, err = fmt.Sscan(string(text), &pid)
		}
		if err != nil || server.Metadata["team"] != "web" || server.Metadata["leasehold_group"] != "web" {
			t.Fatalf("server %+v; %v", server, err)
		}
	}
	before := l.caughtUp()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	dead := l.awaitEntry("the replacement being asked for", before,
		func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
	if dead.Rule != "DET-4" {
		t.Errorf("not replaced because it was dead: %s", dead)
	}
	l.await("the group being healed",
		func() bool { return l.h.complete("web", 3) && !slices.Contains(l.h.wanted("web"), victim) })
	s.Expire() // of the token
	ids := l.h.wanted("web")
	l.must("group", "apply", "-f", group(2, "shop"), "--confirm", "web", "--wait")
	l.await("the change", func() bool {
		return l.h.complete("web", 2) && !slices.ContainsFunc(ids, func(id string) bool {
			return slices.Contains(l.h.wanted("web"), id)
		})
	})
	for _, server := range s.Servers() {
		if server.Metadata["team"] != "shop" && slices.Contains(l.h.wanted("web"), server.Metadata["leasehold_instance"]) {
			t.Errorf("server %+v is not of the change", server)
		}
	}
	// A server that a call of ours made beside the one whose agent registered: an answer was lost.
	of := s.Servers()[0]
	lost := openstacktest.Server{
		Name: of.Name, Status: "ACTIVE", Launched: true, Metadata: map[string]string{"leasehold_call": "lost"},
	}
	for key, value := range of.Metadata {
		if key != "leasehold_call" {
			lost.Metadata[key] = value
		}
	}
	copied := s.Add(lost)
	ids = l.h.wanted("web")
	l.await("the copy being removed", func() bool {
		return !slices.ContainsFunc(s.Servers(), func(server openstacktest.Server) bool { return server.ID == copied })
	})
	l.same("web", ids)
	l.must("group", "delete", "web", "--confirm", "web", "--wait")
	if left := s.Servers(); len(left) > 0 {
		t.Errorf("servers are left: %+v", left)
	}
	if text := l.must("provider", "show", "stack"); !strings.Contains(text, "config_drive") {
		t.Errorf("provider show does not print the schema:\n%s", text)
	}
	l.dev.signal(syscall.SIGINT)
	l.waitEnd(l.dev)
}
