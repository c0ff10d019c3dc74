package openstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/leasehold/leasehold/provider"
)

// Create makes the server of an instance, with the first type and network that there is room for.
// It returns once Nova has found a host.
//
// Nova knows neither unique names nor tokens. A call that overlaps with one of another coordinator,
// or comes after one whose answer was lost and whose server does not show yet, makes a second
// server: both have their call in the metadata.
func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (m provider.Machine, err error) {
	if err := p.Validate(req.Template); err != nil {
		return m, err
	}
	if _, is := p.config.Zones[req.Zone]; !is {
		return m, invalid("zone %q: this OpenStack has %s", req.Zone, strings.Join(p.zoneNames(), ", "))
	}
	err = p.locks.With(ctx, req.Bootstrap.Instance, func() error {
		m, err = p.create(ctx, req)
		return err
	})
	if err != nil {
		return provider.Machine{}, fmt.Errorf("create machine %s: %w", req.Bootstrap.Instance, p.meaning(ctx, err))
	}
	return m, nil
}

func (p *Provider) create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	there, err := p.named(ctx, req.Bootstrap.Shard, req.Bootstrap.Instance)
	if err != nil {
		return provider.Machine{}, err
	}
	// A server that never ran comes last.
	slices.SortStableFunc(there, func(a, b *server) int { return compareBools(a.neverRan(), b.neverRan()) })
	for _, s := range there {
		s, err := p.scheduled(ctx, s.ID)
		if err != nil {
			return provider.Machine{}, err
		}
		if s == nil {
			continue // deleted meanwhile
		}
		if !s.inVain() {
			return s.machine(), nil
		}
		// It is a failed try of an earlier call. Nothing of it has run.
		if err := p.remove(ctx, s); err != nil {
			return provider.Machine{}, err
		}
	}
	plan, err := p.planOf(ctx, req)
	if err != nil {
		return provider.Machine{}, err
	}
	return p.try(ctx, req, plan)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// scheduled waits until Nova has found a host for a server, or has given up.
func (p *Provider) scheduled(ctx context.Context, id string) (*server, error) {
	return p.await(ctx, id, func(s *server) (bool, error) {
		if s != nil {
			p.learn(s)
		}
		return s == nil || !s.scheduling(), nil
	})
}

// plan is what to try, in order: each flavor on each network.
type plan struct {
	options  servers.CreateOpts
	key      string
	flavors  []flavor
	networks []any // alternatives for the field networks of a request
}

// try makes a server, with the next flavor if no host has room for one, and on the next network if
// one has no free address.
func (p *Provider) try(ctx context.Context, req provider.CreateRequest, pl plan) (provider.Machine, error) {
	var last error
	flavors, networks := pl.flavors, pl.networks
	for len(flavors) > 0 && len(networks) > 0 {
		options := pl.options
		options.FlavorRef, options.Networks = flavors[0].ID, networks[0]
		s, err := p.post(ctx, options, pl.key)
		if err != nil {
			text := ""
			if e, is := refused(err); is {
				text = textOf(e)
			}
			if text == "" || !noAddress(text) {
				return provider.Machine{}, err
			}
			networks, last = networks[1:], p.noRoom(req.Zone, flavors[0], text)
			continue
		}
		if s == nil {
			return provider.Machine{}, &provider.Error{
				Kind:    provider.Deleted,
				Message: "its server was deleted while it was made",
			}
		}
		fault := s.Fault.Message
		switch {
		case !s.neverRan():
			return s.machine(), nil
		case isQuota(fault):
			last = &provider.Error{Kind: provider.Quota, Scope: p.quotaScope(), Message: fault}
			flavors = nil
		case noAddress(fault):
			networks, last = networks[1:], p.noRoom(req.Zone, flavors[0], fault)
		case full(fault):
			flavors, last = flavors[1:], p.noRoom(req.Zone, flavors[0], fault)
		default:
			return s.machine(), nil // failed; List says why
		}
		p.log.Info("a server came to nothing", "instance", req.Bootstrap.Instance, "flavor", options.FlavorRef, "fault",
			fault)
		if err := p.remove(ctx, s); err != nil {
			return provider.Machine{}, err
		}
	}
	return provider.Machine{}, last
}

func (p *Provider) noRoom(zone string, f flavor, text string) error {
	return &provider.Error{Kind: provider.Capacity, Scope: fmt.Sprintf("zone %s, type %s", zone, f.Name), Message: text}
}

// post makes a server and waits until it has a host. It is not repeated when OpenStack throttles:
// the next Create is.
func (p *Provider) post(ctx context.Context, options servers.CreateOpts, key string) (*server, error) {
	var id string
	err := p.with(ctx, func(s *session) error {
		var b servers.CreateOptsBuilder = options
		if key != "" {
			b = keypairs.CreateOptsExt{CreateOptsBuilder: options, KeyName: key}
		}
		made, err := servers.Create(ctx, s.compute, b, nil).Extract()
		if err == nil && made.ID == "" {
			err = errors.New("the answer to the create has no server: one may have been made")
		}
		if err == nil {
			id = made.ID
		}
		return err
	})
	if e, is := refused(err); is && ofTheTemplate(e.Actual, textOf(e)) {
		text := textOf(e)
		if says(text, "availability zone") {
			text += ": " + options.AvailabilityZone + ", from availability_zone of the provider's zone"
		}
		return nil, &provider.Error{Kind: provider.Invalid, Scope: fieldOf(text), Message: text}
	}
	if err != nil {
		return nil, err
	}
	made, err := p.scheduled(ctx, id)
	if err != nil && ctx.Err() == nil {
		// Whatever kind of error this is, it is not of the request that made the server.
		//nolint:errorlint // see above
		err = fmt.Errorf("server %s was made, and Nova does not report its state: %v", id, err)
	}
	return made, err
}

// planOf resolves names, so that a template which is wrong makes nothing.
func (p *Provider) planOf(ctx context.Context, req provider.CreateRequest) (plan, error) {
	var pl plan
	s, err := p.readSettings(req.Template.Settings)
	if err != nil {
		return pl, err
	}
	image, err := p.imageID(ctx, s.Image)
	if err != nil {
		return pl, err
	}
	types := req.Template.InstanceTypes
	if len(types) == 0 {
		types = p.config.Flavors
	}
	if pl.flavors, err = p.flavorsOf(ctx, types); err != nil {
		return pl, err
	}
	zone := p.config.Zones[req.Zone]
	if pl.networks, err = p.networksOf(ctx, s.Networks, req.Zone, zone.Networks); err != nil {
		return pl, err
	}
	data, err := userData(req)
	if err != nil {
		return pl, err
	}
	b := req.Bootstrap
	metadata := map[string]string{}
	for key, value := range req.Template.Tags {
		metadata[key] = value
	}
	for key, value := range map[string]string{
		tagShard: b.Shard, tagInstance: b.Instance, tagGroup: b.Group, tagZone: req.Zone, tagCall: req.Call,
	} {
		metadata[key] = value
	}
	pl.key = s.KeyName
	pl.options = servers.CreateOpts{
		Name: nameOf(b.Instance), ImageRef: image, AvailabilityZone: zone.AvailabilityZone, UserData: data,
		Metadata: metadata, SecurityGroups: s.SecurityGroups,
	}
	if s.ConfigDrive {
		pl.options.ConfigDrive = &s.ConfigDrive
	}
	return pl, nil
}

// remove deletes a server that was read as ours, and returns when Nova says that it is gone.
func (p *Provider) remove(ctx context.Context, s *server) error {
	deleted, forced := false, false
	_, err := p.await(ctx, s.ID, func(now *server) (done bool, err error) {
		switch {
		case now == nil:
			return true, nil
		case !now.hidden() && !now.isOf(s.Metadata[tagShard], s.Metadata[tagInstance]):
			return false, fmt.Errorf("server %s has lost the metadata that make it Leasehold's: it is left alone", s.ID)
		case now.Status == statusSoftDeleted:
			if !forced {
				forced, err = p.act(ctx, func(c *session) error { return servers.ForceDelete(ctx, c.compute, s.ID).ExtractErr() })
			}
		case !deleted:
			deleted, err = p.act(ctx, func(c *session) error { return servers.Delete(ctx, c.compute, s.ID).ExtractErr() })
		case now.Status == statusError && now.Task == "":
			return false, fmt.Errorf("server %s could not be deleted: %s", s.ID, cmp.Or(now.Fault.Message, "it gives no reason"))
		}
		return false, err
	})
	return err
}

// act asks Nova to do something to a server. That it is gone, or that Nova is busy with it, is no
// error: the caller looks again.
func (p *Provider) act(ctx context.Context, f func(s *session) error) (begun bool, err error) {
	err = p.patient(ctx, f)
	if isStatus(err, http.StatusNotFound) || isStatus(err, http.StatusConflict) {
		return false, nil
	}
	return err == nil, err
}
