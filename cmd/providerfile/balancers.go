package providerfile

import (
	"context"
	"log/slog"

	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/balancer/command"
	"github.com/leasehold/leasehold/provider/balancer/haproxy"
	"github.com/leasehold/leasehold/provider/balancer/targetgroup"
	"github.com/leasehold/leasehold/provider/program"
)

// balancerKinds are the kinds of load balancer that the file may name, and how one is opened from
// its settings.
var balancerKinds = map[string]func(ctx context.Context, name string, settings []byte,
	log *slog.Logger) (balancer.Balancer, error){
	"exec": func(ctx context.Context, name string, settings []byte, log *slog.Logger) (balancer.Balancer, error) {
		c := program.Config{Logger: log}
		if err := decode(settings, &c); err != nil {
			return nil, err
		}
		return openedBalancer(command.New(ctx, name, c))
	},
	"haproxy": func(_ context.Context, name string, settings []byte, _ *slog.Logger) (balancer.Balancer, error) {
		c := haproxy.Config{Name: name}
		if err := decode(settings, &c); err != nil {
			return nil, err
		}
		return openedBalancer(haproxy.New(c))
	},
	"target_groups": func(ctx context.Context, _ string, settings []byte, _ *slog.Logger) (balancer.Balancer, error) {
		var c targetgroup.Config
		if err := decode(settings, &c); err != nil {
			return nil, err
		}
		return openedBalancer(targetgroup.New(ctx, c))
	},
}

// openedBalancer is a balancer, or the error of opening it: never a balancer that is nil.
func openedBalancer[B balancer.Balancer](b B, err error) (balancer.Balancer, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

// BalancerEntry is one load balancer of a file that is not open yet.
type BalancerEntry struct{ item }

// ReadBalancers reads which load balancers a file names: none is no error. Nothing is run.
func ReadBalancers(path string) ([]BalancerEntry, error) {
	f, err := readFile(path)
	if err != nil {
		return nil, err
	}
	entries := make([]BalancerEntry, len(f.balancers))
	for i, b := range f.balancers {
		entries[i] = BalancerEntry{b}
	}
	return entries, nil
}

// Open opens the load balancer.
func (e BalancerEntry) Open(ctx context.Context, log *slog.Logger) (balancer.Balancer, error) {
	b, err := balancerKinds[e.Kind](ctx, e.Name, e.settings, log.With("balancer", e.Name))
	if err != nil {
		return nil, e.in("balancers", err)
	}
	return b, nil
}
