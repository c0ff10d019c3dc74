package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
)

// Storm is the command storm.
type Storm struct {
	Lost    int           `help:"Agents that are lost at once (default: ${default})." default:"1000" placeholder:"N"`
	Healthy int           `help:"Agents that are not lost (default: a tenth of the lost)." default:"-1" placeholder:"N"`
	Away    time.Duration `help:"How long the lost agents stay away after their leases have ended (default: as long as a lease)." placeholder:"DURATION"`
	Shard   `embed:""`
}

// maxAway ends before a storm's first probe (SAFE-2), which is replaced on purpose.
const maxAway = 3 * time.Minute

// Run disconnects many agents at once, and shows the consequences for them and the others.
func (c *Storm) Run(ctx context.Context, inv *Invocation) error {
	const help = "leasehold-bench storm --help"
	if c.Healthy == -1 {
		c.Healthy = max(1, c.Lost/10)
	}
	switch {
	case c.Lost < 1:
		return program.Fail(program.Usage, help, "--lost: %d: must be at least 1", c.Lost)
	case c.Healthy < 0 || c.Healthy > c.Lost:
		return program.Fail(program.Usage, help,
			"--healthy: %d: must be 0 to %d, as many as are lost: a loss of less than half is not a storm", c.Healthy, c.Lost)
	case c.Away < 0 || c.Away > maxAway:
		return program.Fail(program.Usage, help, "--away: %s: must be at most %s", c.Away, maxAway)
	}
	if err := c.check(inv, "storm", c.Lost+c.Healthy); err != nil {
		return err
	}
	var r trial.Storm
	err := c.run(ctx, inv, c.Lost+c.Healthy, 1, func(ctx context.Context, t *trial.Trial) (err error) {
		r, err = t.Storm(ctx, trial.StormPlan{Lost: c.Lost, Away: c.Away})
		return err
	})
	if err != nil {
		return err
	}
	return inv.result(r, r.Verdict, func() error { return c.show(inv, &r) })
}

func (c *Storm) show(inv *Invocation, r *trial.Storm) error {
	t := newTable()
	t.Add("agents", showSetting(r.Setting))
	t.Add("lost at once", fmt.Sprintf("%d, in %s", r.Lost, output.Counted(r.Groups, "group", "groups")))
	t.Add("their leases ended", fmt.Sprintf("within %.1fs", r.LeasesEnded))
	t.Add("away for", fmt.Sprintf("%.1fs, %s in storm", r.Away, output.Counted(r.Storms, "group", "groups")))
	t.Add("given up", fmt.Sprintf("%d, machines made %d", r.Replaced, r.Made))
	t.Add("other healthy agents", fmt.Sprintf("%d, leases lost %d, judged %d", r.Healthy, r.HealthyLost, r.HealthyHurt))
	t.Add("their reports to renewal", showTimes(r.Latency))
	t.Add("back", fmt.Sprintf("%.1fs until all were registered, %.1fs until everything was as before", r.Back, r.AsBefore))
	t.Add("disturbances", fmt.Sprint(r.Disturbances))
	addProcesses(&t, r.Processes)
	return inv.write(&t, r.Wrongly, nil, r.Verdict)
}
