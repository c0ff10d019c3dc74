package autoscale

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/scenario"
	"github.com/leasehold/leasehold/store"
)

// Outcome is how a size followed a load.
type Outcome struct {
	Below    time.Duration `json:"below_target"` // each machine had more load than the target and a tenth
	Machines time.Duration `json:"machine_time"`
	Turns    int           `json:"changes_of_direction"`
	Changes  int           `json:"changes"`
}

// Row is a curve, and how each followed it.
type Row struct {
	Curve      string  `json:"curve"`
	Leasehold  Outcome `json:"leasehold"`
	Tracking   Outcome `json:"target_tracking"`
	Horizontal Outcome `json:"hpa"`
}

// Run plays all curves.
func Run(ctx context.Context) (rows []Row, err error) {
	for _, c := range Curves() {
		own, err := leasehold(ctx, &c)
		if err != nil {
			return nil, err
		}
		rows = append(rows, Row{c.Name, own, play(&c, &tracking{}), play(&c, &horizontal{})})
	}
	return rows, nil
}

// leasehold has the leader's own code follow a curve, in virtual time.
func leasehold(ctx context.Context, c *Curve) (o Outcome, err error) {
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = "web", "cloud", int(c.at(0)/target+0.999)
	g.Workload.Run = []string{"web"}
	g.Scale = &store.ScaleSpec{
		Min: new(least), Max: most, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: target}},
	}
	g.Complete()
	s, err := scenario.Read(c.Name, strings.NewReader(c.scenario()), scenario.Setting{Groups: []store.Group{g}})
	if err != nil {
		return o, err
	}
	res := s.Play(ctx, func(time.Duration) {})
	if len(res.Groups) != 1 || res.Groups[0].Load == nil {
		return o, fmt.Errorf("%s: nothing was measured: %w", c.Name, context.Cause(ctx))
	}
	l := res.Groups[0].Load
	seconds := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	return Outcome{
		Below: seconds(l.Below), Machines: seconds(l.Machines * 60), Turns: l.Turns, Changes: l.Changes,
	}, nil
}

// Table returns the comparison as the page has it, in Markdown.
func Table(rows []Row) string {
	var out strings.Builder
	out.WriteString("| Load | Minutes below target: Leasehold | Target tracking | HPA | Machine-minutes: Leasehold | " +
		"Target tracking | HPA | Changes of direction: Leasehold | Target tracking | HPA |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		all := []Outcome{r.Leasehold, r.Tracking, r.Horizontal}
		fmt.Fprintf(&out, "| %s ", r.Curve)
		for _, o := range all {
			fmt.Fprintf(&out, "| %.1f ", o.Below.Minutes())
		}
		for _, o := range all {
			fmt.Fprintf(&out, "| %.0f ", o.Machines.Minutes())
		}
		for _, o := range all {
			fmt.Fprintf(&out, "| %d ", o.Turns)
		}
		out.WriteString("|\n")
	}
	return out.String()
}
