package libvirt

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/libvirt/libvirttest"
	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/provider/suite"
	"github.com/leasehold/leasehold/tests/tier"
)

// atOnce is how many tests run at the same time: much of their time they wait for libvirt.
const atOnce = "6"

func TestMain(m *testing.M) {
	tier.AtOnce(atOnce)
	goleak.VerifyTestMain(m)
}

// startReal starts a libvirtd with an image that has nothing on it, and a kernel.
func startReal(t *testing.T) *libvirttest.Libvirt {
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
	if err := l.Blank("blank"); err != nil {
		t.Fatal(err)
	}
	if err := l.Boot(nil); err != nil {
		t.Fatal(err)
	}
	return l
}

// onReal is a provider with the zone a. Machines are small and have no network unless a test says
// so.
func onReal(t *testing.T, l *libvirttest.Libvirt, change func(*Config)) *Provider {
	t.Helper()
	c := Config{
		Zones: map[string]Zone{"a": {URI: l.URI()}}, Emulate: true, Image: "blank", Networks: []string{}, CallTimeout: "1m",
	}
	if change != nil {
		change(&c)
	}
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, h := range p.hypervisors {
			h.closeIdle()
		}
	})
	return p
}

// small are the settings of a machine whose firmware finds nothing to boot, and waits. It does not
// hear its power button.
func small() map[string]any { return map[string]any{"memory": "32MiB", "machine": "pc"} }

// booting are the settings of a machine with a guest in it.
func booting() map[string]any {
	return map[string]any{"kernel": "kernel", "initrd": "initrd", "cmdline": libvirttest.Cmdline, "memory": "256MiB"}
}

// unnamed are the promises that a provider that cannot name boots does not keep.
var unnamed = []string{"RestartBootsAnew", "RestartOfOneBoot"}

func harnessOf(p provider.Provider, settings map[string]any, all ...*libvirttest.Libvirt) providertest.Harness {
	// of runs f on the libvirt that has a machine.
	of := func(m provider.Machine, f func(l *libvirttest.Libvirt) error) error {
		if m.Zone == "b" {
			return f(all[1])
		}
		return f(all[0])
	}
	return providertest.Harness{
		Open: func() (provider.Provider, error) { return p, nil },
		Poll: 100 * time.Millisecond, Patience: time.Minute, Template: provider.Template{Settings: settings},
		Kill: func(m provider.Machine) error {
			return of(m, func(l *libvirttest.Libvirt) error { return l.Kill(m.Ref) })
		},
		Print: func(m provider.Machine, text string) error {
			return of(m, func(l *libvirttest.Libvirt) error { return l.Print(m.Ref, text) })
		},
		Remains: func(m provider.Machine) (left string) {
			err := of(m, func(l *libvirttest.Libvirt) error {
				var err error
				left, err = remains(l, m.Ref)
				return err
			})
			if err != nil {
				return err.Error()
			}
			return left
		},
	}
}

// remains is what is there of a domain.
func remains(l *libvirttest.Libvirt, domain string) (string, error) {
	names, err := l.Names()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if name == domain {
			return "domain " + name, nil
		}
	}
	files, err := l.Files(domain + ".")
	if err != nil || len(files) == 0 {
		return "", err
	}
	return "file " + files[0], nil
}

// proves PROV-1
func TestOnARealLibvirt(t *testing.T) {
	l := startReal(t)
	t.Run("contract", func(t *testing.T) {
		t.Parallel()
		h := harnessOf(onReal(t, l, nil), small(), l)
		guests := harnessOf(onReal(t, l, func(c *Config) { c.Image, c.Networks, c.UserNetwork = "", nil, true }), booting(),
			l)
		for _, promise := range suite.Promises() {
			t.Run(promise, func(t *testing.T) {
				t.Parallel()
				of := h
				if promise == "ConsoleIsKept" {
					of = guests // only a guest writes to its console
				}
				providertest.Play(t, "libvirt", of, promise, unnamed...)
			})
		}
	})
	t.Run("apart", func(t *testing.T) {
		t.Parallel()
		for name, test := range map[string]func(*testing.T, *libvirttest.Libvirt){
			"crashes": crashes, "strangers": strangers, "room": room, "wrong templates": wrongTemplates,
			"ends in order": endsInOrder, "delete cuts short": deleteCutsShort, "left volumes": leftVolumes,
			"foreign starts": foreignStarts, "two zones": twoZones, "shared pool": sharedPool,
			"over TLS": overTLS, "moved domain": movedDomain, "changed meanwhile": changedMeanwhile,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, l)
			})
		}
	})
}
