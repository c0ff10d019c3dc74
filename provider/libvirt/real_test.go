package libvirt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/libvirt/libvirttest"
	"github.com/leasehold/leasehold/provider/providertest"
)

func request(shard, instance, zone string, settings map[string]any) provider.CreateRequest {
	return providertest.Request(shard, instance, zone, provider.Template{Settings: settings})
}

func mustCreate(t *testing.T, p *Provider, req provider.CreateRequest) provider.Machine {
	t.Helper()
	m, err := p.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := p.Delete(ctx, m.Shard, m.Instance); err != nil {
			t.Error(err)
		}
	})
	return m
}

func listed(t *testing.T, p *Provider, shard, instance string) provider.Machine {
	t.Helper()
	all, err := p.List(t.Context(), shard)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Instance == instance {
			return m
		}
	}
	return provider.Machine{}
}

func virsh(t *testing.T, l *libvirttest.Libvirt, args ...string) string {
	t.Helper()
	out, err := l.Virsh(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func await(t *testing.T, what string, is func() bool, saw func() string) {
	t.Helper()
	for over := time.After(2 * time.Minute); !is(); {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-over:
			text := ""
			if saw != nil {
				text = saw()
			}
			t.Fatalf("waited without success for %s: %s", what, text)
		}
	}
}

// awaitConsole waits until a guest has written a text.
func awaitConsole(t *testing.T, p *Provider, m provider.Machine, text string) {
	t.Helper()
	var said []byte
	await(t, text+" on the console", func() (is bool) {
		var err error
		if said, err = p.Console(t.Context(), m.Shard, m.Instance); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(said), text)
	}, func() string { return string(said) })
}

// A domain that is not ours is neither listed, changed nor removed, whatever its name.
//
// proves PROV-8
func strangers(t *testing.T, l *libvirttest.Libvirt) {
	p := onReal(t, l, nil)
	const shard, instance = "sh-strangers", "web-0-a"
	name := key{shard, instance}.nameOf()
	file := filepath.Join(t.TempDir(), "domain.xml")
	domain := "<domain type='qemu'><name>" + name +
		"</name><memory unit='MiB'>32</memory><os><type arch='x86_64' machine='pc'>hvm</type></os></domain>"
	if err := os.WriteFile(file, []byte(domain), 0o600); err != nil {
		t.Fatal(err)
	}
	virsh(t, l, "define", file)
	t.Cleanup(func() { virsh(t, l, "undefine", name) })
	if _, err := p.Create(t.Context(), request(shard, instance, "a", small())); err == nil ||
		!strings.Contains(err.Error(), "not this instance's") {
		t.Errorf("Create beside it: %v", err)
	}
	if m := listed(t, p, shard, instance); m.Ref != "" {
		t.Errorf("it is listed: %+v", m)
	}
	if err := errors.Join(p.Stop(t.Context(), shard, instance, 0), p.Delete(t.Context(), shard, instance)); err != nil {
		t.Error(err)
	}
	if err := p.Restart(t.Context(), shard, instance, ""); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Restart: %v", err)
	}
	virsh(t, l, "dominfo", name)
	// A clone has the metadata of its original, and is no machine of ours.
	own := mustCreate(t, p, request(shard, "web-1-b", "a", small()))
	clone := own.Ref + "-clone"
	virsh(t, l, "destroy", own.Ref)
	virsh(t, l, "domrename", own.Ref, clone)
	virsh(t, l, "start", clone)
	t.Cleanup(func() {
		virsh(t, l, "destroy", clone)
		virsh(t, l, "undefine", clone)
	})
	if m := listed(t, p, shard, "web-1-b"); m.Ref != clone || !m.Foreign {
		t.Errorf("a clone is listed as %+v", m)
	}
	if err := p.Delete(t.Context(), shard, "web-1-b"); err != nil {
		t.Error(err)
	}
	if state := virsh(t, l, "domstate", clone); state != "running" {
		t.Errorf("the clone is %s", state)
	}
	if files, err := l.Files(own.Ref + "."); err != nil || len(files) != 3 {
		t.Errorf("of its disks there are %q, %v", files, err)
	}
	// Unreadable metadata is no proof that a domain is not ours.
	virsh(t, l, "metadata", name, namespace, "--config", "--key", "leasehold", "--set",
		"<machine shard='"+shard+"' memory='many'/>")
	if all, err := p.List(t.Context(), shard); err == nil || !strings.Contains(err.Error(), "so its owner is unknown") {
		t.Errorf("with metadata that cannot be read: %+v, %v", all, err)
	}
}

// What there is no memory for is not made, and the next type is tried; what has ended makes room.
//
// proves PROV-5, HEAL-12
func room(t *testing.T, l *libvirttest.Libvirt) {
	const shard = "sh-room"
	other, err := libvirttest.Start() // other tests' machines take room as well
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := other.Blank("blank"); err != nil {
		t.Fatal(err)
	}
	p := onReal(t, other, func(c *Config) {
		c.Zones = map[string]Zone{"a": {URI: other.URI(), Memory: "100MiB"}}
		c.InstanceTypes = map[string]InstanceType{"huge": {1, "1TiB"}, "fits": {1, "64MiB"}}
	})
	of := func(instance string, types ...string) provider.CreateRequest {
		return providertest.Request(shard, instance, "a", provider.Template{InstanceTypes: types})
	}
	m := mustCreate(t, p, of("first", "huge", "fits"))
	if text := virsh(t, other, "metadata", m.Ref, namespace); !strings.Contains(text, `type="fits"`) {
		t.Errorf("it was made as %s", text)
	}
	_, err = p.Create(t.Context(), of("second", "fits"))
	var full *provider.Error
	if !errors.As(err, &full) || full.Kind != provider.Capacity || full.Scope != "zone a, type fits" {
		t.Errorf("without room: %v", err)
	}
	if left, err := remains(other, key{shard, "second"}.nameOf()); err != nil || left != "" {
		t.Errorf("%s is left of it; %v", left, err)
	}
	if err := other.Kill(m.Ref); err != nil {
		t.Fatal(err)
	}
	await(t, "what was killed being down", func() bool { return listed(t, p, shard, "first").State.Down() }, nil)
	mustCreate(t, p, of("second", "fits"))
	_ = l
}

// A template that names what the hypervisor has not is wrong, and makes nothing.
//
// proves PROV-5
func wrongTemplates(t *testing.T, l *libvirttest.Libvirt) {
	p := onReal(t, l, nil)
	const shard = "sh-wrong"
	for what, settings := range map[string]map[string]any{
		"no volume missing":             {"image": "missing"},
		"no volume none":                {"kernel": "none"},
		"smaller than the image":        {"image": "kernel", "disk": "1MiB"},
		"no network with matching name": {"networks": []string{"nowhere"}},
	} {
		_, err := p.Create(t.Context(), request(shard, "web-0-a", "a", settings))
		if !errors.Is(err, provider.ErrInvalid) || !strings.Contains(err.Error(), what) {
			t.Errorf("%v: %v, want invalid, %s", settings, err, what)
		}
		if left, err := remains(l, key{shard, "web-0-a"}.nameOf()); err != nil || left != "" {
			t.Errorf("%v: %s is left; %v", settings, left, err)
		}
	}
	elsewhere := onReal(t, l, func(c *Config) { c.Pool = "elsewhere" })
	if _, err := elsewhere.Create(t.Context(), request(shard, "web-0-a", "a", small())); err == nil ||
		!strings.Contains(err.Error(), "has no storage pool elsewhere: virsh pool-define-as") {
		t.Errorf("without its pool: %v", err)
	}
}

// A guest finds its document where cloud-init would. It hears its power button and ends in order,
// and its console is kept after that.
//
// proves PROV-7, HEAL-14, DET-19
func endsInOrder(t *testing.T, l *libvirttest.Libvirt) {
	p := onReal(t, l, func(c *Config) { c.Image = "" })
	const shard = "sh-order"
	settings := booting()
	settings["bootstrap"] = byCloudInit
	m := mustCreate(t, p, request(shard, "web-0-a", "a", settings))
	awaitConsole(t, p, m, `guest: the seed has {"schema":1,"instance":"web-0-a"`)
	awaitConsole(t, p, m, "guest: booted")
	if err := p.Stop(t.Context(), shard, m.Instance, time.Minute); err != nil {
		t.Fatal(err)
	}
	awaitConsole(t, p, m, "guest: the power button")
	if m := listed(t, p, shard, m.Instance); m.State != provider.StateStopped {
		t.Errorf("stopped in order, it is %+v", m)
	}
	if state := virsh(t, l, "domstate", "--reason", m.Ref); state != "shut off (shutdown)" {
		t.Errorf("its guest has not shut it down: %s", state)
	}
}

// A Delete does not wait until a Stop is over.
func deleteCutsShort(t *testing.T, l *libvirttest.Libvirt) {
	p := onReal(t, l, nil)
	const shard = "sh-short"
	m := mustCreate(t, p, request(shard, "web-0-a", "a", small()))
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(t.Context(), shard, m.Instance, time.Hour) }()
	await(t, "the Stop being noted", func() bool {
		return listed(t, p, shard, m.Instance).State == provider.StateStopping
	}, nil)
	if err := p.Delete(t.Context(), shard, m.Instance); err != nil {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A Delete removes the machine's own volumes, by their whole names. A volume that a Create which
// was cut off makes after that goes with the next machine that is deleted. All others stay,
// whatever their names: copies that an operator made, and volumes whose domain this provider did
// not undefine.
//
// proves PROV-8
func leftVolumes(t *testing.T, l *libvirttest.Libvirt) {
	p := onReal(t, l, nil)
	const shard = "sh-left"
	first := mustCreate(t, p, request(shard, "first", "a", small()))
	second := mustCreate(t, p, request(shard, "second", "a", small()))
	stays := mustCreate(t, p, request(shard, "stays", "a", small()))
	late := first.Ref + rootSuffix
	others := []string{
		key{"sh-others", "gone"}.nameOf() + rootSuffix, key{shard, "gone"}.nameOf() + rootSuffix,
		first.Ref + ".root-clone.qcow2", first.Ref + ".backup.qcow2", second.Ref + ".root-clone.qcow2", first.Ref + "-clone",
	}
	add := func(name string) { virsh(t, l, "vol-create-as", libvirttest.Pool, name, "1M", "--format", "qcow2") }
	for _, name := range others {
		add(name)
		t.Cleanup(func() { virsh(t, l, "vol-delete", name, "--pool", libvirttest.Pool) })
	}
	if err := p.Delete(t.Context(), shard, first.Instance); err != nil {
		t.Fatal(err)
	}
	add(late)
	if err := p.Delete(t.Context(), shard, second.Instance); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{late: 0, stays.Ref: 3, first.Ref + ".": 2, second.Ref + ".": 1, "blank": 1}
	for _, name := range others {
		want[name] = 1
	}
	for name, want := range want {
		if files, err := l.Files(name); err != nil || len(files) != want {
			t.Errorf("%s: %q, %v, want %d files", name, files, err, want)
		}
	}
}

// What others do to a machine shows: it is stopped only after a Stop of ours.
//
// proves DET-4
func foreignStarts(t *testing.T, l *libvirttest.Libvirt) {
	p := onReal(t, l, nil)
	const shard = "sh-foreign"
	m := mustCreate(t, p, request(shard, "web-0-a", "a", small()))
	want := func(what string, state provider.State, why string) {
		t.Helper()
		if m := listed(t, p, shard, m.Instance); m.State != state || !strings.Contains(m.Why, why) {
			t.Errorf("%s: %+v, want %s, %s", what, m, state, why)
		}
	}
	virsh(t, l, "suspend", m.Ref)
	want("suspended", provider.StateRunning, "paused")
	virsh(t, l, "resume", m.Ref)
	virsh(t, l, "destroy", m.Ref)
	want("destroyed", provider.StateCrashed, "not by a Stop")
	virsh(t, l, "start", m.Ref)
	want("started", provider.StateRunning, "")
	virsh(t, l, "undefine", m.Ref)
	want("undefined while it runs", provider.StateRunning, "")
}

// A hypervisor that is away makes the whole List an error, and no machine of another one out of
// reach; when it is back, all is as it was.
//
// proves DET-4
func twoZones(t *testing.T, l *libvirttest.Libvirt) {
	const shard = "sh-zones"
	other, err := libvirttest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := other.Blank("blank"); err != nil {
		t.Fatal(err)
	}
	p := onReal(t, l, func(c *Config) { c.Zones["b"] = Zone{URI: other.URI()} })
	near := mustCreate(t, p, request(shard, "near", "a", small()))
	far := mustCreate(t, p, request(shard, "far", "b", small()))
	if near.Zone != "a" || far.Zone != "b" || listed(t, p, shard, "far").Zone != "b" {
		t.Errorf("%+v, %+v", near, far)
	}
	if err := other.Down(); err != nil {
		t.Fatal(err)
	}
	var all []provider.Machine
	saw := func() string { return fmt.Sprintf("%+v, %v", all, err) }
	await(t, "a List that fails", func() bool {
		if all, err = p.List(t.Context(), shard); len(all) == 1 {
			t.Fatalf("with a hypervisor that is away the List is %+v, %v", all, err)
		}
		return err != nil && all == nil && strings.Contains(err.Error(), "zone b")
	}, saw)
	if err := p.Delete(t.Context(), shard, "far"); err == nil {
		t.Error("a machine of which nothing is known was deleted")
	}
	if err := p.Stop(t.Context(), shard, "near", 0); err != nil {
		t.Errorf("Stop of a machine elsewhere: %v", err)
	}
	if err := other.Up(); err != nil {
		t.Fatal(err)
	}
	await(t, "a whole List", func() bool {
		all, err = p.List(t.Context(), shard)
		return err == nil && len(all) == 2
	}, saw)
	if m := listed(t, p, shard, "far"); m.State != provider.StateRunning {
		t.Errorf("a machine whose libvirtd was killed is %+v", m)
	}
	if m := listed(t, p, shard, "near"); m.State != provider.StateStopped {
		t.Errorf("%+v", m)
	}
}
