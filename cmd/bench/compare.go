package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/cmd/bench/parts"
	"github.com/leasehold/leasehold/cmd/bench/rivals"
	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
)

// Compare is the command compare.
type Compare struct {
	Agents   int           `help:"How many (default: ${default})." default:"1000" placeholder:"N"`
	Interval time.Duration `help:"How often each agent reports; its lease lasts three intervals and 2s (default: ${default})." default:"5s" placeholder:"DURATION"`
	Shared   int           `help:"Let all agents share so many connections, without TLS (default: each agent has its own; Leasehold's over TLS)." placeholder:"N"`
	Steady   time.Duration `help:"How long normal operation is measured (default: ${default}, in which Leasehold stores each report once)." default:"1m" placeholder:"DURATION"`
	Stall    time.Duration `help:"How long etcd, and then the detecting process, are paused (default: a lease and 3s)." placeholder:"DURATION"`
	Ramp     float64       `help:"Agents that begin per second (default: 300 with connections of their own, else 2000)." placeholder:"N"`
}

const (
	// compareConnections is how many agents may have connections of their own: on most systems a
	// process may open 20,000 files.
	compareConnections = 15_000
	// compareReport is the length of a report written as JSON.
	compareReport = 400
	// compareReplicas is how many replicas Leasehold has.
	compareReplicas = 2
	// compareReconnect is the product's own default.
	compareReconnect = 30 * time.Second
	// compareStalled is how much longer than a lease a process is paused.
	compareStalled = 3 * time.Second
	// compareSlack is how much longer than expected a step may take before it is aborted.
	compareSlack = 2 * time.Minute
)

// comparison is the JSON result.
type comparison struct {
	Agents     int             `json:"agents"`
	Interval   string          `json:"interval"`
	Lease      string          `json:"lease"`
	Shared     int             `json:"shared_connections"` // 0: each agent has its own
	Machine    measure.Machine `json:"machine"`
	Contenders []rivals.Named  `json:"contenders"`
	Rows       []rivals.Row    `json:"rows"`
	Verdict    string          `json:"verdict"`
}

// whole reports whether all contenders were measured completely.
func (r *comparison) whole() bool {
	return !slices.ContainsFunc(r.Contenders, func(one rivals.Named) bool { return one.Problem != "" })
}

// contender is one of the systems that are compared.
type contender struct {
	name string
	play func(context.Context, rivals.Plan) (rivals.Figures, error)
}

// Run measures each contender in the same way, one after the other. After one fails, the others are
// still measured.
func (c *Compare) Run(ctx context.Context, inv *Invocation) error {
	shard := &Shard{
		Interval: c.Interval, Shared: c.Shared, Ramp: c.Ramp, GroupSize: 1000,
		ReconnectMax: compareReconnect,
	}
	if err := c.check(inv, shard); err != nil {
		return err
	}
	machine, err := measure.ReadMachine(runtime.GOMAXPROCS(0))
	if err != nil {
		return err
	}
	r := comparison{
		Agents: c.Agents, Interval: c.Interval.String(), Lease: c.lease().String(), Shared: c.Shared,
		Machine: machine,
	}
	all := []contender{
		{"keepalive", c.rival(inv, rivals.Automatic, shard)},
		{"keepalive-once", c.rival(inv, rivals.EachCall, shard)},
		{"leasehold", c.leasehold(inv, shard)},
	}
	rate := shard.config(inv, c.Agents, 1).Rate
	inv.note("%s, one after the other: about %s", output.Counted(len(all), "contender", "contenders"), c.expected(rate))
	for i, one := range all {
		done, err := c.contend(ctx, inv, one, fmt.Sprintf("%s (%d of %d): ", one.name, i+1, len(all)), rate)
		if err != nil {
			return err
		}
		r.Contenders = append(r.Contenders, done)
	}
	r.Rows, r.Verdict = rivals.Rows(r.Contenders), rivals.Verdict(c.Agents, r.Contenders)
	done, err := inv.records(r)
	if !done {
		err = c.show(inv, &r)
	}
	if err == nil && !r.whole() {
		err = program.Fail(program.Failed, "run it where nothing else computes, or with fewer --agents", "%s",
			r.Verdict)
	}
	return err
}

// contend runs one contender. Only an interrupt is returned as an error; other errors are printed
// as that contender's result.
func (c *Compare) contend(ctx context.Context, inv *Invocation, one contender, where string, rate float64) (
	rivals.Named, error,
) {
	begun := inv.env.Now()
	shown := inv.newProgress()
	f, err := one.play(ctx, rivals.Plan{
		Steady: c.Steady, Stall: c.stall(), Begin: compareSlack + 4*comparedRamp(c.Agents, rate),
		Settle: compareSlack + 2*c.grace(),
		Tell:   func(doing, far string) { shown.tell(where+doing, inv.compareFar(where+doing, far)) },
	})
	shown.end()
	done := rivals.Named{Name: one.name, Figures: f}
	var known *program.Failure
	switch {
	case err != nil && ctx.Err() != nil:
		return done, err
	case errors.As(err, &known) && len(known.Remedies) > 0:
		done.Problem = known.What + "; " + known.Remedies.String()
	case err != nil:
		done.Problem = program.Joined(err)
	}
	took := inv.env.Now().Sub(begun).Round(time.Second)
	if done.Problem == "" {
		inv.note("%s: done after %s", one.name, took)
	} else {
		inv.note("%s: given up after %s: %s", one.name, took, output.OneLine(done.Problem))
	}
	return done, nil
}

// compareFar shortens a progress text to what fits on the terminal's line.
func (inv *Invocation) compareFar(doing, far string) string {
	if far == "" {
		return ""
	}
	const around = len("[ ()]")
	width := inv.screen().Width
	if room := width - len(doing) - around - 1; width > 0 && len(far) > room {
		far = far[:max(0, room)]
	}
	return "(" + far + ")"
}

// grace is for how long a leader judges no instance lost after a disturbance: until each agent has
// had time to return (SAFE-1).
func (c *Compare) grace() time.Duration { return c.lease() + compareReconnect*3/2 }

// comparedRamp returns how long it takes until all agents have begun.
func comparedRamp(agents int, rate float64) time.Duration {
	return time.Duration(float64(agents) / rate * float64(time.Second))
}

// expected estimates the duration in minutes.
func (c *Compare) expected(rate float64) string {
	const rivals = 2
	each := 2*comparedRamp(c.Agents, rate) + c.Steady + 2*c.stall()
	all := rivals*(each+3*c.lease()) + each + 2*c.grace()
	return output.Counted(max(1, int(all.Round(time.Minute)/time.Minute)), "minute", "minutes")
}

func (c *Compare) lease() time.Duration {
	g := store.DefaultGroup()
	g.Report.Interval, g.Report.LeaseTTL = store.Duration(c.Interval), 0
	g.Complete()
	return g.Report.LeaseTTL.D()
}

func (c *Compare) stall() time.Duration {
	if c.Stall > 0 {
		return c.Stall
	}
	return c.lease() + compareStalled
}

func (c *Compare) check(inv *Invocation, shard *Shard) error {
	const help = "leasehold-bench compare --help"
	switch {
	case inv.named():
		return program.Fail(program.Usage, "leave out --endpoints",
			"--endpoints: each contender gets an etcd of its own, which is made to stand still")
	case c.Shared == 0 && c.Agents > compareConnections:
		return program.Fail(program.Usage, "add --shared 100", "--agents: %d: at most %d have connections of their own",
			c.Agents, compareConnections)
	case c.Steady < time.Second:
		return program.Fail(program.Usage, help, "--steady: %s: must be at least 1s", c.Steady)
	case c.Stall < 0:
		return program.Fail(program.Usage, help, "--stall: %s: must not be negative", c.Stall)
	}
	return shard.check(inv, "compare", c.Agents)
}

// rival runs a contender that is made of etcd clients.
func (c *Compare) rival(inv *Invocation, habit rivals.Habit, shard *Shard) func(context.Context,
	rivals.Plan) (rivals.Figures, error) {
	return func(ctx context.Context, p rivals.Plan) (f rivals.Figures, err error) {
		p.Tell("starting etcd and a detector", "")
		r, err := rivals.Begin(ctx, rivals.Config{
			Habit: habit, Agents: c.Agents, Shared: c.Shared, Interval: c.Interval, TTL: c.lease(), Size: compareReport,
			Rate: shard.config(inv, c.Agents, 1).Rate,
		})
		if err == nil {
			f, err = rivals.Contest(ctx, r, p)
		}
		ended := r.End(err == nil || ctx.Err() != nil)
		switch {
		case ctx.Err() != nil:
			return f, program.Fail(program.Interrupted, "", "interrupted: nothing is left behind")
		case err != nil:
			return f, program.Fail(program.Failed, "read the logs in "+r.Dir(), "%s", program.Joined(err))
		}
		return f, ended
	}
}

// leasehold runs Leasehold as a contender.
func (c *Compare) leasehold(inv *Invocation, shard *Shard) func(context.Context, rivals.Plan) (rivals.Figures, error) {
	return func(ctx context.Context, p rivals.Plan) (f rivals.Figures, err error) {
		err = shard.run(ctx, inv, c.Agents, compareReplicas, func(ctx context.Context, t *trial.Trial) (err error) {
			f, err = rivals.Contest(ctx, t.Contender(), p)
			return err
		})
		return f, err
	}
}

func (c *Compare) show(inv *Invocation, r *comparison) error {
	t := output.Table{Columns: []output.Column{{Title: "WHAT"}}}
	last := len(r.Contenders) - 1
	for i, one := range r.Contenders {
		t.Columns = append(t.Columns, output.Column{Title: strings.ToUpper(one.Name), Right: true})
		if i < last {
			t.Columns = append(t.Columns, output.Column{Title: "RATIO", Right: true})
		}
	}
	for _, row := range r.Rows {
		cells := []string{row.Name}
		for i, v := range row.Values {
			cells = append(cells, comparedValue(v, row.Unit))
			if i < last {
				cells = append(cells, rivals.Ratio(row.Ratios[i]))
			}
		}
		t.Add(cells...)
	}
	scr := inv.screen()
	if err := t.Write(scr, inv.wide()); err != nil {
		return err
	}
	text := c.notes(r)
	if r.whole() { // otherwise it is an error
		text = append(text, "", r.Verdict)
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, line := range text {
		output.WriteWrapped(&b, scr, "", line)
	}
	_, err := io.WriteString(scr.W, b.String())
	return err
}

// notes explains how to read the figures.
func (c *Compare) notes(r *comparison) []string {
	all := []string{
		fmt.Sprintf("%s agents report every %s, leases of %s, %s. Ratios are relative to Leasehold's figures.",
			output.Thousands(r.Agents), r.Interval, r.Lease,
			output.Counted(r.Machine.Processors, "processor", "processors")+" for all of it"),
		"keepalive: agents are etcd clients that renew by KeepAlive and put each report. keepalive-once: " +
			"the same with KeepAliveOnce, a stream for each report.",
		fmt.Sprintf("Detector: for the first two, a process of the bench that watches for deleted keys and does nothing "+
			"about them; for Leasehold, %d replicas, which also plan, record and serve agents.", compareReplicas),
		"If it waits: the agents that were still away two intervals later. A detector that waits " +
			"notices real failures two intervals later. Leasehold's figures include its waits.",
		"The agents' costs are not comparable: the first two use an etcd client for each agent, " +
			"Leasehold's agents are simulated.",
	}
	if c.Shared == 0 {
		all = append(all,
			"Each agent has its own connection. Leasehold's agents use TLS and keep a second connection "+
				"warm; the others do neither.")
	} else {
		all = append(all, fmt.Sprintf("All agents share %s, without TLS: one for each would cost the others most.",
			output.Counted(c.Shared, "connection", "connections")))
	}
	for _, one := range r.Contenders {
		if one.Problem != "" {
			all = append(all, one.Name+" was given up: "+output.OneLine(one.Problem))
		}
		if one.Everyday != nil {
			all = append(all, fmt.Sprintf("%s: measured for %.0fs; the machine was %.0f%% busy.", one.Name,
				one.Everyday.Seconds, 100*one.Everyday.Machine))
		}
	}
	return all
}

// comparedValue formats a figure.
func comparedValue(value *float64, unit string) string {
	if value == nil {
		return "-"
	}
	v := *value
	switch unit {
	case "cores":
		return fmt.Sprintf("%.2f", v)
	case "bytes":
		return output.Bytes(uint64(max(0, v)))
	case "bytes/s":
		return output.Bytes(uint64(max(0, v))) + "/s"
	case "s":
		return fmt.Sprintf("%.1fs", v)
	case "/s":
		return fmt.Sprintf("%.0f/s", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// PartRival is a process of a contender made of etcd clients.
type PartRival struct {
	As string `required:"" help:"Its role, as JSON." placeholder:"ROLE"`
}

// Run serves until the bench ends it.
func (c *PartRival) Run(ctx context.Context, inv *Invocation) error {
	role, err := rivals.RoleOf(c.As)
	if err != nil {
		return err
	}
	return parts.Serve(ctx, inv.env.Stdin, inv.env.Stdout, role.Part)
}
