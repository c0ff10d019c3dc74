//go:build nightly

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/libvirt/libvirttest"
	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
)

// A newcomer has a hypervisor with a real libvirt, and the page alone: they start a coordinator,
// try one machine and apply a group. A domain is destroyed, one is suspended, and one is removed
// behind Leasehold's back. By emulation a distribution's own image would take five minutes for each
// boot: here the guests are a kernel, the agent and a program that waits.
//
// proves PROV-5, PROV-7, PROV-8
func TestFromLibvirtsPageToAHealingGroup(t *testing.T) {
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
	p := newCloudPage(t, "libvirt")
	// QEMU's own network reaches what this host reaches.
	script := `set -e
ip link add "$1up" type veth peer name ground netns "$1net"
ip -n "$1net" link set ground master switch up
ip link set "$1up" up
ip address replace ` + cloudAddress + `/24 dev "$1up"`
	if out, err := exec.Command("sh", "-c", script, "sh", p.prefix).CombinedOutput(); err != nil {
		t.Fatalf("join the networks: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "link", "delete", p.prefix+"up").Run() }) // gone with its peer

	providers, group := filepath.Join(p.dir, "providers.yaml"), filepath.Join(p.dir, "web.yaml")
	p.adapt(map[string]string{
		"/etc/leasehold/providers.yaml":                providers,
		"-f web.yaml":                                  "-f " + group,
		"192.168.122.1":                                "198.51.100.1",
		"--agents bin":                                 "--agents " + p.agentsToServe(),
		`"qemu:///system", memory: 48GiB`:              `"` + l.URI() + `", memory: 2GiB`,
		"      networks: [default]\n":                  "      user_network: true\n      emulate: true\n",
		"      image: debian-12.qcow2\n      instance": "      instance",
		"small: {vcpus: 2, memory: 2GiB}":              "small: {vcpus: 1, memory: 256MiB}",
		"settings: {image: debian-12.qcow2}": fmt.Sprintf("settings: {kernel: kernel, initrd: initrd, cmdline: %q}",
			libvirttest.Cmdline),
		`workload: {run: [python3, -m, http.server, "8080"]}`: "workload: {run: [/bin/wait]}",
		"checks: [{http: {port: 8080}}]":                      "stop_timeout: 2s",
		"virsh list":                                          "virsh -c '" + l.URI() + "' list",
	})
	p.write(0, providers)
	p.write(1, group)
	p.began = time.Now()
	p.follow(p.upTo("leasehold group apply"))
	p.applied()

	domain := func(command string) func(id string) {
		return func(id string) {
			name, err := l.DomainOf(id)
			if err == nil {
				_, err = l.Virsh(command, name)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	p.heals("destroyed", "DET-4", domain("destroy"))
	p.heals("suspended", "HEAL-2", domain("suspend"))
	p.heals("removed", "DET-4", func(id string) {
		domain("destroy")(id)
		domain("undefine")(id)
	})
	p.ends(func() []string {
		names, err := l.Names()
		if err != nil {
			t.Fatal(err)
		}
		files, err := l.Files("ls-")
		if err != nil {
			t.Fatal(err)
		}
		return append(names, files...)
	})
}
