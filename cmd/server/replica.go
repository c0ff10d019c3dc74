package server

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// runReplica is the part that is a replica of the coordinator.
func (c *Command) runReplica(ctx context.Context, h *services.Host, place Place, r Record, ready func(string)) error {
	host := *h
	host.Shard, host.Ready = r.Shard, ready
	host.Allowed = func(context.Context, store.Role) error { return nil } // we gave the rights ourselves
	host.Register = func(to grpc.ServiceRegistrar) {
		(&admission{place: place, log: h.Logger(c.LogLevel), limit: make(chan struct{}, 1)}).register(to)
	}
	host.Open = func(ctx context.Context, log *slog.Logger) (store.Store, func() error, error) {
		secure, err := place.credentials().Client(string(store.RoleCoordinator))
		if err != nil {
			return nil, nil, err
		}
		st, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: r.endpoints(), TLS: secure, Logger: log})
		if err != nil {
			return nil, nil, err
		}
		return st, st.Close, nil
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
