package cli

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/cmd/bench/trial"
)

// BenchFailover is the command bench failover.
type BenchFailover struct {
	Agents     int `help:"How many (default: ${default})." default:"1000" placeholder:"N"`
	Replicas   int `help:"How many there are; the one that serves all agents is killed (default: ${default})." default:"2" placeholder:"N"`
	BenchShard `embed:""`
}

// Run kills the replica that serves all agents, and tells what became of them.
func (c *BenchFailover) Run(ctx context.Context, s *Session) error {
	if c.Replicas < 2 || c.Replicas > 5 {
		return failure(Usage, "leasehold bench failover --help", "--replicas: %d: must be 2 to 5", c.Replicas)
	}
	if err := c.check(s, "failover", c.Agents); err != nil {
		return err
	}
	var r trial.Failover
	err := c.run(ctx, s, c.Agents, c.Replicas, func(ctx context.Context, t *trial.Trial) (err error) {
		r, err = t.Failover(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return s.benchResult(r, r.Verdict, func() error { return c.show(s, &r) })
}

func (c *BenchFailover) show(s *Session, r *trial.Failover) error {
	t := benchRows()
	warm := "with a second connection kept warm"
	if !r.Warm {
		warm = "without a second connection"
	}
	t.Add("agents", benchSetting(r.Setting))
	t.Add("killed", fmt.Sprintf("1 of %d replicas, which served %d agents, %s%s", r.Replicas, r.Served, warm, map[bool]string{true: ", and led"}[r.Led]))
	t.Add("each served again", benchTimes(r.Outage))
	t.Add("the last served again", fmt.Sprintf("after %.1fs", r.Last))
	t.Add("as many that come cold", fmt.Sprintf("%.1fs, so %.2f of that", r.Cold, r.Ratio))
	t.Add("leases lost", fmt.Sprint(r.LeasesLost))
	t.Add("judged or given up", fmt.Sprint(r.Judged))
	t.Add("disturbances", fmt.Sprint(r.Disturbances))
	benchProcesses(&t, r.Processes)
	return s.writeBench(&t, r.Wrongly, r.Troubles, r.Verdict)
}
