//go:build nightly

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// rack is a provider whose machines are there: it keeps the bootstrap document of each, and the
// test takes that to a container. Calls run at once, so each writes a file of its own name; a
// machine that is there keeps its document if its creation is repeated.
const rack = `#!/usr/bin/python3
import json, os, sys
home = "/var/lib/leasehold/rack"
os.makedirs(home, exist_ok=True)
call = json.load(sys.stdin)
out = {}
if call["method"] == "describe":
    out = {"api": 1, "name": "rack 1", "zones": ["local"], "consistency": 0, "call_timeout": 60, "capabilities": {},
           "settings": {"type": "object", "additionalProperties": False, "properties": {}}}
elif call["method"] == "create":
    out = {"instance": call["instance"], "shard": call["shard"], "group": call["params"]["group"], "zone": "local",
           "address": "", "ref": call["instance"], "state": "running"}
    text = json.dumps({"machine": out, "bootstrap": call["params"]["bootstrap"]})
    new = "%s/%s.%d" % (home, call["instance"], os.getpid())
    with open(new, "w") as f:
        f.write(text)
    try:
        os.link(new, home + "/" + call["instance"] + ".json")
    except FileExistsError:
        pass
    os.unlink(new)
elif call["method"] == "list":
    all = [json.load(open(home + "/" + name)) for name in sorted(os.listdir(home)) if name.endswith(".json")]
    out = {"machines": [m["machine"] for m in all], "complete": True}
json.dump({"result": out}, sys.stdout)
`

const rackDir = "/var/lib/leasehold/rack"

// Agents of the package, each the service of a machine with systemd, upgrade themselves in waves:
// one first, then the others. The services stay active with the same main processes and workloads,
// and systemd starts none again. A version that hangs goes back by itself and stops the wave, also
// where its machine's service is stopped during the trial. An upgrade of the package by hand wins
// over what the agent had come to.
//
// proves PROV-7, DAY-4
func TestAgentsOfPackagesAreUpgraded(t *testing.T) {
	old, now := buildPackages(t, "v0.8.0", runtime.GOARCH), buildPackages(t, "v0.9.0", runtime.GOARCH)
	l := useLXD(t)
	importDebian(t, l)
	makeBridge(t, l)
	w := newWorld(t, "machines")
	lxc := []string{"LXD_DIR=" + l.Dir, "LXD_CONF=" + t.TempDir()}
	var machines []*packaged
	for i, name := range []string{"box", "second", "third"} {
		d := &debian{world: w, name: name, lxc: lxc}
		d.boot(containersBridge)
		d.do(fmt.Sprintf(`cloud-init status --wait >/dev/null || true # it writes a network of its own
			printf '[Match]\nName=eth0\n[Network]\nAddress=198.51.100.%d/24\n' >/etc/systemd/network/05-eth0.network
			systemctl restart systemd-networkd
			until ip -4 address show eth0 | grep -q 198.51.100; do sleep 0.1; done`, 10+i))
		machines = append(machines, &packaged{debian: d})
	}
	box := machines[0]
	box.push(filepath.Join(now, "leasehold_0.9.0_"+runtime.GOARCH+".deb"), "leasehold.deb")
	box.do("dpkg -i /root/leasehold.deb")
	box.do(`mkdir /srv/agents
		printf 'LEASEHOLD_PROVIDERS=/etc/leasehold/providers.yaml\nLEASEHOLD_FLAGS=%s\n' \
			'--downloads 198.51.100.10:7430 --agents /srv/agents' >/etc/leasehold/server.env
		echo 'providers: {rack: {exec: {command: [/usr/local/bin/rack]}}}' >/etc/leasehold/providers.yaml
		chmod 644 /etc/leasehold/providers.yaml
		cat >/usr/local/bin/rack <<'END'
` + rack + `END
		chmod 755 /usr/local/bin/rack
		leasehold upgrade key /root/release.key`)
	key := box.do("cat /root/release.key.pub")
	// release has a version be served from now on.
	release := func(pkg, version string) {
		t.Helper()
		name := "leasehold-agent-linux-" + runtime.GOARCH
		program := filepath.Join(t.TempDir(), name)
		w.buildVersion(program, pkg, version)
		box.push(program, name)
		box.do("cd /root && leasehold upgrade sign --release " + version + " --release-key release.key " + name +
			" && chmod 755 " + name + " && mv " + name + " " + name + ".sig /srv/agents/ && chmod 644 /srv/agents/*.sig" +
			" && systemctl try-restart leasehold-server")
	}
	const agent, bad = "github.com/leasehold/leasehold/cmd/leasehold-agent", "./testdata/badagent"
	release(agent, "v0.8.0") // it refuses to serve nothing
	box.do(`runuser -u leasehold -- leasehold server --name a --init --address 198.51.100.10 --bind 198.51.100.10 \
			>/tmp/init 2>&1 &
		until grep -q ^ready /tmp/init; do kill -0 $! || { cat /tmp/init; exit 1; }; sleep 0.1; done
		pkill -INT -o -x leasehold; wait $!; true`)
	box.do("systemctl enable --now leasehold-server")
	for _, m := range machines { // before the group is there: from then on agents have to register in time
		m.push(filepath.Join(old, "leasehold-agent_0.8.0_"+runtime.GOARCH+".deb"), "agent.deb")
		m.do("dpkg -i /root/agent.deb && echo '" + key + "' >/etc/leasehold-agent/release.key.pub && " +
			"echo LEASEHOLD_RELEASE_KEY=/etc/leasehold-agent/release.key.pub >>/etc/leasehold-agent/agent.env")
	}
	box.do(`cat >/root/rack.yaml <<'END'
name: rack
size: 3
provider: rack
workload: {run: [sleep, "707071"]}
agent: {version: auto, at_once: 100%, within: 20s}
END
leasehold group apply -f /root/rack.yaml`)
	for i, m := range machines {
		m.join(box.debian, i)
	}
	entries := func(what string) int { return strings.Count(box.do("leasehold events -g rack"), what) }
	said := func(what string, times int) {
		t.Helper()
		w.await(fmt.Sprintf("%q in the journal, %d times", what, times), func() bool { return entries(what) >= times })
	}
	same := func(after, version, program string) {
		t.Helper()
		for _, m := range machines {
			m.same(after, version, program)
		}
	}
	const installed, taken = "/usr/bin/leasehold-agent", "/var/lib/leasehold-agent/program/"
	w.await("the group to be complete", func() bool {
		out, _ := box.try("leasehold group list")
		return strings.Contains(out, "3/3") || strings.Contains(out, "3 of 3")
	})
	same("at first", "0.8.0", installed)

	release(agent, "v0.8.1")
	said("upgrade of agents complete", 1)
	same("after the upgrade", "0.8.1", taken)
	story := box.do("leasehold events -g rack")
	first := strings.Index(story, "agent upgraded to v0.8.1")
	const offered = "agent offered v0.8.1"
	if before := strings.Count(story[:first], offered); before != 1 || strings.Count(story, offered) != 3 {
		t.Errorf("%d agents were offered the version before the first had proved it:\n%s", before, story)
	}

	release(bad, "v0.8.2-hangs")
	said("upgrade of agents stopped", 1)
	same("after a version that hangs", "0.8.1", taken)
	if n := entries("agent offered v0.8.2-hangs"); n != 1 {
		t.Errorf("the version that hangs was offered %d times", n)
	}
	if out, _ := box.try("leasehold status"); !strings.Contains(out, "did not come to v0.8.2-hangs: it went back") {
		t.Errorf("status does not say what is wrong:\n%s", out)
	}

	// The trial lasts until it is found and ended, however slow that is.
	box.do("sed -i 's/within: 20s/within: 10m/' /root/rack.yaml && leasehold group apply -f /root/rack.yaml && " +
		"leasehold group retry rack")
	on := -1
	w.await("another trial", func() bool {
		on = slices.IndexFunc(machines, (*packaged).tries)
		return on >= 0
	})
	machines[on].do("systemctl stop leasehold-agent && systemctl start leasehold-agent")
	machines[on].main = machines[on].mainPID()
	said("upgrade of agents stopped", 2)
	same("after a stop during a trial", "0.8.1", taken)

	third := machines[2]
	third.push(filepath.Join(now, "leasehold-agent_0.9.0_"+runtime.GOARCH+".deb"), "agent.deb")
	third.do("dpkg -i /root/agent.deb")
	third.main = third.mainPID()
	third.same("after an upgrade of the package", "0.9.0", installed)
	if n := entries("replace"); n > 0 {
		t.Errorf("instances were replaced:\n%s", box.do("leasehold events -g rack"))
	}
}

// packaged is a machine whose agent is the service of the package.
type packaged struct {
	*debian
	main, work string // process IDs of the service and the workload
}

// join gives the agent the document of one of the machines of the provider, in order of their
// names, and waits for its workload.
func (m *packaged) join(from *debian, number int) {
	m.t.Helper()
	var text string
	from.await("three machines to be made", func() bool {
		names, err := from.try("ls " + rackDir + "/*.json")
		all := strings.Fields(names)
		if err != nil || len(all) != 3 {
			return false
		}
		text, err = from.try("cat " + all[number])
		return err == nil
	})
	var made struct{ Bootstrap string }
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		m.t.Fatal(err)
	}
	file := filepath.Join(m.t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(file, []byte(made.Bootstrap), 0o600); err != nil {
		m.t.Fatal(err)
	}
	m.push(file, "/etc/leasehold-agent/bootstrap.json")
	m.do("systemctl enable --now leasehold-agent")
	m.await("the workload to run", func() bool {
		m.work, _ = m.try("pgrep -f '^sleep 707071'")
		return m.work != ""
	})
	m.main = m.mainPID()
}

func (m *packaged) mainPID() string {
	m.t.Helper()
	return m.do("systemctl show -P MainPID leasehold-agent")
}

// tries reports whether a version is on trial here.
func (m *packaged) tries() bool {
	out, _ := m.try("pgrep -P $(systemctl show -P MainPID leasehold-agent) -f program/")
	return out != ""
}

// same checks that the service is active with the same main process, never started again by
// systemd, that the workload is the one that it was, and which version and program the agent is.
func (m *packaged) same(after, version, program string) {
	m.t.Helper()
	m.await(m.name+" to run "+version+" of "+program+" "+after, func() bool {
		out, _ := m.try("systemctl is-active leasehold-agent && readlink /proc/" + m.mainPID() + "/exe && /proc/" +
			m.mainPID() + "/exe --version")
		return strings.HasPrefix(out, "active\n"+program) && strings.Contains(out, version)
	})
	if got := m.mainPID(); got != m.main {
		m.t.Errorf("%s: the main process of %s is %s, and was %s", after, m.name, got, m.main)
	}
	if got, _ := m.try("pgrep -f '^sleep 707071'"); got != m.work {
		m.t.Errorf("%s: the workload of %s is %s, and was %s", after, m.name, got, m.work)
	}
	if n := m.do("systemctl show -P NRestarts leasehold-agent"); n != "0" {
		m.t.Errorf("%s: systemd started the agent of %s %s times", after, m.name, n)
	}
}
