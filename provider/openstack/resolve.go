package openstack

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
)

var idForm = regexp.MustCompile(`^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$`)

// imageID is the ID of an image. A name is looked up each time: it may mean another image by now.
func (p *Provider) imageID(ctx context.Context, image string) (string, error) {
	if idForm.MatchString(image) {
		return image, nil
	}
	var ids []string
	err := p.patient(ctx, func(s *session) error {
		pages, err := images.List(s.image, images.ListOpts{Name: image}).AllPages(ctx)
		if err != nil {
			return err
		}
		found, err := images.ExtractImages(pages)
		ids = nil
		for _, i := range found {
			if i.Name == image && i.Status == images.ImageStatusActive {
				ids = append(ids, i.ID)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", invalid("settings.image: Glance has no active image named %q that this project may use", image)
	case len(ids) > 1:
		return "", invalid("settings.image: Glance has %d images named %q: name one by its ID: %s", len(ids), image,
			strings.Join(ids, ", "))
	}
	return ids[0], nil
}

type flavor struct{ ID, Name string }

// flavorsOf resolves types in the order in which they are to be tried.
func (p *Provider) flavorsOf(ctx context.Context, types []string) ([]flavor, error) {
	var all []flavors.Flavor
	err := p.patient(ctx, func(s *session) error {
		pages, err := flavors.ListDetail(s.compute, flavors.ListOpts{AccessType: flavors.AllAccess}).AllPages(ctx)
		if err == nil {
			all, err = flavors.ExtractFlavors(pages)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []flavor
	for _, t := range types {
		i := slices.IndexFunc(all, func(f flavors.Flavor) bool { return f.ID == t })
		if i < 0 {
			i = slices.IndexFunc(all, func(f flavors.Flavor) bool { return f.Name == t })
		}
		if i < 0 {
			return nil, invalid("instance_type: Nova has no flavor %q that this project may use", t)
		}
		out = append(out, flavor{all[i].ID, all[i].Name})
	}
	return out, nil
}

// networksOf returns the values of networks for Nova, in the order in which to try them: the
// networks of the template, all at once; or else one of the zone's.
func (p *Provider) networksOf(ctx context.Context, told *[]string, zoneName string, zone []string,
) ([]any, error) {
	switch {
	case told != nil && len(*told) == 0:
		return []any{"none"}, nil
	case told == nil && len(zone) == 0:
		return []any{"auto"}, nil
	case told != nil:
		ids, err := p.networkIDs(ctx, "settings.networks", *told)
		var all []servers.Network
		for _, id := range ids {
			all = append(all, servers.Network{UUID: id})
		}
		return []any{all}, err
	}
	ids, err := p.networkIDs(ctx, "networks of zone "+zoneName+" in the provider's configuration", zone)
	if err != nil {
		return nil, err
	}
	var each []any
	for _, id := range p.roomiest(ctx, ids) {
		each = append(each, []servers.Network{{UUID: id}})
	}
	return each, nil
}

// networkIDs are the IDs of networks that a field names.
func (p *Provider) networkIDs(ctx context.Context, field string, names []string) ([]string, error) {
	if !slices.ContainsFunc(names, func(n string) bool { return !idForm.MatchString(n) }) {
		return names, nil
	}
	var all []networks.Network
	err := p.patient(ctx, func(s *session) error {
		if s.network == nil {
			return invalid("%s: the service catalog has no Neutron: set endpoints.network, or name networks by their IDs",
				field)
		}
		pages, err := networks.List(s.network, networks.ListOpts{}).AllPages(ctx)
		if err == nil {
			all, err = networks.ExtractNetworks(pages)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		var ids []string
		for _, n := range all {
			if n.Name == name || n.ID == name {
				ids = append(ids, n.ID)
			}
		}
		switch {
		case len(ids) == 0:
			return nil, invalid("%s: Neutron has no network %q that this project may use", field, name)
		case len(ids) > 1:
			return nil, invalid("%s: Neutron has %d networks named %q: name one by its ID: %s", field, len(ids), name,
				strings.Join(ids, ", "))
		}
		out = append(out, ids[0])
	}
	return out, nil
}

// roomiest puts the network with the most free addresses first. Most clouds let only their
// administrators read that; then the order stays as it was told.
func (p *Provider) roomiest(ctx context.Context, ids []string) []string {
	if len(ids) < 2 {
		return ids
	}
	free := map[string]float64{}
	for _, id := range ids {
		var answer struct {
			Availability struct {
				Total float64 `json:"total_ips"`
				Used  float64 `json:"used_ips"`
			} `json:"network_ip_availability"`
		}
		err := p.with(ctx, func(s *session) error {
			if s.network == nil {
				return http.ErrNotSupported
			}
			return fetch(ctx, s.network, s.network.ServiceURL("network-ip-availabilities", url.PathEscape(id)), &answer)
		})
		if err != nil {
			p.log.Debug("the free addresses of a network are unknown", "network", id, "error", err)
			return ids
		}
		free[id] = answer.Availability.Total - answer.Availability.Used
	}
	out := slices.Clone(ids)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(free[b], free[a]) })
	return out
}
