package services

import (
	"context"
	"log/slog"
	"maps"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/coordinator/query/source"
	"github.com/leasehold/leasehold/coordinator/webhook"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
)

// openNamed opens what a file names besides providers: load balancers, webhooks, authorities for
// workloads' certificates, and external metrics.
func openNamed(ctx context.Context, h *Host, file, certificates string, deps *coordinator.Deps) (err error) {
	if deps.Balancers, err = openBalancers(ctx, h, file, deps.Logger); err != nil {
		return err
	}
	if deps.Webhooks, err = openWebhooks(h, file, deps.Logger); err != nil {
		return err
	}
	if deps.Authorities, err = openAuthorities(h, file, certificates, deps.Logger); err != nil {
		return err
	}
	deps.Sources, err = openMetrics(h, file, deps.Logger)
	return err
}

// openProviders opens the providers that a file names.
func openProviders(ctx context.Context, h *Host, file string, log *slog.Logger) (map[string]provider.Provider, error) {
	entries, err := h.Adapters.Kinds.Read(file)
	if err != nil {
		return nil, problem("correct the file that --providers names", "%s", err)
	}
	all := map[string]provider.Provider{}
	for _, e := range entries {
		p, err := e.Open(ctx, log)
		if err != nil {
			return nil, problem("correct the file that --providers names; leasehold provider test tries its providers",
				"%s", err)
		}
		all[e.Name] = p
		log.Info("provider opened", "provider", e.Name, "kind", e.Kind, "zones", p.Capabilities().Zones)
	}
	return all, nil
}

// openBalancers returns all load balancers of a coordinator, and opens those that a file names; "":
// none.
func openBalancers(ctx context.Context, h *Host, file string, log *slog.Logger) (map[string]balancer.Balancer, error) {
	all := maps.Clone(h.Balancers)
	if file == "" {
		return all, nil
	}
	entries, err := h.Adapters.Kinds.ReadBalancers(file)
	if err != nil {
		return nil, problem("correct the file that --providers names", "%s", err)
	}
	if all == nil {
		all = map[string]balancer.Balancer{}
	}
	for _, e := range entries {
		b, err := e.Open(ctx, log)
		if err != nil {
			return nil, problem("correct the file that --providers names", "%s", err)
		}
		all[e.Name] = b
		log.Info("load balancer opened", "balancer", e.Name, "kind", e.Kind)
	}
	return all, nil
}

// openAuthorities returns all authorities for workloads' certificates of a coordinator, and opens
// those that a file names.
func openAuthorities(h *Host, file, certificates string, log *slog.Logger) (*authority.Set, error) {
	all := map[string]authority.Authority{}
	if file != "" {
		named, err := h.Adapters.Kinds.OpenAuthorities(file, certificates, log)
		if err != nil {
			return nil, problem("correct the file that --providers names", "%s", err)
		}
		all = named
	}
	maps.Copy(all, h.Authorities)
	return authority.NewSet(all), nil
}

// openMetrics opens the external metrics that a file names.
func openMetrics(h *Host, file string, log *slog.Logger) (*source.Set, error) {
	if file == "" {
		return nil, nil
	}
	all, err := h.Adapters.Kinds.OpenMetrics(file, log)
	if err != nil {
		return nil, problem("correct the file that --providers names", "%s", err)
	}
	return source.NewSet(all), nil
}

// openWebhooks returns the webhooks that a file names.
func openWebhooks(h *Host, file string, log *slog.Logger) ([]*webhook.Hook, error) {
	if file == "" {
		return nil, nil
	}
	hooks, err := h.Adapters.Kinds.Webhooks(file)
	if err != nil {
		return nil, problem("correct the file that --providers names", "%s", err)
	}
	for _, hook := range hooks {
		log.Info("decisions are sent to a webhook while this coordinator leads", "webhook", hook.Name())
	}
	return hooks, nil
}
