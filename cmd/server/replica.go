package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// runReplica runs the part that is a replica of the coordinator.
func (c *Command) runReplica(ctx context.Context, h *services.Host, place Place, r Record, ready func(string)) error {
	host := *h
	host.Shard, host.Ready, host.OwnEtcd, host.AwaitsBackup = r.Shard, ready, true, r.Restore
	host.Allowed = func(context.Context, store.Role) error { return nil } // we gave the rights ourselves
	var opened store.Store                                                // registered before the agents' port opens
	host.Register = func(to grpc.ServiceRegistrar) {
		(&admission{place: place, store: opened, log: h.Logger(c.LogLevel), limit: make(chan struct{}, 1)}).register(to)
	}
	host.Ended = place.ended
	host.Open = func(ctx context.Context, log *slog.Logger) (store.Store, func() error, error) {
		st, err := place.store(ctx, r.endpoints(), log)
		if err != nil {
			return nil, nil, err
		}
		following, end := context.WithCancel(ctx)
		var follower sync.WaitGroup
		follower.Go(func() { followMembers(following, place, r, st, log) })
		opened = st
		if h.Around != nil {
			opened = h.Around(st)
		}
		return opened, func() error {
			end()
			follower.Wait()
			return st.Close()
		}, nil
	}
	machines := c.Machines
	if machines == "" {
		machines = place.file("machines")
	}
	command := services.Coordinator{
		Listen: r.listen(r.Port), Advertise: r.at(r.Port), ID: r.Name, PKI: place.credentials().Dir,
		Machines: machines, StateDir: place.replica(), Replica: c.Replica,
		KeyFile: services.KeyFile{SecretsKey: place.secrets()},
	}
	return command.Run(ctx, &host)
}

// followMembers gives the replica the members that the supervisor has found, until ctx ends.
func followMembers(ctx context.Context, place Place, r Record, st *etcdstore.Store, log *slog.Logger) {
	used := r.endpoints()
	tick := time.NewTicker(followEvery / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := place.load()
		if err != nil || slices.Equal(now.endpoints(), used) {
			continue // the supervisor reports a record that cannot be read
		}
		if err := st.Use(now.endpoints()); err != nil {
			log.Warn("the replica keeps using the members of etcd that it knew", "error", err)
			continue
		}
		used = now.endpoints()
		log.Info("the replica follows etcd's members", "endpoints", used)
	}
}
