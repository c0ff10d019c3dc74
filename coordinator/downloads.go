package coordinator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/download"
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
	server := download.New(r.deps.Agents, func() (*tls.Certificate, error) { return r.deps.Authority.Certificate(own) },
		r.log)
	r.log.Info("serving agent programs", "address", r.cfg.AdvertiseDownloads)
	return server.Run(ctx, listener)
}
