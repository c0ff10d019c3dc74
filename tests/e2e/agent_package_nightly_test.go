//go:build nightly

package e2e

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The agent of the package upgrades itself under systemd, while its workload runs: the service
// stays active with one main process, and systemd never starts it again. Ended during a trial of a
// version that hangs, it comes back as the version that was installed. An upgrade of the package
// by hand wins over what the agent had come to.
//
// proves PROV-7, DAY-4
func TestAgentsOfPackagesAreUpgraded(t *testing.T) {
	old, now := buildPackages(t, "v0.8.0", runtime.GOARCH), buildPackages(t, "v0.9.0", runtime.GOARCH)
	d := newDebian(t)
	d.client("file", "push", filepath.Join(now, "leasehold_0.9.0_"+runtime.GOARCH+".deb"), "box/root/leasehold.deb")
	d.client("file", "push", filepath.Join(old, "leasehold-agent_0.8.0_"+runtime.GOARCH+".deb"), "box/root/agent.deb")
	d.do("dpkg -i /root/leasehold.deb /root/agent.deb")
	d.do(`mkdir /srv/agents
		echo 'LEASEHOLD_FLAGS=--downloads 127.0.0.1:7430 --agents /srv/agents' >/etc/leasehold/server.env
		leasehold upgrade key /root/release.key
		cp /root/release.key.pub /etc/leasehold-agent/
		echo LEASEHOLD_RELEASE_KEY=/etc/leasehold-agent/release.key.pub >>/etc/leasehold-agent/agent.env`)
	// release has a version be served from now on.
	release := func(pkg, version string) {
		t.Helper()
		name := "leasehold-agent-linux-" + runtime.GOARCH
		program := filepath.Join(t.TempDir(), name)
		d.buildVersion(program, pkg, version)
		d.client("file", "push", program, "box/root/"+name)
		d.do("cd /root && leasehold upgrade sign --release " + version + " --release-key release.key " + name +
			" && chmod 755 " + name + " && mv " + name + " " + name + ".sig /srv/agents/ && chmod 644 /srv/agents/*.sig" +
			" && systemctl try-restart leasehold-server")
	}
	const agent, bad = "github.com/leasehold/leasehold/cmd/leasehold-agent", "./testdata/badagent"
	release(agent, "v0.8.0")
	d.do(`runuser -u leasehold -- leasehold server --name a --init --address 127.0.0.1 --bind 127.0.0.1 >/tmp/init 2>&1 &
		until grep -q ^ready /tmp/init; do kill -0 $! || { cat /tmp/init; exit 1; }; sleep 0.1; done
		pkill -INT -o -x leasehold; wait $!; true`)
	d.do("systemctl enable --now leasehold-server")
	d.do(`cat >/root/rack.yaml <<'END'
name: rack
provider: none
workload: {run: [sleep, "707071"]}
agent: {version: auto, within: 30s}
END
leasehold group apply -f /root/rack.yaml`)
	var machine struct{ Bootstrap json.RawMessage }
	if err := json.Unmarshal([]byte(d.do("leasehold instance bootstrap --new -g rack -o json")), &machine); err != nil {
		t.Fatal(err)
	}
	d.do("umask 077; cat >/etc/leasehold-agent/bootstrap.json <<'END'\n" + string(machine.Bootstrap) + "\nEND\n")
	d.do("systemctl enable --now leasehold-agent")
	work := ""
	d.await("the workload to run", func() bool {
		work, _ = d.try("pgrep -f '^sleep 707071'")
		return work != ""
	})
	main := func() string { t.Helper(); return d.do("systemctl show -P MainPID leasehold-agent") }
	said := func(what string) {
		t.Helper()
		d.await(what, func() bool {
			out, _ := d.try("leasehold events")
			return strings.Contains(out, what)
		})
	}
	// well checks that the workload is the one that it was, and which program the agent runs.
	well := func(after, program string) {
		t.Helper()
		d.await("the agent to run "+program+" "+after, func() bool {
			out, _ := d.try("systemctl is-active leasehold-agent && readlink /proc/" + main() + "/exe")
			return strings.HasPrefix(out, "active\n"+program)
		})
		if got := d.do("pgrep -f '^sleep 707071'"); got != work {
			t.Errorf("%s the workload is %s, and was %s", after, got, work)
		}
	}
	const installed, taken = "/usr/bin/leasehold-agent", "/var/lib/leasehold-agent/program/"
	well("at first", installed)

	release(bad, "v0.8.1-hangs")
	said("agent offered v0.8.1-hangs")
	d.await("the trial", func() bool {
		out, _ := d.try("pgrep -P " + main() + " -f program/")
		return out != ""
	})
	d.do("systemctl stop leasehold-agent && systemctl start leasehold-agent")
	well("after it was ended in a trial", installed)
	said("did not come to v0.8.1-hangs")

	before := main()
	release(agent, "v0.9.0")
	said("agent upgraded to v0.9.0")
	well("after the upgrade", taken)
	if got := main(); got != before {
		t.Errorf("the agent's main process is %s, and was %s", got, before)
	}
	d.do("systemctl restart leasehold-agent")
	well("after a restart", taken)
	if n := d.do("systemctl show -P NRestarts leasehold-agent"); n != "0" {
		t.Errorf("systemd started the agent %s times", n)
	}

	d.client("file", "push", filepath.Join(now, "leasehold-agent_0.9.0_"+runtime.GOARCH+".deb"), "box/root/agent.deb")
	d.do("dpkg -i /root/agent.deb")
	well("after an upgrade of the package", installed)
}
