package lxd

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
	"github.com/leasehold/leasehold/provider/keylock"
)

// Provider makes machines that are containers of LXD. Several, in this process or in others, may
// use one LXD at once.
type Provider struct {
	client   *client
	project  string
	pool     string
	profiles []string
	image    string
	zones    map[string]string
	timeout  time.Duration
	schema   json.RawMessage
	log      *slog.Logger

	locks keylock.Locks[string] // by container: one call at a time

	mu       sync.Mutex
	known    map[string]known        // by container
	consoles map[string]*consoleText // by container
}

// known is what does not change of a container while it exists, its last boot and its address.
type known struct {
	shard, instance, group, zone string
	start                        string // by last_used_at
	boot                         string
	down                         time.Time // since when Lists have shown that this start ended unordered
	address                      string    // kept until the next start has another
	asked                        time.Time // when LXD was asked for the address last
	inVain                       int       // how often since the start
	bootAsked                    time.Time // when the boot was asked for last
	bootInVain                   int       // how often since the start
}

var (
	_ provider.Provider = (*Provider)(nil)
	_ provider.Console  = (*Provider)(nil)
)

// Capabilities declares that List is always up to date, since LXD answers it from its database.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Zones: p.zoneNames(), CallTimeout: p.timeout, Boots: true, Crashes: true, Settings: p.schema,
	}
}

func (p *Provider) zoneNames() []string { return slices.Sorted(maps.Keys(p.zones)) }

// Validate looks at the form of a template alone: whether LXD has its image, profiles and networks
// shows when a container is made.
func (p *Provider) Validate(t provider.Template) error {
	var errs []error
	if len(t.InstanceTypes) > 0 {
		errs = append(errs, fmt.Errorf("%w: instance_type %q: containers of LXD have none: "+
			"use settings.cpu and settings.memory",
			provider.ErrInvalid, t.InstanceTypes[0]))
	}
	for _, z := range t.Zones {
		if _, is := p.zones[z]; !is {
			errs = append(errs, fmt.Errorf("%w: zone %q: this LXD has %s", provider.ErrInvalid, z,
				strings.Join(p.zoneNames(), ", ")))
		}
	}
	_, err := p.readSettings(t.Settings)
	return errors.Join(append(errs, err)...)
}
