package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
)

// Readers is the command readers.
type Readers struct {
	Agents  int           `help:"How many (default: ${default})." default:"1000" placeholder:"N"`
	Browser bool          `help:"One of the readers is a headless Chromium: shows how long it takes to draw an update."`
	Readers int           `help:"Live pages that are read (default: ${default})." default:"50" placeholder:"N"`
	For     time.Duration `help:"How long each period lasts (default: ${default})." default:"20s" placeholder:"DURATION"`
	Periods int           `help:"How many periods there are, half of them with readers (default: ${default})." default:"6" placeholder:"N"`
	AtOnce  int           `help:"Instances that the roll replaces at a time (default: ${default})." default:"10" placeholder:"N"`
	Shard   `embed:""`
}

// Run reads live pages while a group rolls, and shows what that costs.
func (c *Readers) Run(ctx context.Context, inv *Invocation) error {
	const help = "leasehold-bench readers --help"
	switch {
	case c.Readers < 1 || c.Readers > 60:
		return program.Fail(program.Usage, help, "--readers: %d: must be 1 to 60", c.Readers)
	case c.For < time.Second:
		return program.Fail(program.Usage, help, "--for: %s: must be at least 1s", c.For)
	case c.Periods < 2 || c.Periods%2 != 0:
		return program.Fail(program.Usage, help, "--periods: %d: must be an even number", c.Periods)
	case c.AtOnce < 1 || c.AtOnce > c.Agents:
		return program.Fail(program.Usage, help, "--at-once: %d: must be 1 to %d", c.AtOnce, c.Agents)
	}
	if err := c.check(inv, "readers", c.Agents); err != nil {
		return err
	}
	plan := trial.ReadersPlan{
		Readers: c.Readers, For: c.For, Periods: c.Periods, AtOnce: c.AtOnce, Browser: c.Browser,
	}
	var r trial.Readers
	err := c.run(ctx, inv, c.Agents, 1, func(ctx context.Context, t *trial.Trial) (err error) {
		r, err = t.Readers(ctx, plan)
		return err
	})
	if err != nil {
		return err
	}
	return inv.result(r, r.Verdict, func() error { return c.show(inv, &r) })
}

func (c *Readers) show(inv *Invocation, r *trial.Readers) error {
	t := newTable()
	t.Add("agents", showSetting(r.Setting))
	t.Add("replaced", fmt.Sprintf("%.1f instances a second", r.Rolled))
	for _, p := range r.Periods {
		name := "without readers"
		if p.Readers {
			name = "with readers"
		}
		t.Add(name, fmt.Sprintf("replica %.3f cores for %.0fs", p.Cores, p.Seconds))
	}
	t.Add("the readers cost", fmt.Sprintf("%.3f cores", r.Cost))
	t.Add("each reader got", fmt.Sprintf("%.1f updates and %s a second", r.Updates, output.Bytes(uint64(r.Received))))
	if d := r.Drawn; d != nil {
		t.Add("the browser drew", fmt.Sprintf("%d updates; p50 %.0f ms, p99 %.0f ms, the longest %.0f ms", d.Updates, d.P50,
			d.P99, d.Longest))
	}
	t.Add("report to lease renewed", "without "+showTimes(r.Without.Latency)+", with "+showTimes(r.With.Latency))
	t.Add("reports that renewed nothing", fmt.Sprint(r.Unacknowledged))
	t.Add("judged lost", fmt.Sprint(r.Lost))
	return inv.write(&t, r.Wrongly, r.Troubles, r.Verdict)
}
