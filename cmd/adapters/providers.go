package adapters

import (
	"context"
	"log/slog"

	"github.com/leasehold/leasehold/cmd/providerfile"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/ec2"
	"github.com/leasehold/leasehold/provider/exec"
	"github.com/leasehold/leasehold/provider/libvirt"
	"github.com/leasehold/leasehold/provider/lxd"
	"github.com/leasehold/leasehold/provider/openstack"
	"github.com/leasehold/leasehold/provider/process"
)

var providers = map[string]providerfile.OpenProvider{
	"ec2": func(ctx context.Context, settings []byte, log *slog.Logger) (provider.Provider, error) {
		c := ec2.Config{Logger: log}
		if err := providerfile.Decode(settings, &c); err != nil {
			return nil, err
		}
		return opened(ec2.New(ctx, c))
	},
	"exec": func(ctx context.Context, settings []byte, log *slog.Logger) (provider.Provider, error) {
		c := exec.Config{Logger: log}
		if err := providerfile.Decode(settings, &c); err != nil {
			return nil, err
		}
		return exec.New(ctx, c)
	},
	"libvirt": func(_ context.Context, settings []byte, log *slog.Logger) (provider.Provider, error) {
		c := libvirt.Config{Logger: log}
		if err := providerfile.Decode(settings, &c); err != nil {
			return nil, err
		}
		return opened(libvirt.New(c))
	},
	"lxd": func(_ context.Context, settings []byte, log *slog.Logger) (provider.Provider, error) {
		c := lxd.Config{Logger: log}
		if err := providerfile.Decode(settings, &c); err != nil {
			return nil, err
		}
		return opened(lxd.New(c))
	},
	"openstack": func(_ context.Context, settings []byte, log *slog.Logger) (provider.Provider, error) {
		c := openstack.Config{Logger: log}
		if err := providerfile.Decode(settings, &c); err != nil {
			return nil, err
		}
		return opened(openstack.New(c))
	},
	"process": func(_ context.Context, settings []byte, log *slog.Logger) (provider.Provider, error) {
		var c struct {
			Dir      string   `json:"dir"`
			Agent    []string `json:"agent"` // the program and its arguments
			Zones    []string `json:"zones"`
			PortFrom int      `json:"port_from"`
			PortTo   int      `json:"port_to"`
		}
		if err := providerfile.Decode(settings, &c); err != nil {
			return nil, err
		}
		return opened(process.New(process.Config{
			Dir: c.Dir, AgentCommand: c.Agent, Zones: c.Zones, PortFrom: c.PortFrom, PortTo: c.PortTo, Logger: log,
		}))
	},
}

// opened returns a provider, or the error of opening it: never a nil provider.
func opened[P provider.Provider](p P, err error) (provider.Provider, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}
