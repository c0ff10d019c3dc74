package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
)

// stack is an OpenStack of ours whose servers are agents on this host.
type stack struct {
	*openstacktest.Cloud
	guests
	t *testing.T
}

func newStack(t *testing.T, dir string) *stack {
	t.Helper()
	s := &stack{Cloud: openstacktest.New(), guests: guests{filepath.Join(dir, "stack")}, t: t}
	s.Set(func(c *openstacktest.Cloud) { c.Boot = s.run })
	t.Cleanup(func() {
		s.Close()
		s.remove()
	})
	return s
}

// documentOf is the bootstrap document in user data.
func documentOf(data string) ([]byte, error) {
	var config struct {
		Files []struct{ Path, Content string } `json:"write_files"`
	}
	text, ok := strings.CutPrefix(data, "#cloud-config\n")
	if err := json.Unmarshal([]byte(text), &config); err != nil || !ok || len(config.Files) == 0 {
		return nil, fmt.Errorf("user data are no cloud-config with files: %w", err)
	}
	return []byte(config.Files[0].Content), nil
}

// run starts a server's agent.
func (s *stack) run(server openstacktest.Server, ended func()) (func(hard bool), error) {
	document, err := documentOf(server.UserData)
	if err != nil {
		return nil, err
	}
	one, err := s.boot(server.ID, document)
	if err != nil {
		return nil, err
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		<-one.ended
		ended()
	}()
	return func(hard bool) {
		sig := syscall.SIGTERM
		if hard {
			sig = syscall.SIGKILL
		}
		if err := one.end(sig); err != nil {
			s.t.Error(err)
		}
		<-told
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
	providers := l.file("providers.yaml", fmt.Sprintf(`providers:
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
		return l.file("web.yaml", fmt.Sprintf(`name: web
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
	l.must("secret", "set", "stack", "--from-file", l.file("password", openstacktest.Password))
	l.await("the group", func() bool { return l.h.complete("web", 3) })

	victim := l.h.wanted("web")[0]
	var pid int
	for _, server := range s.Servers() {
		if server.Metadata["leasehold_instance"] != victim {
			continue
		}
		pid = l.pidIn(s.pidFile(server.ID))
		if server.Metadata["team"] != "web" || server.Metadata["leasehold_group"] != "web" {
			t.Fatalf("server %+v", server)
		}
	}
	l.healsCrash("web", victim, pid, 3)
	s.Expire() // of the token
	l.recreates("web", group(2, "shop"), 2)
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
	ids := l.h.wanted("web")
	l.await("the copy being removed", func() bool {
		return !slices.ContainsFunc(s.Servers(), func(server openstacktest.Server) bool { return server.ID == copied })
	})
	l.same("web", ids)
	l.must("group", "delete", "web", "--confirm", "web", "--wait")
	if left := s.Servers(); len(left) > 0 {
		t.Errorf("servers are left: %+v", left)
	}
	l.showsSchema("stack", "config_drive")
	l.quit()
}
