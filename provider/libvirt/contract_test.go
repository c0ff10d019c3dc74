package libvirt

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/libvirt/libvirttest"
	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/provider/suite"
)

// atOnce is how many tests run at the same time: much of their time they wait for libvirt.
const atOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", atOnce); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// startReal starts a libvirtd with an image that has nothing on it.
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
	return l
}

// onReal is a provider with the zone a, of machines that are small and have no network.
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

var tiny = provider.Template{Settings: map[string]any{"memory": "32MiB", "machine": "pc"}}

func harnessOf(l *libvirttest.Libvirt, p provider.Provider) providertest.Harness {
	return providertest.Harness{
		Open: func() (provider.Provider, error) { return p, nil },
		Poll: 100 * time.Millisecond, Template: tiny,
		Kill: func(m provider.Machine) error { return l.Kill(m.Ref) },
		Remains: func(m provider.Machine) string {
			names, err := l.Names()
			if err != nil {
				return err.Error()
			}
			for _, name := range names {
				if name == m.Ref {
					return "domain " + name
				}
			}
			files, err := l.Files(m.Ref)
			switch {
			case err != nil:
				return err.Error()
			case len(files) > 0:
				return "file " + files[0]
			}
			return ""
		},
	}
}

// proves PROV-1
func TestOnARealLibvirt(t *testing.T) {
	l := startReal(t)
	t.Run("contract", func(t *testing.T) {
		t.Parallel()
		h := harnessOf(l, onReal(t, l, nil))
		for _, promise := range suite.Promises() {
			t.Run(promise, func(t *testing.T) {
				t.Parallel()
				providertest.Play(t, "libvirt", h, promise, "RestartBootsAnew", "RestartOfOneBoot", "ConsoleIsKept")
			})
		}
	})
}
