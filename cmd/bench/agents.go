package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/store"
)

// Agents is the command agents.
type Agents struct {
	Agents   int           `help:"How many (default: ${default})." default:"1000" placeholder:"N"`
	For      time.Duration `help:"How long to measure once all are registered (default: ${default})." default:"1m" placeholder:"DURATION"`
	Failures int           `help:"Agents that fail in that time: half fall silent, half lose their connection (default: one in a hundred each minute; at least 10, at most one in ten)." default:"-1" placeholder:"N"`
	Churn    int           `help:"Agents that lose their connection in that time and come back a second later." placeholder:"N"`
	Shard    `embed:""`

	Certificates time.Duration `help:"Give each instance a certificate that lasts for so long, and measure with its renewals: each agent renews after two thirds of that, from a random moment on (default: none)." placeholder:"DURATION"`
}

// Run admits the agents, measures, and shows the result.
func (c *Agents) Run(ctx context.Context, inv *Invocation) error {
	if err := c.check(inv); err != nil {
		return err
	}
	c.certificates = c.Certificates
	plan := trial.AgentsPlan{For: c.For, Failures: c.failures(), Churn: c.Churn}
	var r trial.Agents
	err := c.run(ctx, inv, c.Agents, 1, func(ctx context.Context, t *trial.Trial) (err error) {
		r, err = t.Agents(ctx, plan)
		return err
	})
	if err != nil {
		return err
	}
	return inv.result(r, r.Verdict, func() error { return c.show(inv, &r) })
}

func (c *Agents) check(inv *Invocation) error {
	const help = "leasehold-bench agents --help"
	switch {
	case c.For < time.Second:
		return program.Fail(program.Usage, help, "--for: %s: must be at least 1s", c.For)
	case c.Failures < -1 || c.Failures > c.Agents/5:
		return program.Fail(program.Usage, help,
			"--failures: %d: must be 0 to %d, a fifth of the agents: more at once is a storm (leasehold-bench storm)",
			c.Failures, c.Agents/5)
	case c.Certificates != 0 && (c.Certificates < store.MinCertificateLife.D() ||
		c.Certificates > authority.MaxLifetime):
		return program.Fail(program.Usage, help, "--certificates: %s: must be %s to %s", c.Certificates,
			store.MinCertificateLife, authority.MaxLifetime)
	case c.Certificates > 0 && c.Shard.Shared > 0:
		return program.Fail(program.Usage, help,
			"--certificates: none are given over connections without TLS: leave out --shared")
	case c.Churn < 0 || c.Churn > c.Agents/2:
		return program.Fail(program.Usage, help, "--churn: %d: must be 0 to %d, half of the agents", c.Churn,
			c.Agents/2)
	}
	return c.Shard.check(inv, "agents", c.Agents)
}

// failures returns the default number of failures: enough for percentiles, and too few for a storm.
func (c *Agents) failures() int {
	if c.Failures >= 0 {
		return c.Failures
	}
	return min(max(10, int(float64(c.Agents)/100*c.For.Minutes())), c.Agents/10)
}

func (c *Agents) show(inv *Invocation, r *trial.Agents) error {
	t := newTable()
	t.Add("agents", showSetting(r.Setting))
	t.Add("ramp-up", fmt.Sprintf("%.1fs until all were registered, %.1fs until all were healthy", r.RampUp,
		r.Settled))
	t.Add("reports", fmt.Sprintf("%.0f/s for %.0fs, %d not acknowledged", r.Reports, r.Measured, r.Unacknowledged))
	t.Add("report to lease renewed", showTimes(r.Latency))
	t.Add("agents' own lateness", showTimes(r.Late))
	t.Add("failures seen", fmt.Sprintf("%d of %d  %s  bound %s", r.Detection.Seen, r.Detection.Failed,
		showTimes(r.Detection.Lag), showMillis(r.Detection.Bound)))
	t.Add("… since their last report", showTimes(r.Detection.Silent))
	t.Add("false positives", fmt.Sprintf("%d, healthy leases lost %d, agents that came back %d", r.FalsePositives,
		r.LeasesLost, r.Churned))
	t.Add("disturbances", fmt.Sprint(r.Disturbances)+orNothing(" last: ", r.Disturbance))
	t.Add("etcd", fmt.Sprintf("%.0f renewals/s (mean %.1fms), %.0f writes/s", r.Renewals, r.RenewalMillis, r.Revisions))
	if c.Certificates > 0 {
		t.Add("certificates", fmt.Sprintf("%.1f/s signed", r.Certificates))
	}
	t.Add("replica per agent", fmt.Sprintf("%s, %.1f goroutines", output.Bytes(uint64(max(0, r.MemoryPerAgent))),
		r.Goroutines))
	addProcesses(&t, r.Processes)
	return inv.write(&t, r.Wrongly, r.Troubles, r.Verdict)
}

func orNothing(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
