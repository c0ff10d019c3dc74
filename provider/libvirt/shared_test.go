package libvirt

import (
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/libvirt/libvirttest"
)

// Two hypervisors may have one directory as their pool. A volume without a domain on one of them
// may be the disk of a machine on the other: the removal of a machine leaves it alone, also while
// the other one does not answer.
//
// proves SAFE-8, PROV-8
func sharedPool(t *testing.T, l *libvirttest.Libvirt) {
	const shard = "sh-shared"
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
	p := onReal(t, l, func(c *Config) { c.Zones["b"] = Zone{URI: other.URI()} })
	far := mustCreate(t, p, request(shard, "far", "b", small()))
	left := key{shard, "gone"}.nameOf() + rootSuffix
	virsh(t, l, "vol-create-as", libvirttest.Pool, left, "1M", "--format", "qcow2")
	want := func(when string, strays int) {
		t.Helper()
		for name, want := range map[string]int{far.Ref: 3, left: strays} {
			if files, err := l.Files(name); err != nil || len(files) != want {
				t.Errorf("%s: of %s there are %q, %v; want %d files", when, name, files, err, want)
			}
		}
	}

	mustCreate(t, p, request(shard, "first", "a", small()))
	mustCreate(t, p, request(shard, "second", "a", small()))
	if err := other.Down(); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), shard, "first"); err == nil {
		t.Error("a machine is known to be gone from a hypervisor that does not answer")
	}
	want("while a hypervisor is away", 1)
	if err := other.Up(); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), shard, "second"); err != nil {
		t.Fatal(err)
	}
	want("once it is back", 0)
	if m := listed(t, p, shard, "far"); m.State != provider.StateRunning {
		t.Errorf("the machine elsewhere is %+v", m)
	}
}
