package lxd

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
	"github.com/leasehold/leasehold/provider/providertest"
)

const realShard = "sh-real"

func realRequest(instance string, settings map[string]any) provider.CreateRequest {
	return providertest.Request(realShard, instance, "local", provider.Template{Settings: settings})
}

func mustCreate(t *testing.T, p *Provider, instance string, settings map[string]any) provider.Machine {
	t.Helper()
	m, err := p.Create(t.Context(), realRequest(instance, settings))
	// An LXD under load loses sight of its own operations now and then: a coordinator calls again.
	for again := 0; again < 2 && err != nil && provider.KindOf(err) == provider.Temporary; again++ {
		t.Log(err)
		m, err = p.Create(t.Context(), realRequest(instance, settings))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := p.Delete(ctx, realShard, instance); err != nil {
			t.Error(err)
		}
	})
	return m
}

func find(t *testing.T, p *Provider, instance string) (provider.Machine, bool) {
	t.Helper()
	all, err := p.List(t.Context(), realShard)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(m provider.Machine) bool { return m.Instance == instance })
	if i < 0 {
		return provider.Machine{}, false
	}
	return all[i], true
}

func awaitMachine(t *testing.T, p *Provider, instance string, ok func(provider.Machine) bool) provider.Machine {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(20 * time.Millisecond) {
		m, is := find(t, p, instance)
		if is && ok(m) {
			return m
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is listed: %v, as %+v", instance, is, m)
		}
	}
}

// Replicas that know nothing of each other create one machine, once.
//
// proves SAFE-8
func replicasAtOnce(t *testing.T, l *lxdtest.LXD) {
	const replicas = 4
	all := make([]*Provider, replicas)
	for i := range all {
		all[i] = onReal(t, l, nil)
	}
	boots := map[string]bool{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() {
			m, err := p.Create(t.Context(), realRequest("atonce-1", nil))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			boots[m.BootID] = true
		})
	}
	wg.Wait()
	defer func() {
		if err := all[0].Delete(t.Context(), realShard, "atonce-1"); err != nil {
			t.Error(err)
		}
	}()
	if len(boots) != 1 || boots[""] {
		t.Errorf("boots %v, want one", boots)
	}
}

// A container that is not ours is never touched, whatever its name, and never taken for ours.
//
// proves PROV-8
func strangers(t *testing.T, l *lxdtest.LXD) {
	p := onReal(t, l, nil)
	err := l.Do(http.MethodPost, "/1.0/instances", map[string]any{
		"name": nameOf("stranger-1"), "source": map[string]string{"type": "image", "alias": "tiny"}, "profiles": []string{},
		"devices": map[string]any{"root": map[string]string{"type": "disk", "path": "/", "pool": lxdtest.Pool}},
		"config":  map[string]string{"user.mine": "yes"},
	}, nil)
	if err == nil {
		err = l.Do(http.MethodPut, "/1.0/instances/"+nameOf("stranger-1")+"/state", map[string]any{"action": "start"}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	pid, err := l.InitPID(nameOf("stranger-1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), realRequest("stranger-1", nil)); err == nil {
		t.Error("Create takes a stranger's container")
	}
	if err := errors.Join(p.Stop(t.Context(), realShard, "stranger-1", time.Second),
		p.Delete(t.Context(), realShard, "stranger-1")); err != nil {
		t.Error(err)
	}
	if err := p.Restart(t.Context(), realShard, "stranger-1", ""); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Restart: %v", err)
	}
	if m, is := find(t, p, "stranger-1"); is {
		t.Errorf("it is listed: %+v", m)
	}
	var c container
	if err := l.Do(http.MethodGet, "/1.0/instances/"+nameOf("stranger-1"), nil, &c); err != nil {
		t.Fatal(err)
	}
	if now, err := l.InitPID(c.Name); err != nil || now != pid || c.Config["user.mine"] != "yes" ||
		c.Config[keyStep] != "" {
		t.Errorf("it was touched: init %d, then %d, %v, %v", pid, now, err, c.Config)
	}
}

// Boots that Leasehold did not order have names of their own, and Restart ends none of them.
func foreignBoots(t *testing.T, l *lxdtest.LXD) {
	p := onReal(t, l, nil)
	first := mustCreate(t, p, "foreign-1", nil)
	if err := l.Do(http.MethodPut, "/1.0/instances/"+first.Ref+"/state",
		map[string]any{"action": "restart", "force": true, "timeout": -1}, nil); err != nil {
		t.Fatal(err)
	}
	second := awaitMachine(t, p, "foreign-1", func(m provider.Machine) bool {
		return m.State == provider.StateRunning && m.BootID != "" && m.BootID != first.BootID
	})
	if err := p.Restart(t.Context(), realShard, "foreign-1", first.BootID); err != nil {
		t.Fatal(err)
	}
	if m, _ := find(t, p, "foreign-1"); m.BootID != second.BootID {
		t.Errorf("boot %q was ended by a call for %q: now %q", second.BootID, first.BootID, m.BootID)
	}
	if err := l.Do(http.MethodPut, "/1.0/instances/"+first.Ref+"/state",
		map[string]any{"action": "stop", "force": true, "timeout": -1}, nil); err != nil {
		t.Fatal(err)
	}
	// Another replica, which has never seen it run, knows the boot that ended; and the end was not
	// ordered Leasehold to stop it.
	m := awaitMachine(t, onReal(t, l, nil), "foreign-1", func(m provider.Machine) bool {
		return m.State != provider.StateUnknown
	})
	if m.BootID != second.BootID || m.State != provider.StateCrashed {
		t.Errorf("after its end it is listed as %+v, want crashed, with boot %s", m, second.BootID)
	}
}

// A container that reboots from within is never listed as down between its boots.
//
// proves DET-4, DET-10
func reboots(t *testing.T, l *lxdtest.LXD) {
	p := onReal(t, l, nil)
	first := mustCreate(t, p, "reboots-1", nil)
	pid, err := l.InitPID(first.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	seen := map[provider.State]int{}
	var since time.Time
	awaitMachine(t, p, "reboots-1", func(m provider.Machine) bool {
		seen[m.State]++
		if m.State.Down() {
			t.Fatalf("between its boots it is listed as %+v", m)
		}
		if m.State != provider.StateRunning && since.IsZero() {
			since = time.Now()
		}
		return m.BootID != "" && m.BootID != first.BootID
	})
	t.Logf("listed as %v; %s between its boots", seen, time.Since(since))
}

// A frozen container runs, says why it is silent, and can be stopped and deleted.
func frozen(t *testing.T, l *lxdtest.LXD) {
	p := onReal(t, l, nil)
	m := mustCreate(t, p, "frozen-1", nil)
	if err := l.Do(http.MethodPut, "/1.0/instances/"+m.Ref+"/state", map[string]any{"action": "freeze"}, nil); err != nil {
		t.Fatal(err)
	}
	if now, _ := find(t, p, "frozen-1"); now.State != provider.StateRunning || now.Why != "frozen" ||
		now.BootID != m.BootID {
		t.Errorf("listed as %+v", now)
	}
	if err := p.Stop(t.Context(), realShard, "frozen-1", time.Second); err != nil {
		t.Error(err)
	}
	if now, _ := find(t, p, "frozen-1"); now.State != provider.StateStopped {
		t.Errorf("listed as %+v", now)
	}
}

// List tells the address of a machine on a network, and the same after a restart.
func addresses(t *testing.T, l *lxdtest.LXD) {
	if err := l.Do(http.MethodPost, "/1.0/networks", map[string]any{
		"name": "lhnet0", "type": "bridge", "config": map[string]string{
			"ipv4.address": "none", "ipv6.address": "fd42:1ea5:e402::1/64", "ipv6.nat": "false", "ipv6.dhcp": "false",
			"ipv4.firewall": "false", "ipv6.firewall": "false",
		},
	}, nil); err != nil {
		t.Fatal(err)
	}
	p := onReal(t, l, nil)
	mustCreate(t, p, "managed-1", map[string]any{"network": map[string]any{"managed": "lhnet0"}})
	mustCreate(t, p, "bridged-1", map[string]any{"network": map[string]any{"bridge": "lhnet0"}})
	has := func(m provider.Machine) bool { return strings.HasPrefix(m.Address, "fd42:1ea5:e402:") }
	first := awaitMachine(t, p, "managed-1", has)
	awaitMachine(t, p, "bridged-1", has)
	if err := p.Restart(t.Context(), realShard, "managed-1", ""); err != nil {
		t.Fatal(err)
	}
	if m, _ := find(t, p, "managed-1"); m.Address != first.Address {
		t.Errorf("it had the address %s, and has %q", first.Address, m.Address)
	}
}

// LXD's signal has the machine end in order, long before the timeout.
func endsInOrder(t *testing.T, l *lxdtest.LXD) {
	p := onReal(t, l, nil)
	mustCreate(t, p, "order-1", nil)
	begun := time.Now()
	if err := p.Stop(t.Context(), realShard, "order-1", 30*time.Second); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Delete does not wait until a Stop is done.
func deleteCutsShort(t *testing.T, l *lxdtest.LXD) {
	p := onReal(t, l, nil)
	m := mustCreate(t, p, "short-1", nil)
	pid, err := l.InitPID(m.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // it does not hear of the Stop
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(t.Context(), realShard, "short-1", 40*time.Second) }()
	awaitMachine(t, p, "short-1", func(m provider.Machine) bool { return m.State == provider.StateStopping })
	begun := time.Now()
	if err := p.Delete(t.Context(), realShard, "short-1"); err != nil {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Stop: %v", err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

// What LXD refuses has a meaning.
//
// proves PROV-5
func refusals(t *testing.T, l *lxdtest.LXD) {
	project := func(name string, config map[string]string) {
		config["features.images"], config["features.profiles"] = "false", "false"
		if err := l.Do(http.MethodPost, "/1.0/projects", map[string]any{"name": name, "config": config}, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Do(http.MethodDelete, "/1.0/projects/"+name, nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	project("none", map[string]string{"limits.containers": "0"})
	project("small", map[string]string{"limits.memory": "64MiB"})
	disk := filepath.Join(t.TempDir(), "pool")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	if err := l.Do(http.MethodPost, "/1.0/storage-pools",
		map[string]any{"name": "full", "driver": "dir", "config": map[string]string{"source": disk}}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Do(http.MethodDelete, "/1.0/storage-pools/full", nil, nil); err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct {
		change   func(*Config)
		settings map[string]any
		want     provider.Kind
	}{
		"no container allowed": {func(c *Config) { c.Project = "none" }, nil, provider.Quota},
		"too little memory": {
			func(c *Config) { c.Project = "small" },
			map[string]any{"memory": "128MiB"},
			provider.Quota,
		},
		"no limit where needed": {func(c *Config) { c.Project = "small" }, nil, provider.Invalid},
		"pool is full":          {func(c *Config) { c.Pool = "full" }, nil, provider.Capacity},
		"no such image":         {nil, map[string]any{"image": "nothing"}, provider.Invalid},
		"no image of fingerprint": {
			nil, map[string]any{"image": strings.Repeat("0123456789abcdef", 4)}, provider.Invalid,
		},
		"no such profile": {nil, map[string]any{"profiles": []any{"nothing"}}, provider.Invalid},
		"no such network": {nil, map[string]any{"network": map[string]any{"managed": "nothing"}}, provider.Invalid},
		"no such bridge":  {nil, map[string]any{"network": map[string]any{"bridge": "nothing"}}, provider.Invalid},
		"LXD refuses a value": {
			nil,
			map[string]any{"config": map[string]any{"limits.processes": "many"}},
			provider.Invalid,
		},
		"no root disk":         {func(c *Config) { c.Pool = "" }, nil, provider.Invalid},
		"no such pool":         {func(c *Config) { c.Pool = "nothing" }, nil, provider.Invalid},
		"no such project":      {func(c *Config) { c.Project = "nothing" }, nil, provider.Temporary},
		"member of no cluster": {func(c *Config) { c.Zones = map[string]string{"local": "other"} }, nil, provider.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			p := onReal(t, l, c.change)
			m, err := p.Create(t.Context(), realRequest("refused-1", c.settings))
			if err == nil || provider.KindOf(err) != c.want {
				t.Errorf("%+v, %v (%s), want %s", m, err, provider.KindOf(err), c.want)
			}
			if err := p.Delete(t.Context(), realShard, "refused-1"); err != nil && c.want != provider.Temporary {
				t.Errorf("Delete: %v", err)
			}
		})
	}
	// LXD answers with an empty list.
	missing := onReal(t, l, func(c *Config) { c.Project = "nothing" })
	if all, err := missing.List(t.Context(), realShard); err == nil {
		t.Errorf("List in a project that does not exist: %+v", all)
	}
}
