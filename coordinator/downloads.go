package coordinator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/download"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// listenForDownloads takes the address on which agent programs are served; nil: they are not.
func (r *Replica) listenForDownloads(ctx context.Context) (net.Listener, error) {
	if r.cfg.Downloads == "" {
		return nil, nil //nolint:nilnil // see above
	}
	if r.deps.Authority == nil || len(r.deps.Agents) == 0 {
		return nil, errors.New("agent programs are served only with an authority, and if there are any")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", r.cfg.Downloads)
	if err != nil {
		return nil, fmt.Errorf("listen for downloads on %s: %w", r.cfg.Downloads, err)
	}
	if r.cfg.AdvertiseDownloads == "" {
		r.cfg.AdvertiseDownloads = listener.Addr().String()
	}
	return listener, nil
}

func (r *Replica) serveDownloads(ctx context.Context, listener net.Listener, shard string) error {
	own := identity.Identity{Shard: shard, Role: identity.Coordinator, Name: r.cfg.ID}
	server := download.New(r.deps.Agents, func() (*tls.Certificate, error) { return r.deps.Authority.Certificate(own) }, r.log)
	r.log.Info("serving agent programs", "address", r.cfg.AdvertiseDownloads)
	return server.Run(ctx, listener)
}

// agentSource is where machines fetch the agent: from the replicas that serve the same programs as the
// leader does, or if it serves none, as the first that does. Of two releases side by side one is
// chosen, because a machine takes only the program whose hash it was told.
func agentSource(shard, leader string, replicas map[string]store.Versioned[store.Replica]) provider.AgentSource {
	source := provider.AgentSource{Host: identity.Host(shard, identity.Coordinator)}
	ids := slices.Sorted(maps.Keys(replicas))
	for _, id := range append([]string{leader}, ids...) {
		if r := replicas[id].Record; source.SHA256 == nil && r.Downloads != "" && len(r.Agents) > 0 {
			source.SHA256 = r.Agents
		}
	}
	if source.SHA256 == nil {
		return provider.AgentSource{}
	}
	for _, id := range ids {
		if r := replicas[id].Record; r.Downloads != "" && maps.Equal(r.Agents, source.SHA256) {
			source.Addresses = append(source.Addresses, r.Downloads)
		}
	}
	return source
}
