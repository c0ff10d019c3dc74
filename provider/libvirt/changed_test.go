package libvirt

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/provider/libvirt/libvirttest"
)

// What another call has noted of a domain meanwhile stays, and a domain that is another machine's,
// or none of ours, by now is left as it is.
//
// proves PROV-8
func changedMeanwhile(t *testing.T, l *libvirttest.Libvirt) {
	p := onReal(t, l, nil)
	const shard, instance = "sh-changed", "web-0-a"
	m := mustCreate(t, p, request(shard, instance, "a", small()))
	h := p.hypervisors[0]
	found := func() *domain {
		t.Helper()
		d, err := h.find(t.Context(), key{shard, instance})
		if err != nil || d == nil {
			t.Fatalf("%v, %v", d, err)
		}
		return d
	}
	note := func(d *domain, to func(*record)) error {
		return h.use(t.Context(), func(l *link) error {
			_, err := change(l, d, to)
			return err
		})
	}
	stop := func(r *record) { r.Stopped = true }
	old := found()
	if err := note(old, stop); err != nil {
		t.Fatal(err)
	}
	if err := note(old, func(r *record) { r.note(stepRestarting) }); err != nil {
		t.Fatal(err)
	}
	if now := found(); !now.Stopped || now.Step != stepRestarting || now.Group != old.Group {
		t.Errorf("two calls have noted %+v", now.record)
	}

	edit := func(how ...string) {
		t.Helper()
		virsh(t, l, append([]string{"metadata", m.Ref, namespace, "--config", "--key", "leasehold"}, how...)...)
	}
	set := func(r record) {
		t.Helper()
		text, err := r.encode("")
		if err != nil {
			t.Fatal(err)
		}
		edit("--set", text)
	}
	own := found().record
	own.Stopped = false
	for name, shape := range map[string]func(*record){
		"another instance's": func(r *record) { r.Instance = "web-9-z" },
		"another shard's":    func(r *record) { r.Shard = "sh-other" },
	} {
		other := own
		shape(&other)
		set(other)
		if err := note(old, stop); !gone(err) {
			t.Errorf("%s: %v", name, err)
		}
		if said := virsh(t, l, "metadata", m.Ref, namespace, "--config"); strings.Contains(said, "stopped") {
			t.Errorf("%s: it was changed: %s", name, said)
		}
	}
	edit("--remove")
	if err := note(old, stop); !gone(err) {
		t.Errorf("none of ours: %v", err)
	}
	if _, err := l.Virsh("metadata", m.Ref, namespace, "--config"); err == nil {
		t.Error("a domain that is none of ours was given metadata")
	}
	set(own) // so that it is removed
}
