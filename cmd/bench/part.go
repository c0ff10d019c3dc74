package bench

import (
	"context"
	"log/slog"

	"github.com/leasehold/leasehold/cmd/bench/parts"
	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/store"
)

// Part holds the hidden commands of the processes that a bench starts: this same program again.
type Part struct {
	Etcd    PartEtcd    `cmd:"" hidden:"" help:"An etcd with one member, for a bench."`
	Replica PartReplica `cmd:"" hidden:"" help:"A replica of the coordinator, for a bench."`
	Rival   PartRival   `cmd:"" hidden:"" help:"What Leasehold is compared with, for a bench."`
	Crowd   PartCrowd   `cmd:"" hidden:"" help:"Many agents, for a bench."`
}

// PartEtcd is an etcd for a bench.
type PartEtcd struct {
	Dir string `required:"" help:"Directory for its data." placeholder:"DIR"`
}

// Run serves until the bench ends it.
func (c *PartEtcd) Run(ctx context.Context, inv *Invocation) error {
	return parts.Serve(ctx, inv.env.Stdin, inv.env.Stdout, func(ctx context.Context, ready func(parts.Ready) error) error {
		return parts.Etcd(ctx, c.Dir, inv.env.Stderr, ready)
	})
}

// PartReplica is a replica for a bench.
type PartReplica struct {
	Shard   string `required:"" help:"Shard to serve."`
	ID      string `name:"id" required:"" help:"Its name."`
	Listen  string `required:"" help:"Address for agents."`
	HTTP    string `name:"http" required:"" help:"Address for metrics."`
	PKI     string `name:"pki" required:"" help:"The shard's authorities."`
	Dir     string `required:"" help:"Directory for its data."`
	Cloud   string `required:"" help:"The socket of the bench's machines."`
	Etcd    string `help:"An etcd of the bench's own."`
	Streams uint32 `help:"Streams on a connection that agents share."`

	Authority string `help:"Directory of the authority for the instances' certificates."`
}

// Run serves until the bench ends it.
func (c *PartReplica) Run(ctx context.Context, inv *Invocation) error {
	return parts.Serve(ctx, inv.env.Stdin, inv.env.Stdout, func(ctx context.Context, ready func(parts.Ready) error) error {
		return parts.Replica(ctx, parts.ReplicaOrder{
			Shard: c.Shard, ID: c.ID, Listen: c.Listen, HTTP: c.HTTP, PKI: c.PKI, Dir: c.Dir, Cloud: c.Cloud,
			Streams: c.Streams, Authority: c.Authority,
			Log: inv.env.Stderr, Version: inv.env.Version,
			Open: func(ctx context.Context, log *slog.Logger) (store.Store, func() error, error) {
				return inv.open(ctx, c.Etcd, log)
			},
		}, ready)
	})
}

// PartCrowd are many agents for a bench.
type PartCrowd struct {
	Socket string `required:"" help:"Socket for the bench's calls."`
}

// Run keeps them alive until the bench ends it.
func (c *PartCrowd) Run(ctx context.Context, inv *Invocation) error {
	return parts.Serve(ctx, inv.env.Stdin, inv.env.Stdout, func(ctx context.Context, ready func(parts.Ready) error) error {
		return trial.ServeCrowd(ctx, c.Socket, ready)
	})
}
