package libvirt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/libvirt/libvirttest"
)

// withPoolOf starts a libvirtd whose pool is the same directory as another one's.
func withPoolOf(t *testing.T, l *libvirttest.Libvirt) *libvirttest.Libvirt {
	t.Helper()
	other, err := libvirttest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	virsh(t, other, "pool-destroy", libvirttest.Pool)
	virsh(t, other, "pool-undefine", libvirttest.Pool)
	virsh(t, other, "pool-define-as", libvirttest.Pool, "dir", "--target", l.Dir+"/pool")
	virsh(t, other, "pool-start", libvirttest.Pool)
	return other
}

// Two hypervisors may have one directory as their pool. A volume without a domain on one of them
// may be the disk of a machine on the other: the removal of a machine leaves it alone, also while
// the other one does not answer, or is no zone of this provider.
//
// proves SAFE-8, PROV-8
func sharedPool(t *testing.T, l *libvirttest.Libvirt) {
	const shard = "sh-shared"
	other := withPoolOf(t, l)
	p := onReal(t, l, func(c *Config) { c.Zones["b"] = Zone{URI: other.URI()} })
	far := mustCreate(t, p, request(shard, "far", "b", small()))
	stays := func(when string) {
		t.Helper()
		if files, err := l.Files(far.Ref); err != nil || len(files) != 3 {
			t.Errorf("%s: of %s there are %q, %v; want 3 files", when, far.Ref, files, err)
		}
	}
	for _, instance := range []string{"first", "second", "third"} {
		mustCreate(t, p, request(shard, instance, "a", small()))
	}
	if err := other.Down(); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), shard, "first"); err == nil {
		t.Error("a machine is known to be gone from a hypervisor that does not answer")
	}
	stays("while a hypervisor is away")
	without := onReal(t, l, nil) // as an operator has it who gave the hypervisor up
	if err := without.Delete(t.Context(), shard, "second"); err != nil {
		t.Fatal(err)
	}
	stays("without its zone")
	if err := other.Up(); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), shard, "third"); err != nil {
		t.Fatal(err)
	}
	stays("once it is back")
	if m := listed(t, p, shard, "far"); m.State != provider.StateRunning {
		t.Errorf("the machine elsewhere is %+v", m)
	}
}

// A migration may leave a domain where it was. The machine is where it runs: it is listed there,
// and restarted, stopped and removed there. The domain that was left is never started, also while
// the hypervisor that runs the machine does not answer, or has it under another name; it goes with
// the machine.
//
// proves SAFE-8, PROV-8
func movedDomain(t *testing.T, l *libvirttest.Libvirt) {
	const shard, instance = "sh-moved", "web-0-a"
	other := withPoolOf(t, l)
	p := onReal(t, l, func(c *Config) { c.Zones["b"] = Zone{URI: other.URI()} })
	m := mustCreate(t, p, request(shard, instance, "a", small()))
	virsh(t, l, "destroy", m.Ref)
	definition := virsh(t, l, "dumpxml", m.Ref)
	define := func(definition string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "domain.xml")
		if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
			t.Fatal(err)
		}
		virsh(t, other, "define", file)
	}
	run := func(name string) string {
		t.Helper()
		virsh(t, other, "start", name)
		return virsh(t, other, "domid", name)
	}
	stays := func(when string) {
		t.Helper()
		if state := virsh(t, l, "domstate", m.Ref); state != "shut off" {
			t.Errorf("%s the domain that was left is %s", when, state)
		}
	}
	refused := func(when, why string) {
		t.Helper()
		if err := p.Restart(t.Context(), shard, instance, ""); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: Restart says %v, want %q", when, err, why)
		}
		stays(when)
	}

	renamed := "moved-" + m.Ref
	define(strings.Replace(definition, "<name>"+m.Ref, "<name>"+renamed, 1))
	run(renamed)
	refused("with another name", "it is not started twice")
	virsh(t, other, "destroy", renamed)
	virsh(t, other, "undefine", renamed)

	define(definition)
	refused("with two domains that are down", "undefine it where its disks are out of date")
	boot := run(m.Ref)
	all, err := p.List(t.Context(), shard)
	if err != nil || len(all) != 1 || all[0].Zone != "b" || all[0].State != provider.StateRunning {
		t.Errorf("listed as %+v, %v", all, err)
	}
	if err := other.Down(); err != nil {
		t.Fatal(err)
	}
	refused("while its hypervisor is away", "zone b")
	if err := other.Up(); err != nil {
		t.Fatal(err)
	}
	fresh := onReal(t, l, func(c *Config) { c.Zones["b"] = Zone{URI: other.URI()} }) // it has seen no list
	if err := fresh.Restart(t.Context(), shard, instance, ""); err != nil {
		t.Error(err)
	}
	stays("after a Restart")
	if now := virsh(t, other, "domid", m.Ref); now == boot || now == "-" {
		t.Errorf("its domain has the number %s, and had %s before the Restart", now, boot)
	}
	if err := fresh.Stop(t.Context(), shard, instance, 0); err != nil {
		t.Error(err)
	}
	if state := virsh(t, other, "domstate", m.Ref); state != "shut off" {
		t.Errorf("after a Stop it is %s", state)
	}
	if err := p.Delete(t.Context(), shard, instance); err != nil {
		t.Error(err)
	}
	for zone, on := range map[string]*libvirttest.Libvirt{"a": l, "b": other} {
		if left, err := remains(on, m.Ref); err != nil || left != "" {
			t.Errorf("zone %s: %s is left; %v", zone, left, err)
		}
	}
}
