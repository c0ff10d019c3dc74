package server

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold/cmd/services"
)

// followEvery is the interval at which a host reads the cluster's members.
const followEvery = 10 * time.Second

// follow keeps the record and the settings for commands up to date with the cluster, and this
// host's certificates valid, until ctx ends or this host has been removed: then it returns why.
func (c *Command) follow(ctx context.Context, h *services.Host, place Place, r Record) error {
	log := h.Logger(c.LogLevel)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		now, gone, err := place.look(ctx, r)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			log.Warn("cannot look who is in the cluster", "error", err)
		case gone:
			return place.removed(r)
		case !slices.Equal(now, r.Members):
			log.Info("the cluster has changed", "members", len(now), "before", len(r.Members))
			r.Members = now
			if err := place.save(r); err != nil {
				log.Error("cannot write what this host knows of the others", "error", err)
			}
		}
		// The certificates are renewed even if the cluster cannot be reached: they may be the
		// reason.
		if err := place.prepare(r); err != nil {
			log.Error("cannot renew certificates", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look lists the voting members that have started, and reports whether this host has been removed.
// It reads from a majority, since a single member may lag behind.
func (p Place) look(ctx context.Context, r Record) (now []Peer, gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	admin, err := p.admin(ctx, r)
	if err != nil {
		return nil, false, err
	}
	defer admin.Close()
	cluster, err := admin.Cluster(ctx)
	if err != nil {
		return nil, false, err
	}
	if _, there := cluster.At(r.self().Peer); there {
		return peersOf(cluster.Voters()), false, nil
	}
	there, err := admin.members.Has(ctx, r.self().Peer)
	return r.Members, err == nil && !there, err
}

// wasRemoved asks the other hosts whether this one was removed while it was down. Without an answer
// it reports false.
func (p Place) wasRemoved(ctx context.Context, r Record) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, gone, err := p.look(ctx, r)
	return err == nil && gone
}
