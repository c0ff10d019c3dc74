package e2e

import (
	"crypto/rand"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/libvirt/libvirttest"
	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
	"github.com/leasehold/leasehold/store"
)

// guestsHost is this host, for a guest on QEMU's own network.
const guestsHost = "10.0.2.2"

// hypervisor is a cluster whose machines are emulated ones of a real libvirt: a kernel, the agent,
// and a program that waits.
type hypervisor struct {
	*cluster
	libvirt   *libvirttest.Libvirt
	providers string
}

func newHypervisor(t *testing.T) *hypervisor {
	t.Helper()
	l, err := libvirttest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	wait, err := lxdtest.BuildInit(t.TempDir())
	if err == nil {
		err = l.Boot(map[string]string{"/bin/leasehold-agent": bin("leasehold-agent"), "/bin/wait": wait})
	}
	if err != nil {
		t.Fatal(err)
	}
	g := &hypervisor{
		cluster: &cluster{world: newWorld(t, "machines"), replicas: map[string]*program{}, listen: map[string]string{}},
		libvirt: l,
	}
	g.startEtcd()
	g.follow()
	settings := store.DefaultShardSettings()
	settings.ReconnectMax, settings.ProviderPoll = store.Duration(reconnect), store.Duration(time.Second)
	g.put(g.h.keys.Shard(), store.Encode(store.Shard{
		Schema: store.Schema, ID: "e2e-" + strings.ToLower(rand.Text()[:10]), Name: "default",
		Created: time.Now().UTC(), Settings: settings,
	}))
	g.providers = g.file("providers.yaml", fmt.Sprintf(`providers:
  host:
    libvirt:
      zones: {here: {uri: "%s", memory: 1GiB}}
      instance_types: {large: {vcpus: 1, memory: 2GiB}, small: {vcpus: 1, memory: 256MiB}}
      user_network: true
      emulate: true
`, l.URI()))
	for _, id := range []string{"a", "b"} {
		g.replica(id)
	}
	g.await("a leader", func() bool {
		return g.h.leader() != "" && len(currentOf[store.Replica](g.h, store.KindReplicas)) == 2
	})
	return g
}

// replica starts a coordinator on this host, and tells agents where guests find it.
func (g *hypervisor) replica(id string) {
	g.t.Helper()
	g.listen[id] = addresses.FreeAddress(g.t)
	_, port, err := net.SplitHostPort(g.listen[id])
	if err != nil {
		g.t.Fatal(err)
	}
	g.replicas[id] = g.start(id, g.command(bin("leasehold"), "coordinator", "--id", id,
		"--listen", g.listen[id], "--advertise", net.JoinHostPort(guestsHost, port), "--providers", g.providers,
		"--state-dir", filepath.Join(g.dir, "known-"+id), "--session-ttl", "2s", "--http", "off", "--log-level", "debug"))
}

// domainOf is the domain of an instance.
func (g *hypervisor) domainOf(instance string) string {
	g.t.Helper()
	name, err := g.libvirt.DomainOf(instance)
	if err != nil {
		g.t.Fatal(err)
	}
	return name
}

// A virtual machine of a real libvirt boots, joins with the document in its SMBIOS tables and is
// healthy; it is destroyed behind the coordinator's back and replaced, is drained, and nothing of
// it stays. The instance type that there is no memory for is not tried for long: the next
// one is taken.
//
// proves PROV-5, PROV-7, PROV-8, SAFE-8
func TestAGroupOfVirtualMachines(t *testing.T) {
	t.Parallel()
	g := newHypervisor(t)
	begun := time.Now()
	g.must("group", "apply", "-f", g.file("web.yaml", fmt.Sprintf(`name: web
size: 1
provider: host
template:
  instance_types: [large, small]
  tags: {team: shop}
  settings: {kernel: kernel, initrd: initrd, cmdline: "%s"}
workload: {run: [/bin/wait]}
stop_timeout: 2s
`, libvirttest.Cmdline)), "--wait")
	t.Logf("healthy after %s", time.Since(begun).Round(10*time.Millisecond))
	first := g.h.wanted("web")[0]
	domain := g.domainOf(first)
	if text, err := g.libvirt.Virsh("metadata", domain, "urn:leasehold:machine:1"); err != nil ||
		!strings.Contains(text, `type="small"`) || !strings.Contains(text, `value="shop"`) {
		t.Errorf("the metadata are %s, %v", text, err)
	}

	before := g.caughtUp()
	begun = time.Now()
	if _, err := g.libvirt.Virsh("destroy", domain); err != nil {
		t.Fatal(err)
	}
	dead := g.awaitEntry("the replacement being asked for", before,
		func(n noted) bool { return n.Instance == first && n.To == store.Deleting })
	if dead.Rule != "DET-4" {
		t.Errorf("not replaced because it was dead: %s", dead)
	}
	t.Logf("replaced after %s", time.Since(begun).Round(10*time.Millisecond))
	g.await("the group being healed", func() bool {
		return g.h.complete("web", 1) && !slices.Contains(g.h.wanted("web"), first)
	})
	t.Logf("healed after %s", time.Since(begun).Round(10*time.Millisecond))

	g.must("group", "delete", "web", "--confirm", "web", "--wait")
	names, err := g.libvirt.Names()
	if err != nil || len(names) > 0 {
		t.Errorf("domains are left: %q, %v", names, err)
	}
	if files, err := g.libvirt.Files("ls-"); err != nil || len(files) > 0 {
		t.Errorf("files are left: %q, %v", files, err)
	}
}
