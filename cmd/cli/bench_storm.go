package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/trial"
)

// BenchStorm is the command bench storm.
type BenchStorm struct {
	Lost       int           `help:"Agents that are lost at once (default: ${default})." default:"1000" placeholder:"N"`
	Healthy    int           `help:"Agents beside them (default: a tenth of those)." default:"-1" placeholder:"N"`
	Away       time.Duration `help:"How long the lost stay away once their leases have ended (default: as long as a lease)." placeholder:"DURATION"`
	BenchShard `embed:""`
}

// mostAway ends before a storm's first probe (SAFE-2): that one is replaced on purpose.
const mostAway = 3 * time.Minute

// Run cuts many agents off at once, and tells what became of them and of the others.
func (c *BenchStorm) Run(ctx context.Context, s *Session) error {
	const help = "leasehold bench storm --help"
	if c.Healthy == -1 {
		c.Healthy = max(1, c.Lost/10)
	}
	switch {
	case c.Lost < 1:
		return failure(Usage, help, "--lost: %d: must be at least 1", c.Lost)
	case c.Healthy < 0 || c.Healthy > c.Lost:
		return failure(Usage, help, "--healthy: %d: must be 0 to %d, as many as are lost: fewer than half are no storm", c.Healthy, c.Lost)
	case c.Away < 0 || c.Away > mostAway:
		return failure(Usage, help, "--away: %s: must be at most %s", c.Away, mostAway)
	}
	if err := c.check(s, "storm", c.Lost+c.Healthy); err != nil {
		return err
	}
	var r trial.Storm
	err := c.run(ctx, s, c.Lost+c.Healthy, 1, func(ctx context.Context, t *trial.Trial) (err error) {
		r, err = t.Storm(ctx, trial.StormPlan{Lost: c.Lost, Away: c.Away})
		return err
	})
	if err != nil {
		return err
	}
	return s.benchResult(r, r.Verdict, func() error { return c.show(s, &r) })
}

func (c *BenchStorm) show(s *Session, r *trial.Storm) error {
	t := benchRows()
	t.Add("agents", benchSetting(r.Setting))
	t.Add("lost at once", fmt.Sprintf("%d, in %s", r.Lost, counted(r.Groups, "group", "groups")))
	t.Add("their leases ended", fmt.Sprintf("within %.1fs", r.LeasesEnded))
	t.Add("away for", fmt.Sprintf("%.1fs, %s in storm", r.Away, counted(r.Storms, "group", "groups")))
	t.Add("given up", fmt.Sprintf("%d, machines made %d", r.Replaced, r.Made))
	t.Add("healthy beside them", fmt.Sprintf("%d, leases lost %d, judged %d", r.Healthy, r.HealthyLost, r.HealthyHurt))
	t.Add("their reports to renewal", benchTimes(r.Latency))
	t.Add("back", fmt.Sprintf("%.1fs until all were registered, %.1fs until all was as before", r.Back, r.AsBefore))
	t.Add("disturbances", fmt.Sprint(r.Disturbances))
	benchProcesses(&t, r.Processes)
	return s.writeBench(&t, r.Wrongly, nil, r.Verdict)
}
