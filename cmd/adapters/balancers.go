package adapters

import (
	"context"
	"log/slog"

	"github.com/leasehold/leasehold/cmd/providerfile"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/balancer/command"
	"github.com/leasehold/leasehold/provider/balancer/haproxy"
	"github.com/leasehold/leasehold/provider/balancer/targetgroup"
	"github.com/leasehold/leasehold/provider/program"
)

var balancers = map[string]providerfile.OpenBalancer{
	"exec": func(ctx context.Context, name string, settings []byte, log *slog.Logger) (balancer.Balancer, error) {
		c := program.Config{Logger: log}
		if err := providerfile.Decode(settings, &c); err != nil {
			return nil, err
		}
		return openedBalancer(command.New(ctx, name, c))
	},
	"haproxy": func(_ context.Context, name string, settings []byte, _ *slog.Logger) (balancer.Balancer, error) {
		c := haproxy.Config{Name: name}
		if err := providerfile.Decode(settings, &c); err != nil {
			return nil, err
		}
		return openedBalancer(haproxy.New(c))
	},
	"target_groups": func(ctx context.Context, _ string, settings []byte, _ *slog.Logger) (balancer.Balancer, error) {
		var c targetgroup.Config
		if err := providerfile.Decode(settings, &c); err != nil {
			return nil, err
		}
		return openedBalancer(targetgroup.New(ctx, c))
	},
}

// openedBalancer returns a balancer or the error of opening it, and never a non-nil interface with
// a nil balancer.
func openedBalancer[B balancer.Balancer](b B, err error) (balancer.Balancer, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}
