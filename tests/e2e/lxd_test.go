package e2e

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
	"github.com/leasehold/leasehold/store"
)

const (
	containersBridge = "lhbr0"
	containersGround = "fd42:1ea5:e401::1" // the host, on the bridge
)

// containers is a cluster whose machines are containers of a real LXD, with the agent as their
// first process, on a bridge of their own.
type containers struct {
	*cluster
	lxd       *lxdtest.LXD
	providers string
	agents    string // the directory of the programs that replicas serve
}

// makeBridge makes the bridge of containers, unless another test of this LXD has.
func makeBridge(t *testing.T, l *lxdtest.LXD) {
	t.Helper()
	err := l.Do(http.MethodGet, "/1.0/networks/"+containersBridge, nil, nil)
	if err != nil {
		// The kernel of a container gives itself an address on such a network: nothing in it has to.
		err = l.Do(http.MethodPost, "/1.0/networks", map[string]any{
			"name": containersBridge, "type": "bridge", "config": map[string]string{
				"ipv4.address": "none", "ipv6.address": containersGround + "/64", "ipv6.nat": "false", "ipv6.dhcp": "false",
				"ipv4.firewall": "false", "ipv6.firewall": "false",
			},
		}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func newContainers(t *testing.T) *containers {
	t.Helper()
	l := useLXD(t)
	makeBridge(t, l)
	c := &containers{
		cluster: &cluster{world: newWorld(t, "machines"), replicas: map[string]*program{}, listen: map[string]string{}},
		lxd:     l,
	}
	// What is frozen cannot be killed when the world ends.
	t.Cleanup(func() {
		for _, m := range c.listed() {
			if m.Status == "Frozen" {
				c.setState(m.Config["user.leasehold.instance"], "unfreeze")
			}
		}
	})
	c.startEtcd()
	c.follow()
	settings := store.DefaultShardSettings()
	settings.ReconnectMax, settings.ProviderPoll = store.Duration(reconnect), store.Duration(time.Second)
	c.put(c.h.keys.Shard(), store.Encode(store.Shard{
		Schema: store.Schema, ID: "e2e-" + strings.ToLower(rand.Text()[:10]), Name: "default",
		Created: time.Now().UTC(), Settings: settings,
	}))
	c.providers = filepath.Join(c.dir, "providers.yaml")
	if err := os.WriteFile(c.providers, fmt.Appendf(nil,
		"providers: {lxd: {lxd: {socket: %s, pool: %s, profiles: [], image: agent, call_timeout: 20s}}}\n", l.Socket(),
		lxdtest.Pool),
		0o600); err != nil {
		t.Fatal(err)
	}
	c.agents = c.agentsToServe()
	c.replica("a")
	c.replica("b")
	c.await("a leader", func() bool {
		return c.h.leader() != "" && len(currentOf[store.Replica](c.h, store.KindReplicas)) == 2
	})
	return c
}

// replica starts a coordinator on the bridge, where it listened before if it ever ran.
func (c *containers) replica(id string) {
	c.t.Helper()
	for _, what := range []string{id, "downloads of " + id} {
		if c.listen[what] != "" {
			continue
		}
		_, port, err := net.SplitHostPort(addresses.FreeAddress(c.t))
		if err != nil {
			c.t.Fatal(err)
		}
		c.listen[what] = net.JoinHostPort(containersGround, port)
	}
	c.replicas[id] = c.start(id, c.command(bin("leasehold"), "coordinator", "--id", id,
		"--listen", c.listen[id], "--machines", c.machines, "--providers", c.providers,
		"--state-dir", filepath.Join(c.dir, "known-"+id), "--agent", bin("leasehold-agent"),
		"--downloads", c.listen["downloads of "+id], "--agents", c.agents,
		"--session-ttl", "2s", "--http", "off", "--log-level", "debug"))
}

// killLeaderAt kills the coordinator that leads once the journal has such an entry, and starts it
// again. The one that it was killed for may have come from it or from the one before.
func (c *containers) killLeaderAt(what string, after store.Revision, is func(noted) bool) {
	c.t.Helper()
	c.awaitEntry(what, after, is)
	id := c.h.leader()
	if c.replicas[id] == nil {
		c.t.Fatalf("%s: %q leads", what, id)
	}
	c.replicas[id].KillGroup()
	c.replica(id)
}

// groupOf writes the file of the group. The generation marks its template. There is room for
// machines whose removal a new leader has yet to prove: a call of the one before may be under way.
// Losses come so fast here that they would be a storm.
func (c *containers) groupOf(size, generation int, lease time.Duration, onLeaseLost string) string {
	c.t.Helper()
	text := fmt.Sprintf(`name: web
size: %d
provider: lxd
template:
  settings:
    cpu: 1
    network: {managed: %s}
    config: {user.generation: "%d"}
workload: {run: [/bin/wait]}
report: {interval: %s, lease_ttl: %s, on_lease_lost: %s}
stop_timeout: 5s
budget: {max_expansion: 3}
storm: {min: 20}
`, size, containersBridge, generation, interval, lease, onLeaseLost)
	file := filepath.Join(c.dir, "web.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// machine is LXD's description of a machine.
type machine struct {
	Name, Status string
	Config       map[string]string
	State        struct {
		Network map[string]struct {
			HostName string `json:"host_name"`
		}
	}
}

func (c *containers) listed() []machine {
	c.t.Helper()
	var all []machine
	if err := c.lxd.Do(http.MethodGet, "/1.0/instances?recursion=2", nil, &all); err != nil {
		c.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(m machine) bool { return m.Config["user.leasehold.instance"] == "" })
}

func (c *containers) machine(id string) machine {
	c.t.Helper()
	for _, m := range c.listed() {
		if m.Config["user.leasehold.instance"] == id {
			return m
		}
	}
	c.t.Fatalf("LXD has no machine of %s", id)
	return machine{}
}

// exact waits until LXD has a running machine for each wanted instance, and nothing else.
func (c *containers) exact(what string, size int) {
	c.t.Helper()
	c.await(what+": exactly the machines that are recorded", func() bool {
		wanted := c.h.wanted("web")
		var have []string
		for _, m := range c.listed() {
			have = append(have, m.Config["user.leasehold.instance"])
			if m.Status != "Running" {
				return false
			}
		}
		slices.Sort(have)
		return c.h.complete("web", size) && slices.Equal(have, slices.Sorted(slices.Values(wanted)))
	})
}

func (c *containers) setState(id, action string) {
	c.t.Helper()
	if err := c.lxd.Do(http.MethodPut, "/1.0/instances/"+c.machine(id).Name+"/state",
		map[string]any{"action": action, "timeout": 20}, nil); err != nil {
		c.t.Fatal(err)
	}
}

// harms are faults of the machines in some slots.
type harms map[int]func(id string)

// replaced causes faults in machines and waits until their instances are replaced, and no others,
// for the expected reason. The coordinator that leads is killed in the middle of it.
func (c *containers) replaced(what, rule string, amid func(noted) bool, harms harms) {
	c.t.Helper()
	was := slices.Clone(c.h.wanted("web"))
	before := c.caughtUp()
	begun := time.Now()
	for slot, harm := range harms {
		harm(was[slot])
	}
	var decided time.Duration
	for slot := range harms {
		entry := c.awaitEntry("the replacement of what was "+what, before,
			func(n noted) bool { return n.Instance == was[slot] && n.To == store.Deleting })
		if entry.Rule != rule {
			c.t.Errorf("%s: replaced by %s, want %s: %s", what, entry.Rule, rule, entry)
		}
		decided = time.Since(begun)
	}
	c.killLeaderAt("what is done for what was "+what, before, amid)
	c.exact(what, 3)
	c.t.Logf("%s: replacement decided after %s, healed after %s (%s)", what, decided.Round(10*time.Millisecond),
		time.Since(begun).Round(10*time.Millisecond), rule)
	for slot, id := range was {
		if harms[slot] == nil && !slices.Contains(c.h.wanted("web"), id) {
			c.t.Errorf("%s: %s was replaced as well", what, id)
		}
	}
}

// cut takes the machine of an instance off the network, and mend puts it back.
func (c *containers) cut(id string)  { c.setLink(id, "down") }
func (c *containers) mend(id string) { c.setLink(id, "up") }

func (c *containers) setLink(id, state string) {
	c.t.Helper()
	link := c.machine(id).State.Network["eth0"].HostName
	if out, err := exec.Command("ip", "link", "set", link, state).CombinedOutput(); err != nil {
		c.t.Fatalf("set %s %s: %v: %s", link, state, err, out)
	}
}

// bootsAgree fails unless the provider and the agents name the machines' boots alike.
func (c *containers) bootsAgree() {
	c.t.Helper()
	for _, m := range c.listed() {
		of, boot, _ := strings.Cut(m.Config["user.leasehold.boot"], " ")
		if told := c.h.alive(m.Config["user.leasehold.instance"]).Record.BootID; of == "" || boot != told {
			c.t.Errorf("%s: the provider names its boot %q, and its agent %q", m.Name, boot, told)
		}
	}
}

// removes, asks and creates are moments of a replacement: it is decided, the creation is recorded
// and under way, and the machine is there.
func removes(n noted) bool { return n.To == store.Deleting }
func asks(n noted) bool    { return n.To == store.Creating }
func creates(n noted) bool { return n.To == store.Booting }

// A group of containers on a real LXD, with nothing in them but the agent as their first process,
// and a program that waits: it comes up, is hurt in five ways and heals, is restarted, rolls,
// shrinks and goes, and LXD has exactly the machines that are recorded, each time, though the
// coordinator that leads is killed in the middle of all that.
//
// proves PROV-8, SAFE-8, ELECT-1
func TestAGroupOfContainers(t *testing.T) {
	t.Parallel()
	c := newContainers(t)
	took := func(what string, begun time.Time) {
		t.Logf("%s after %s", what, time.Since(begun).Round(10*time.Millisecond))
	}
	const lease = 20 * time.Second // LXD takes seconds to freeze and thaw a container on a busy machine
	begun := time.Now()
	c.must("group", "apply", "-f", c.groupOf(3, 1, lease, "none"), "--wait")
	c.exact("the group", 3)
	took("three machines healthy", begun)
	c.bootsAgree()

	ids := slices.Clone(c.h.wanted("web"))
	c.setState(ids[0], "freeze")
	c.awaitEntry("that it is overdue", 0, func(n noted) bool { return n.Instance == ids[0] && n.Rule == "DET-6" })
	c.setState(ids[0], "unfreeze")
	c.exact("the thaw", 3)
	c.unreplaced("web", ids)

	boot := c.h.alive(ids[1]).Record.BootID
	begun = time.Now()
	c.must("instance", "restart", ids[1])
	c.await("another boot", func() bool {
		now := c.h.alive(ids[1]).Record
		return now.BootID != "" && now.BootID != boot
	})
	c.exact("the restart", 3)
	took("restarted in place", begun)
	c.unreplaced("web", ids)
	c.bootsAgree()

	c.replaced("killed hard", "DET-4", asks, harms{0: func(id string) {
		pid, err := c.lxd.InitPID(c.machine(id).Name)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
	}})
	c.replaced("stopped at the provider", "DET-4", removes, harms{1: func(id string) { c.setState(id, "stop") }})
	c.replaced("frozen, and another cut off", "HEAL-2", creates, harms{
		2: func(id string) { c.setState(id, "freeze") }, 0: c.cut,
	})

	ids = slices.Clone(c.h.wanted("web"))
	begun = time.Now()
	before := c.caughtUp()
	c.must("group", "apply", "-f", c.groupOf(3, 2, lease, "poweroff"), "--confirm", "web")
	c.killLeaderAt("the roll", before, asks)
	c.await("the roll", func() bool {
		now := c.h.wanted("web")
		return !slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(now, id) })
	})
	c.exact("the roll", 3)
	took("rolled", begun)
	for _, m := range c.listed() {
		if slices.Contains(ids, m.Config["user.leasehold.instance"]) || m.Config["user.generation"] != "2" {
			t.Errorf("after the roll there is %+v", m)
		}
	}
	// It powers itself off before its lease can have ended, and the provider says so.
	c.replaced("cut off, to power itself off", "DET-4", creates, harms{1: c.cut})
	before = c.caughtUp()
	c.must("group", "apply", "-f", c.groupOf(1, 2, lease, "poweroff"), "--confirm", "web")
	c.killLeaderAt("shrinking", before, removes)
	c.exact("shrinking", 1)

	c.must("group", "delete", "web", "--confirm", "web", "--wait")
	c.await("nothing being left", func() bool { return len(c.listed()) == 0 })
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if master, err := os.Readlink("/sys/class/net/" + link.Name + "/master"); err == nil &&
			filepath.Base(master) == containersBridge {
			t.Errorf("link %s is left on the bridge", link.Name)
		}
	}
}
