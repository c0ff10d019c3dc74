package bench

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/program"
)

// Failover is the command failover.
type Failover struct {
	Agents   int `help:"How many (default: ${default})." default:"1000" placeholder:"N"`
	Replicas int `help:"How many there are; the one that serves all agents is killed (default: ${default})." default:"2" placeholder:"N"`
	Shard    `embed:""`
}

// Run kills the replica that serves all agents, and shows the consequences.
func (c *Failover) Run(ctx context.Context, inv *Invocation) error {
	if c.Replicas < 2 || c.Replicas > 5 {
		return program.Fail(program.Usage, "leasehold-bench failover --help", "--replicas: %d: must be 2 to 5",
			c.Replicas)
	}
	if err := c.check(inv, "failover", c.Agents); err != nil {
		return err
	}
	var r trial.Failover
	err := c.run(ctx, inv, c.Agents, c.Replicas, func(ctx context.Context, t *trial.Trial) (err error) {
		r, err = t.Failover(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return inv.result(r, r.Verdict, func() error { return c.show(inv, &r) })
}

func (c *Failover) show(inv *Invocation, r *trial.Failover) error {
	t := newTable()
	warm := "with a second connection kept warm"
	if !r.Warm {
		warm = "without a second connection"
	}
	t.Add("agents", showSetting(r.Setting))
	t.Add("killed", fmt.Sprintf("1 of %d replicas, which served %d agents, %s%s", r.Replicas, r.Served, warm,
		map[bool]string{true: ", and led"}[r.Led]))
	t.Add("each served again", showTimes(r.Outage))
	t.Add("the last served again", fmt.Sprintf("after %.1fs", r.Last))
	t.Add("as many new connections", fmt.Sprintf("%.1fs, so %.2f of that", r.Cold, r.Ratio))
	t.Add("leases lost", fmt.Sprint(r.LeasesLost))
	t.Add("judged or replaced", fmt.Sprint(r.Judged))
	t.Add("disturbances", fmt.Sprint(r.Disturbances))
	addProcesses(&t, r.Processes)
	return inv.write(&t, r.Wrongly, r.Troubles, r.Verdict)
}
