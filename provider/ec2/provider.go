package ec2

import (
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
	"github.com/leasehold/leasehold/provider/amazon"
	"github.com/leasehold/leasehold/provider/keylock"
)

// Provider makes machines that are instances of EC2.
type Provider struct {
	api         api
	gate        *amazon.Gate
	region      string
	zones       map[string]Zone
	image       string
	groups      []string
	schema      json.RawMessage
	consistency time.Duration
	timeout     time.Duration
	poll        time.Duration
	log         *slog.Logger
	lookup      func(name string) (string, error)

	locks keylock.Locks[key] // one call at a time for a machine

	mu      sync.Mutex
	young   map[key]newborn        // made so lately that EC2 may not show them yet
	spent   map[key]int            // how many client tokens of a machine EC2 has taken and made nothing of
	gone    map[string]time.Time   // EC2's IDs of terminated machines that Delete has seen, and when
	batches map[string]*batch      // by shard: looks that wait for their turn
	roots   map[string]string      // by image: its root device
	free    map[string]freeSubnets // by zone
}

// key names a machine.
type key struct{ shard, instance string }

var (
	_ provider.Provider   = (*Provider)(nil)
	_ provider.Console    = (*Provider)(nil)
	_ provider.SecretUser = (*Provider)(nil)
)

// UseSecrets says where the values of the shard's secrets are.
func (p *Provider) UseSecrets(lookup func(name string) (string, error)) { p.lookup = lookup }

// Capabilities names no boots: EC2 does not, and a machine that reboots itself looks as before. It
// remembers no deleted machines, because EC2 forgets them after about an hour.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Zones: p.zoneNames(), Consistency: p.consistency, CallTimeout: p.timeout, Crashes: true,
		MaxBootstrap: maxBootstrap, Settings: p.schema,
	}
}

func (p *Provider) zoneNames() []string { return slices.Sorted(maps.Keys(p.zones)) }

// EC2's limits of tags, less those that are ours.
const (
	maxTags     = 45
	maxTagKey   = 128
	maxTagValue = 256
)

// Validate looks at the form of a template alone: whether EC2 has its image, groups and types shows
// when a machine is made.
func (p *Provider) Validate(t provider.Template) error {
	var errs []error
	invalid := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %w", provider.ErrInvalid, fmt.Errorf(format, args...)))
	}
	for _, z := range t.Zones {
		if _, is := p.zones[z]; !is {
			invalid("zone %q: the provider has %s", z, strings.Join(p.zoneNames(), ", "))
		}
	}
	if len(t.Tags) > maxTags {
		invalid("tags: %d: EC2 allows %d beside Leasehold's own", len(t.Tags), maxTags)
	}
	for k, v := range t.Tags {
		switch {
		case strings.HasPrefix(k, tagPrefix), strings.HasPrefix(strings.ToLower(k), "aws:"):
			invalid("tags: %q: the prefixes leasehold: and aws: are reserved", k)
		case k == "" || len(k) > maxTagKey || len(v) > maxTagValue:
			invalid("tags: %q: a name has 1 to %d bytes, a value at most %d", k, maxTagKey, maxTagValue)
		}
	}
	s, err := p.readSettings(t.Settings)
	switch {
	case err != nil:
		return errors.Join(append(errs, err)...)
	case s.LaunchTemplate == nil && s.Image == "" && p.image == "":
		invalid("settings.image: is missing, and the provider's configuration has no image either")
	case s.LaunchTemplate == nil && len(t.InstanceTypes) == 0:
		invalid("instance_type: is missing: name one, such as m7g.large, or several as instance_types, " +
			"in order of preference")
	case s.RootDisk != nil && s.Image == "" && (s.LaunchTemplate != nil || p.image == ""):
		invalid("settings.root_disk: needs settings.image, whose root device it describes")
	}
	return errors.Join(errs...)
}
