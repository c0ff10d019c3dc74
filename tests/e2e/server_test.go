package e2e

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// hosts are servers of one cluster, each a supervisor with its parts, on loopback.
type hosts struct {
	*world
	all   map[string]*serverHost
	flags []string // more flags of every host; @host is its name
}

// serverHost is one of them.
type serverHost struct {
	name, dir           string
	agents, etcd, peers string // addresses
	run                 *program
}

// newHosts makes a world for servers. Their machines are processes in one directory, so that any of
// them can lead.
func newHosts(t *testing.T) *hosts {
	t.Helper()
	c := &hosts{world: newWorld(t, "machines"), all: map[string]*serverHost{}}
	t.Cleanup(func() {
		for _, h := range c.all {
			if h.run != nil {
				c.end(h)
			}
		}
	})
	return c
}

// host is a host of that name, which has not been started yet.
func (c *hosts) host(name string) *serverHost {
	c.t.Helper()
	h := &serverHost{name: name, dir: filepath.Join(c.dir, name)}
	for _, address := range []*string{&h.agents, &h.etcd, &h.peers} {
		*address = addresses.FreeAddress(c.t)
	}
	c.all[name] = h
	return h
}

// args are the flags with which a host is set up.
func (h *serverHost) args(c *hosts) []string {
	args := []string{
		"server", "--name", h.name, "--address", "127.0.0.1", "--bind", "127.0.0.1", "--data-dir", h.dir,
		"--machines", c.machines, "--agent", bin("leasehold-agent"), "--http", "off",
	}
	for flag, address := range map[string]string{"--port": h.agents, "--etcd-port": h.etcd, "--peer-port": h.peers} {
		_, port, _ := net.SplitHostPort(address)
		args = append(args, flag, port)
	}
	for _, flag := range c.flags {
		args = append(args, strings.ReplaceAll(flag, "@host", h.name))
	}
	return args
}

// begin starts a host, and waits until it is ready.
func (c *hosts) begin(h *serverHost, more ...string) {
	c.t.Helper()
	h.run = c.start("server-"+h.name, c.command(bin("leasehold"), append(h.args(c), more...)...))
	c.await(h.name+" being ready", func() bool {
		if h.run.HasEnded() {
			c.t.Fatalf("%s ended with %d: %s", h.name, h.run.ExitCode(), h.run.stderr.String())
		}
		return strings.HasPrefix(h.run.stdout.String(), "ready ")
	})
}

// end ends a host in order.
func (c *hosts) end(h *serverHost) {
	c.t.Helper()
	h.run.Terminate()
	c.waitEnd(h.run)
	if h.run.ExitCode() != 0 && h.run.ExitCode() != 130 {
		c.t.Errorf("%s ended with %d: %s", h.name, h.run.ExitCode(), h.run.stderr.String())
	}
	h.run = nil
}

// commands has the tests' commands, and their own connection, use a host's settings.
func (c *hosts) commands(h *serverHost) {
	c.endpoint, c.settings = h.etcd, "LEASEHOLD_CONFIG="+filepath.Join(h.dir, "config.yaml")
	c.secure = func() (*tls.Config, error) { return rootOf(filepath.Join(h.dir, "pki")) }
}

// part returns the process ID of a host's part, by the log.
func (c *hosts) part(h *serverHost, name string) int {
	c.t.Helper()
	mark := fmt.Sprintf(`"part":%q,"pid":`, name)
	text := h.run.stderr.String()
	i := strings.LastIndex(text, mark)
	var pid int
	if i < 0 {
		c.t.Fatalf("%s has no part %s: %s", h.name, name, text)
	}
	if _, err := fmt.Sscanf(text[i+len(mark):], "%d", &pid); err != nil {
		c.t.Fatal(err)
	}
	return pid
}

// starts counts how often a part of a host was started.
func (h *serverHost) starts(name string) int {
	return strings.Count(h.run.stderr.String(), fmt.Sprintf(`"msg":"part of the server started","part":%q`, name))
}

// One command makes a shard on one host: with TLS, users and roles. Its parts end and begin alone;
// its instances are not touched by that, and status names the ends. A host whose data is gone makes
// no new cluster.
//
// proves DAY-1, SAFE-15, SEC-4
func TestServerFromNothing(t *testing.T) {
	t.Parallel()
	c := newHosts(t)
	a := c.host("a")
	complains(t, c.cli(a.args(c)...), 1, "holds no server", "--init")

	c.begin(a, "--init")
	c.commands(a)
	c.follow()
	if out := c.must("auth", "show"); !strings.Contains(out, "authentication is on; you are operator") {
		t.Errorf("auth show: %s", out)
	}
	c.must("config", "set", "reconnect_max="+reconnect.String(), "provider_poll=1s")
	c.must("group", "apply", "-f", c.groupFile("web", 2))
	c.await("the group", func() bool { return c.h.complete("web", 2) })

	victim := c.h.wanted("web")[0]
	c.signalAgent(victim, syscall.SIGKILL)
	c.await("the group being healed",
		func() bool { return c.h.complete("web", 2) && !slices.Contains(c.h.wanted("web"), victim) })
	ids := c.h.wanted("web")

	// The replica dies: the member goes on.
	member := c.part(a, "member")
	if err := syscall.Kill(c.part(a, "replica"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.await("another replica that serves", func() bool {
		return a.starts("replica") == 2 && strings.Count(a.run.stderr.String(), `"msg":"serving agents"`) == 2
	})
	if c.part(a, "member") != member || a.starts("member") != 1 {
		t.Error("the member was started again with the replica")
	}
	// The member dies: the replica goes on, on the member that is started again.
	if err := syscall.Kill(member, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.await("another member", func() bool { return a.starts("member") == 2 })
	c.heals(ids)
	if a.starts("replica") != 2 {
		t.Error("the replica was started again with the member")
	}

	// It ends in order and begins again, as a service would start it.
	c.end(a)
	c.begin(a)
	c.heals(c.h.wanted("web"))
	c.killed(a)
	c.end(a)

	// Its etcd's data is gone.
	if err := os.RemoveAll(filepath.Join(a.dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{nil, {"--init"}} {
		complains(t, c.cli(append(a.args(c), more...)...), 1, "the data of this host's etcd is gone", "replace a")
	}
	// All of it is gone, and a service starts it with the command that made it.
	if err := os.RemoveAll(a.dir); err != nil {
		t.Fatal(err)
	}
	cmd := c.command(bin("leasehold"), append(a.args(c), "--init")...)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET=/nowhere")
	p := c.start("service", cmd)
	c.waitEnd(p)
	complains(t, p, 1, "a service must not create a cluster")
}

// killed has all of a host be killed and started again: status names that end, and no end in order.
func (c *hosts) killed(h *serverHost) {
	c.t.Helper()
	says := func(what string) func() bool {
		return func() bool { return strings.Contains(c.cli("status").stdout.String(), what) }
	}
	ended := says("leasehold server, with both parts, ended")
	c.await("status to name the ends of its parts", says("its etcd member ended"))
	if ended() {
		c.t.Error("an end in order is called one by itself")
	}
	h.run.Signal(syscall.SIGKILL)
	c.waitEnd(h.run)
	c.begin(h)
	c.await("status to name the end of the server", ended)
}

// heals shows that the cluster works with these instances and no others: one is ordered to be
// replaced.
func (c *hosts) heals(ids []string) {
	c.t.Helper()
	c.same("web", ids)
	before := c.caughtUp()
	victim := ids[0]
	c.signalAgent(victim, syscall.SIGKILL)
	c.awaitEntry("the replacement of "+victim, before,
		func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
	c.await("the group being healed",
		func() bool { return c.h.complete("web", len(ids)) && !slices.Contains(c.h.wanted("web"), victim) })
	for _, id := range ids[1:] {
		if !slices.Contains(c.h.wanted("web"), id) {
			c.t.Errorf("%s was replaced, and had not failed", id)
		}
	}
}
