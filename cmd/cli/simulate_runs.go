package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/scenario"
)

// runs plays a scenario with many seeds and sums up.
func (c *Simulate) runs(ctx context.Context, inv *Invocation, sc *scenario.Scenario) error {
	shown := inv.newProgress(sc.Length)
	runs := sc.PlayMany(ctx, c.Runs, func(done int) {
		shown.show(func() string { return fmt.Sprintf("%d of %d runs", done, c.Runs) })
	})
	shown.end()
	done, err := inv.records(runs)
	if !done {
		err = c.showRuns(inv, runs)
	}
	if err != nil {
		return err
	}
	next := c.command(runs.Worst)
	switch {
	case runs.Cut:
		return failure(Interrupted, "", "interrupted after %s", counted(runs.Seeds, "run", "runs"))
	case len(runs.Broken) > 0:
		return failure(Failed, next, "a safety rule was violated, which is a bug: %s", runs.Broken[0])
	case runs.Met < runs.Seeds:
		return failure(Failed, next, "not met in %d of %d runs", runs.Seeds-runs.Met, runs.Seeds)
	default:
		return nil
	}
}

func (c *Simulate) showRuns(inv *Invocation, runs *scenario.Runs) error {
	if runs.Seeds == 0 {
		return nil
	}
	scr := inv.screen()
	t := output.Table{Columns: []output.Column{
		{Title: "OF ALL RUNS"},
		{Title: "BEST", Right: true},
		{Title: "MEDIAN", Right: true},
		{Title: "WORST", Right: true},
		{Title: "WITH SEED", Right: true},
	}}
	for _, m := range runs.Measures {
		seed := "-"
		if m.Worst != m.Best {
			seed = fmt.Sprint(m.Seed)
		}
		t.Add(m.Name, measureText(m.Best, m.Unit), measureText(m.Median, m.Unit), measureText(m.Worst, m.Unit), seed)
	}
	if err := t.Write(scr, false); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, seeds %d to %d; all as wanted at the end in %d\n", counted(runs.Seeds, "run", "runs"),
		runs.First, runs.First+uint64(runs.Seeds)-1, runs.Whole)
	for _, m := range runs.Missed {
		var seeds []string
		for _, n := range m.Seeds {
			seeds = append(seeds, fmt.Sprint(n))
		}
		if m.Count > len(seeds) {
			seeds = append(seeds, "…")
		}
		fmt.Fprintf(&b, "%s %s, wanted %s: missed in %d (seeds %s)\n", scr.Alarm("NOT MET  "), m.Name, m.Want, m.Count,
			strings.Join(seeds, ", "))
	}
	if len(runs.Missed) == 0 {
		fmt.Fprintf(&b, "%s all expectations, in all runs\n", scr.Good("met      "))
	}
	fmt.Fprintf(&b, "the worst: %s\n", c.command(runs.Worst))
	_, err := fmt.Fprint(inv.env.Stdout, b.String())
	return err
}

func measureText(v float64, unit string) string {
	switch unit {
	case "s":
		return secondsText(v)
	default:
		return fmt.Sprintf("%g%s", v, unit)
	}
}
