package bench

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
)

// Shard holds the flags of benches that run a whole shard.
type Shard struct {
	Interval     time.Duration `help:"How often each agent reports (default: ${default})." default:"10s" placeholder:"DURATION"`
	LeaseTTL     time.Duration `name:"lease-ttl" help:"An agent that is silent for so long is lost; whole seconds (default: three intervals and 2s)." placeholder:"DURATION"`
	Shared       int           `help:"Let all agents share so many connections to each replica, without TLS (default: each agent has its own, over TLS)." placeholder:"N"`
	Ramp         float64       `help:"Agents that begin per second (default: 300 over TLS, 2000 with shared connections)." placeholder:"N"`
	GroupSize    int           `help:"Instances of each group (default: ${default})." default:"1000" placeholder:"N"`
	ReconnectMax time.Duration `help:"Longest time that an agent waits before it reconnects (default: ${default}). For one and a half times as long after a disturbance no instance is judged lost." default:"30s" placeholder:"DURATION"`
	UsedEtcd     bool          `help:"Use an etcd of --endpoints even if it holds keys: the load slows its other clients down."`

	certificates time.Duration // how long the instances' certificates last; 0: they have none
}

// The default number of agents that begin per second: somewhat less than two processors manage with
// everything on them.
const (
	rampOwn    = 300
	rampShared = 2000
)

func (b *Shard) check(inv *Invocation, command string, agents int) error {
	help := "leasehold-bench " + command + " --help"
	switch {
	case b.UsedEtcd && !inv.named():
		return noneNamed()
	case agents < 1 || agents > 1_000_000:
		return program.Fail(program.Usage, help, "--agents: %d: must be 1 to 1000000", agents)
	case b.Shared < 0:
		return program.Fail(program.Usage, help, "--shared: %d: must not be negative", b.Shared)
	case b.Ramp < 0:
		return program.Fail(program.Usage, help, "--ramp: %g: must not be negative", b.Ramp)
	case b.ReconnectMax < time.Second || b.ReconnectMax > 5*time.Minute:
		return program.Fail(program.Usage, help, "--reconnect-max: %s: must be 1s to 5m", b.ReconnectMax)
	case b.GroupSize < 1 || b.GroupSize > 10_000:
		return program.Fail(program.Usage, help, "--group-size: %d: must be 1 to 10000", b.GroupSize)
	case b.Shared == 0:
		if most, err := trial.MostOwnConnections(); err == nil && agents > most {
			return program.Fail(program.Usage, "add --shared 100, or raise ulimit -Hn",
				"--agents: %d: at most %d can have connections of their own to one replica here", agents, most)
		}
	}
	g := store.DefaultGroup()
	g.Name, g.Provider = "bench", "bench"
	g.Report.Interval, g.Report.LeaseTTL = store.Duration(b.Interval), store.Duration(b.LeaseTTL)
	g.Complete()
	var wrong *store.FieldError
	if err := g.Validate(); errors.As(err, &wrong) {
		flag := map[string]string{"report.interval": "--interval", "report.lease_ttl": "--lease-ttl"}[wrong.Path]
		return program.Fail(program.Usage, help, "%s: %s: %s", flag, wrong.Value, wrong.Allowed)
	}
	return nil
}

// noneNamed refuses --used-etcd without --endpoints.
func noneNamed() error {
	return program.Fail(program.Usage, "add --endpoints HOST:PORT, or leave out --used-etcd",
		"--used-etcd: without --endpoints the bench starts an etcd of its own")
}

// run runs a trial from beginning to end and handles interrupts.
func (b *Shard) run(ctx context.Context, inv *Invocation, agents, replicas int,
	play func(context.Context, *trial.Trial) error,
) error {
	shown := inv.newProgress()
	t, err := trial.Begin(ctx, b.config(inv, agents, replicas), b.deps(inv, shown))
	if err == nil {
		err = play(ctx, t)
	}
	if ctx.Err() != nil {
		shown.tell("ending", "")
		err = ctx.Err()
	}
	ended := t.End(err)
	shown.end()
	var known *program.Failure
	switch {
	case ctx.Err() != nil && ended == nil:
		return program.Fail(program.Interrupted, "", "interrupted: nothing is left behind")
	case errors.As(err, &known):
		return err
	case err != nil:
		return program.Fail(program.Failed, "read the logs in "+t.Logs(), "%s", program.Joined(err))
	case ended != nil:
		return program.Fail(program.Failed, "", "%s", program.Joined(ended))
	}
	return nil
}

func (b *Shard) config(inv *Invocation, agents, replicas int) trial.Config {
	rate := b.Ramp
	switch {
	case rate == 0 && b.Shared > 0:
		rate = rampShared
	case rate == 0:
		rate = rampOwn
	}
	return trial.Config{
		Shard: shardName(inv.env.RandomID()), Agents: agents, Interval: b.Interval, LeaseTTL: b.LeaseTTL,
		GroupSize: b.GroupSize, Shared: b.Shared, Rate: rate,
		Replicas: replicas, ReconnectMax: b.ReconnectMax, Certificates: b.certificates,
	}
}

// shardName returns a unique name, which is part of every key.
func shardName(random string) string { return "bench-" + random[:min(8, len(random))] }

// deps selects the etcd: the bench's own, unless another is named.
func (b *Shard) deps(inv *Invocation, shown *progress) trial.Deps {
	return trial.Deps{
		Version: inv.env.Version, Own: !inv.named(), Env: inv.partEnvironment(), Tell: shown.tell,
		Open: func(ctx context.Context, address string) (store.Store, func() error, error) {
			return inv.open(ctx, address, nil)
		},
		Refuse: func(ctx context.Context, st store.Store) error {
			if b.UsedEtcd {
				return nil
			}
			return inv.refuseUsed(ctx, &benchedEtcd{where: inv.where(), store: st})
		},
	}
}
