package libvirt

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/keylock"
)

// Provider makes machines that are domains of libvirt. Several, in this process or in others, may
// use one hypervisor at once.
type Provider struct {
	config      Config
	hypervisors []*hypervisor // by zone
	types       map[string]size
	timeout     time.Duration
	schema      json.RawMessage
	log         *slog.Logger

	locks keylock.Locks[key] // one call for a machine at a time

	mu        sync.Mutex
	seen      map[key]string // the zone in which a machine was seen last
	addresses map[key]string // its last address
	undefined map[undefined]machineOf
	reported  map[string]bool // volumes without a domain
}

var (
	_ provider.Provider = (*Provider)(nil)
	_ provider.Console  = (*Provider)(nil)
)

// maxBootstrap keeps SMBIOS tables, and the argument of QEMU that has the document, below 64 KiB.
const maxBootstrap = 32 << 10

// Capabilities declares that List is always up to date: libvirtd answers it from memory.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Zones: p.zoneNames(), CallTimeout: p.timeout, Crashes: true, MaxBootstrap: maxBootstrap, Settings: p.schema,
	}
}

func (p *Provider) zoneNames() (names []string) {
	for _, h := range p.hypervisors {
		names = append(names, h.zone)
	}
	return names
}

func (p *Provider) hypervisor(zone string) (*hypervisor, error) {
	for _, h := range p.hypervisors {
		if h.zone == zone {
			return h, nil
		}
	}
	return nil, fmt.Errorf("%w: zone %q: this provider has %s", provider.ErrInvalid, zone,
		strings.Join(p.zoneNames(), ", "))
}

// Validate looks at the form of a template alone: whether a hypervisor has its image and networks
// shows when a machine is made.
func (p *Provider) Validate(t provider.Template) error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %w", provider.ErrInvalid, fmt.Errorf(format, args...)))
	}
	for _, name := range t.InstanceTypes {
		if _, is := p.types[name]; !is {
			refuse("instance_type %q: the provider's instance_types are %s", name,
				cmp.Or(strings.Join(slices.Sorted(maps.Keys(p.types)), ", "), "none"))
		}
	}
	for _, z := range t.Zones {
		if _, err := p.hypervisor(z); err != nil {
			errs = append(errs, err)
		}
	}
	if t.Spot {
		refuse("spot: libvirt has no machines for a lower price")
	}
	for k := range t.Tags {
		if k == "" || len(k) > maxTag || len(t.Tags[k]) > maxTag || !plain(k) || !plain(t.Tags[k]) {
			refuse("tags: %q: names and values have at most %d bytes of printable text", k, maxTag)
		}
	}
	s, err := p.readSettings(t.Settings)
	switch {
	case err != nil:
		errs = append(errs, err)
	case s.Image == "" && s.Kernel == "":
		refuse("settings.image: is missing, and so is a kernel; the provider's configuration has no image either")
	case len(t.InstanceTypes) > 0 && (s.VCPUs != 0 || s.Memory != ""):
		refuse("settings: vcpus and memory are the instance type's: remove them, or instance_types")
	}
	return errors.Join(errs...)
}

const maxTag = 255

func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\uFFFD' ||
			r == '\uFFFE' || r == '\uFFFF'
	})
}
