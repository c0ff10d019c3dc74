package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/tests/tier"
)

// joinCommand is the flags with which a host joins, out of the command that was printed for it.
func (c *hosts) joinCommand(printed, name string) []string {
	c.t.Helper()
	for line := range strings.SplitSeq(printed, "\n") {
		words := strings.Fields(line)
		if i := slices.Index(words, "--join"); i > 0 && strings.Contains(line, "leasehold server --name "+name+" ") {
			return words[i:]
		}
	}
	c.t.Fatalf("no command for %s in:\n%s", name, printed)
	return nil
}

// three starts a cluster of three hosts, with the commands that the first one prints.
func (c *hosts) three() (hosts [3]*serverHost) {
	c.t.Helper()
	a := c.host("a")
	c.begin(a, "--init")
	c.commands(a)
	c.must("config", "set", "reconnect_max="+reconnect.String(), "provider_poll=1s")
	printed := a.run.stdout.String()
	hosts[0] = a
	for i, name := range []string{"b", "c"} {
		h := c.host(name)
		flags := c.joinCommand(printed, name)
		flags[1] = hosts[i].agents // any host of the cluster will do
		c.begin(h, flags...)
		hosts[i+1] = h
	}
	c.endpoint = strings.Join([]string{a.etcd, hosts[1].etcd, hosts[2].etcd}, ",")
	c.follow()
	c.await("the first replica to use all members", func() bool {
		for line := range strings.Lines(a.run.stderr.String()) {
			if strings.Contains(line, "the replica follows etcd's members") && strings.Contains(line, hosts[2].etcd) {
				return true
			}
		}
		return false
	})
	return hosts
}

// lose ends a host as a power failure does, and takes its disk.
func (c *hosts) lose(h *serverHost) {
	c.t.Helper()
	parts := []int{c.part(h, "member"), c.part(h, "replica")}
	h.run.Freeze() // so that it starts nothing again
	for _, pid := range parts {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	h.run.KillGroup()
	h.run = nil
	for _, pid := range parts {
		c.await(fmt.Sprintf("the end of process %d of %s", pid, h.name), func() bool { return syscall.Kill(pid, 0) != nil })
	}
	if err := os.RemoveAll(h.dir); err != nil {
		c.t.Fatal(err)
	}
}

// list is what server list says, as HOST STATE lines.
func (c *hosts) list(on *serverHost) string {
	c.t.Helper()
	var lines []string
	for line := range strings.Lines(c.must("server", "list", "--data-dir", on.dir)) {
		if words := strings.Split(line, "\t"); len(words) > 2 && words[0] != "HOST" {
			lines = append(lines, words[0]+" "+strings.Replace(words[1], "leader", "member", 1))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// Three hosts, three commands. A host that is lost with its disk is replaced, by whatever host is
// left, also the first one; then the cluster shrinks to one host. No instance is replaced for it.
//
// proves DAY-1, SAFE-15, ELECT-2
func TestServersAreLostReplacedAndRemoved(t *testing.T) {
	t.Parallel()
	c := newHosts(t)
	hosts := c.three()
	a := hosts[0]
	c.must("group", "apply", "-f", c.groupFile("web", 2))
	c.await("the group", func() bool { return c.h.complete("web", 2) })
	ids := c.h.wanted("web")

	t.Run("a token is for one host", func(t *testing.T) {
		printed := a.run.stdout.String()
		d := c.host("d")
		defer delete(c.all, "d")
		complains(t, c.cli(append(d.args(c), c.joinCommand(printed, "b")...)...), 1, "token is unknown, used or older")
		foreign := c.joinCommand(printed, "b")
		foreign[3] = foreign[3][:len(foreign[3])-4] + "0000"
		complains(t, c.cli(append(d.args(c), foreign...)...), 1, "does not belong to the cluster that made the token")
		complains(t, c.cli(append(d.args(c), "--join", d.agents, "--token", foreign[3])...), 1, d.agents)
	})

	for _, lost := range hosts[:tier.Pick(1, 3)] {
		i := slices.Index(hosts[:], lost)
		helper, third := hosts[(i+1)%3], hosts[(i+2)%3]
		complains(t, c.cli("server", "replace", lost.name, "--confirm", lost.name, "--data-dir", helper.dir), 1,
			lost.name+": answers")
		c.lose(lost)
		c.settings = "LEASEHOLD_CONFIG=" + filepath.Join(helper.dir, "config.yaml")
		complains(t, c.cli(lost.args(c)...), 1, "holds no server", "replace NAME")
		complains(t, c.cli("server", "remove", third.name, "--confirm", third.name, "--data-dir", helper.dir), 1,
			"without it there would be no quorum", "if it is gone for good: leasehold server replace "+lost.name)
		printed := c.must("server", "replace", lost.name, "--confirm", lost.name, "--data-dir", helper.dir)
		c.begin(lost, c.joinCommand(printed, lost.name)...)
		if got := c.list(helper); got != "a member, b member, c member" {
			t.Errorf("after the replacement of %s: %s", lost.name, got)
		}
		c.same("web", ids)
	}

	for _, h := range hosts { // a follower that is asked for a promotion has the leader log thousands of refusals
		if said := h.run.stderr.String(); strings.Contains(said, "auth: user name is empty") {
			t.Errorf("%s was asked without a name: %s", h.name, said)
		}
	}

	// A majority is lost, and comes back.
	for _, h := range hosts[1:] {
		c.end(h)
	}
	c.settings = "LEASEHOLD_CONFIG=" + filepath.Join(a.dir, "config.yaml")
	complains(t, c.cli("status", "--timeout", "2s"), 5, "no quorum: etcd b and etcd c do not answer: 2 of 3 members must")
	if got := c.list(a); got != "a member, b down, c down" {
		t.Errorf("without a majority: %s", got)
	}
	complains(t, c.cli("server", "add", "d", "--data-dir", a.dir), 1, "no quorum: b and c do not answer")
	for _, h := range hosts[1:] {
		c.begin(h)
	}
	c.same("web", ids)

	for i, gone := range hosts[1:] {
		c.settings = "LEASEHOLD_CONFIG=" + filepath.Join(a.dir, "config.yaml")
		c.must("server", "remove", gone.name, "--confirm", gone.name, "--data-dir", a.dir)
		c.waitEnd(gone.run)
		text := gone.run.stderr.String()
		if gone.run.ExitCode() != 1 || !strings.Contains(text, gone.name+" was removed from the cluster") {
			t.Errorf("%s ended with %d: %s", gone.name, gone.run.ExitCode(), text)
		}
		gone.run = nil
		complains(t, c.cli(gone.args(c)...), 1, gone.name+" was removed from the cluster") // as a service would start it
		if got := c.list(a); got != []string{"a member, c member", "a member"}[i] {
			t.Errorf("without %s: %s", gone.name, got)
		}
	}
	complains(t, c.cli("server", "remove", "a", "--confirm", "a", "--data-dir", a.dir), 1, "last member")
	for _, command := range []string{"remove", "replace"} { // that the host exists is checked before it asks
		complains(t, c.cli("server", command, "zz", "--data-dir", a.dir), 1, "zz: is not in the cluster, which has a")
	}
	c.same("web", ids)
	c.heals(ids)
}

// same fails if a group has other instances than these, once it is whole.
func (c *hosts) same(group string, ids []string) {
	c.t.Helper()
	c.await("the group with the instances that it had",
		func() bool { return c.h.complete(group, len(ids)) && slices.Equal(c.h.wanted(group), ids) })
}
