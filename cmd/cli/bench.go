package cli

import (
	"context"

	"github.com/leasehold/leasehold/cmd/bench/parts"
)

// Benches are the commands that measure what a machine carries.
type Benches struct {
	Etcd BenchEtcd `cmd:"" help:"What this etcd can do: renewals, transactions, watches, and how many agents that is enough for."`
	Plan BenchPlan `cmd:"" help:"Measure the planner alone, with a shard of any size in imagined time."`

	Part BenchPart `cmd:"" hidden:"" help:"A process that a bench starts."`
}

// BenchPart are the processes that a bench starts: this same program again.
type BenchPart struct {
	Etcd BenchPartEtcd `cmd:"" hidden:"" help:"An etcd with one member, for a bench."`
}

// BenchPartEtcd is an etcd for a bench.
type BenchPartEtcd struct {
	Dir string `required:"" help:"Where its data goes." placeholder:"DIR"`
}

// Run serves until the bench ends it.
func (c *BenchPartEtcd) Run(ctx context.Context, s *Session) error {
	return parts.Serve(ctx, s.env.Stdin, s.env.Stdout, func(ctx context.Context, ready func(parts.Ready) error) error {
		return parts.Etcd(ctx, c.Dir, s.env.Stderr, ready)
	})
}
