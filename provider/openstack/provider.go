package openstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/keylock"
)

// Provider makes machines that are servers of Nova. Several, in this process or in others, may use
// one project at once.
type Provider struct {
	config  Config
	timeout time.Duration
	schema  json.RawMessage
	log     *slog.Logger
	http    *http.Client
	idle    func() // closes connections that nothing uses
	lookup  func(name string) (string, error)
	locks   keylock.Locks[string]

	login chan struct{} // held by the one call that asks Keystone for a token

	mu      sync.Mutex
	session *session        // nil: there is no token that is known to be good
	known   map[string]seen // by server ID: what a part of Nova that is down cannot tell
}

// seen is what is remembered of a server after it was seen once. A server that is not ours has no
// shard.
type seen struct {
	shard, instance, group, zone, call, address string
}

var (
	_ provider.Provider    = (*Provider)(nil)
	_ provider.Console     = (*Provider)(nil)
	_ provider.CopyRemover = (*Provider)(nil)
	_ provider.SecretUser  = (*Provider)(nil)
)

// UseSecrets says where the values of the shard's secrets are. Each new token reads them again, so
// a password may be changed while the coordinator runs.
func (p *Provider) UseSecrets(lookup func(name string) (string, error)) { p.lookup = lookup }

// Capabilities declares no Boots: Nova names none. Consistency is zero, since Create returns when
// Nova has the server in its database, and Delete when Nova answers 404 for it.
func (p *Provider) Capabilities() provider.Capabilities {
	return provider.Capabilities{
		Zones: p.zoneNames(), CallTimeout: p.timeout, Crashes: true, Copies: true, MaxBootstrap: maxBootstrap,
		Settings: p.schema,
	}
}

func (p *Provider) zoneNames() []string { return slices.Sorted(maps.Keys(p.config.Zones)) }

// Validate looks at the form of a template alone: whether OpenStack has its image, flavors and
// networks shows when a server is made.
func (p *Provider) Validate(t provider.Template) error {
	var wrong []error
	if t.Spot {
		wrong = append(wrong, errors.New("spot: OpenStack has no spot machines: remove it"))
	}
	if len(t.InstanceTypes) == 0 && len(p.config.Flavors) == 0 {
		wrong = append(wrong, errors.New("instance_types: are missing, and the provider's configuration has no flavors "+
			"either"))
	}
	for _, z := range t.Zones {
		if _, is := p.config.Zones[z]; !is {
			wrong = append(wrong, fmt.Errorf("zone %q: this OpenStack has %s", z, strings.Join(p.zoneNames(), ", ")))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Tags)) {
		if err := checkTag(key, t.Tags[key]); err != nil {
			wrong = append(wrong, err)
		}
	}
	s, err := p.readSettings(t.Settings)
	switch {
	case err != nil:
		wrong = append(wrong, err)
	case s.Image == "":
		wrong = append(wrong, errors.New("settings.image: is missing, and the provider's configuration has no image either"))
	}
	for i, err := range wrong {
		if !errors.Is(err, provider.ErrInvalid) {
			wrong[i] = fmt.Errorf("%w: %w", provider.ErrInvalid, err)
		}
	}
	return errors.Join(wrong...)
}
