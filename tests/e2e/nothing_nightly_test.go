//go:build nightly

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
	"github.com/leasehold/leasehold/provider/userdata"
	"github.com/leasehold/leasehold/store"
)

// A plain Debian becomes a machine of ours by what its own cloud-init and systemd do at boot: it
// gets the agent from a coordinator and runs it as a unit. A machine that is killed is replaced by
// another one, and one that is restarted comes up again without fetching anything. Only root can
// read the token there, and it lets no second machine in.
//
// proves PROV-7
func TestAPlainDistributionFromNothing(t *testing.T) {
	c := newContainers(t)
	importDebian(t, c.lxd)
	file := c.file("plain.yaml", fmt.Sprintf(`name: web
size: 2
provider: lxd
template:
  settings:
    image: debian
    network: {managed: %s}
    config:
      cloud-init.user-data: |
        #cloud-config
        runcmd: [[touch, /etc/theirs]]
workload: {run: [sleep, infinity]}
report: {interval: %s, lease_ttl: %s}
stop_timeout: 5s
`, containersBridge, interval, leaseTTL))
	begun := time.Now()
	c.must("group", "apply", "-f", file, "--wait")
	c.exact("the group", 2)
	t.Logf("two plain machines healthy after %s", time.Since(begun).Round(10*time.Millisecond))
	for _, id := range c.h.wanted("web") {
		c.fromNothing(id)
	}

	victim, kept := c.h.wanted("web")[0], c.h.wanted("web")[1]
	begun = time.Now()
	before := c.caughtUp()
	pid, err := c.lxd.InitPID(c.machine(victim).Name)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	dead := c.awaitEntry("the replacement being asked for", before,
		func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
	if dead.Rule != "DET-4" {
		t.Errorf("not replaced because it was dead: %s", dead)
	}
	c.await("another machine", func() bool { return !slices.Contains(c.h.wanted("web"), victim) })
	c.exact("the replacement", 2)
	t.Logf("replaced after %s", time.Since(begun).Round(10*time.Millisecond))
	if now := c.h.wanted("web"); !slices.Contains(now, kept) {
		t.Errorf("%s was replaced as well: there are %v", kept, now)
	}

	boot := c.h.alive(kept).Record.BootID
	c.must("instance", "restart", kept)
	c.await("another boot", func() bool {
		now := c.h.alive(kept).Record.BootID
		return now != "" && now != boot
	})
	c.exact("the restart", 2)
	c.bootsAgree()
	c.tokenIsWorthNothing(kept)
	c.must("group", "delete", "web", "--confirm", "web", "--wait")
	c.await("nothing being left", func() bool { return len(c.listed()) == 0 })
}

// root is a container's file system, as this host has it.
func (c *containers) root(id string) string {
	return filepath.Join(c.lxd.Dir, "storage-pools", lxdtest.Pool, "containers", c.machine(id).Name, "rootfs")
}

// document is the bootstrap document that a machine has.
func (c *containers) document(id string) provider.Bootstrap {
	c.t.Helper()
	var b provider.Bootstrap
	text, err := os.ReadFile(c.root(id) + userdata.DocumentPath)
	if err == nil {
		b, err = provider.ReadBootstrap(text)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// fromNothing fails unless a machine runs the agent that coordinators serve, and hides its token.
func (c *containers) fromNothing(id string) {
	c.t.Helper()
	root := c.root(id)
	owner := func(path string) (fs.FileMode, uint32) {
		info, err := os.Lstat(root + path)
		if err != nil {
			c.t.Fatal(err)
		}
		return info.Mode().Perm(), info.Sys().(*syscall.Stat_t).Uid
	}
	_, itsRoot := owner("/")
	for path, want := range map[string]fs.FileMode{
		userdata.DocumentPath:               0o600,
		filepath.Dir(userdata.DocumentPath): 0o700,
	} {
		if mode, uid := owner(path); mode != want || uid != itsRoot {
			c.t.Errorf("%s: %s is of user %d and has mode %o", id, path, uid, mode)
		}
	}
	b := c.document(id)
	for key, value := range c.machine(id).Config {
		if strings.Contains(value, b.JoinToken) {
			c.t.Errorf("%s: LXD's configuration has the token, in %s", id, key)
		}
	}
	served, err := os.ReadFile(bin("leasehold-agent"))
	if err != nil {
		c.t.Fatal(err)
	}
	if fetched, err := os.ReadFile(root + "/usr/local/bin/leasehold-agent"); err != nil ||
		string(fetched) != string(served) {
		c.t.Errorf("%s: the agent is not the one that is served: %v", id, err)
	}
	if _, err := os.Lstat(root + "/etc/systemd/system/multi-user.target.wants/leasehold-agent.service"); err != nil {
		c.t.Errorf("%s: the unit is not enabled: %v", id, err)
	}
	if _, err := os.Lstat(root + "/etc/theirs"); err != nil {
		c.t.Errorf("%s: the template's own user data were not carried out: %v", id, err)
	}
}

// tokenIsWorthNothing has a thief try to join with the document of a machine that has joined.
func (c *containers) tokenIsWorthNothing(id string) {
	c.t.Helper()
	b := c.document(id)
	b.Run = nil // an agent starts its workload before it has joined, and that outlives it
	text, err := b.Encode()
	if err != nil {
		c.t.Fatal(err)
	}
	epoch := c.h.alive(id).Record.Epoch
	stolen := c.file("stolen.json", string(text))
	thief := c.start("thief", c.command(bin("leasehold-agent"), "--bootstrap", stolen, "--state-dir",
		filepath.Join(c.dir, "thief")))
	c.await("the refusal of a token that was used", func() bool {
		for _, p := range c.replicas {
			if strings.Contains(p.stderr.String(), "token unknown or expired") ||
				strings.Contains(p.stderr.String(), "used with another key") {
				return true
			}
		}
		return false
	})
	thief.KillGroup()
	if now := c.h.alive(id).Record.Epoch; now != epoch {
		c.t.Errorf("%s has epoch %d, and had %d before a thief came", id, now, epoch)
	}
}
