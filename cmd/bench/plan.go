package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/cmd/bench/planning"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
)

// Plan is the command plan.
type Plan struct {
	Instances int  `help:"How many instances the simulated shard has." default:"100000" placeholder:"N"`
	Groups    int  `help:"In how many groups." default:"1000" placeholder:"N"`
	Changes   int  `help:"How many changes of each kind are measured." default:"1000" placeholder:"N"`
	ColdStart bool `help:"Also write the shard into an etcd of the bench's own, and start a new leader on it."`
	Lost      int  `help:"How many leases end at once, at least: of whole groups (default: a tenth of the instances)." default:"-1" placeholder:"N"`
}

// Run measures the planner in this process. It sends nothing to etcd.
func (c *Plan) Run(ctx context.Context, inv *Invocation) error {
	cfg := planning.Config{
		Size: planning.Size{Instances: c.Instances, Groups: c.Groups}, Changes: c.Changes,
		Lost: c.Lost,
	}
	if cfg.Lost < 0 {
		cfg.Lost = c.Instances / 10
	}
	if err := c.check(inv); err != nil {
		return err
	}
	if err := cfg.Check(); err != nil {
		return program.Fail(program.Usage, "leasehold-bench plan --help", "%s", err)
	}
	shown := inv.newQuietProgress()
	defer shown.end()
	report := func(what string) { shown.tell("", what) }
	var cold *planning.ColdStart
	if c.ColdStart {
		started, err := inv.startCold(ctx, cfg, report)
		if err != nil {
			return err
		}
		cold = &started
	}
	r, err := planning.Run(ctx, cfg, report)
	shown.end()
	if err != nil {
		return err
	}
	r.ColdStart = cold
	done, err := inv.records(planDocument(r))
	if !done {
		err = showPlanning(inv, r)
	}
	if err != nil {
		return err
	}
	if found := r.Problems(); len(found) > 0 {
		return program.Fail(program.Failed, "report it: this is a bug of the planner", "%s",
			strings.Join(found, "; "))
	}
	return nil
}

func (c *Plan) check(inv *Invocation) error {
	const help = "leasehold-bench plan --help"
	switch {
	case inv.named():
		return program.Fail(program.Usage, "leave out --endpoints",
			"--endpoints: the planner is measured alone, and with --cold-start on an etcd of the bench's own")
	case c.Groups < 1:
		return program.Fail(program.Usage, help, "--groups: %d: must be at least 1", c.Groups)
	case c.Instances < c.Groups:
		return program.Fail(program.Usage, help, "--instances: %d: must be at least %d, one for each group",
			c.Instances, c.Groups)
	case c.Changes < 1:
		return program.Fail(program.Usage, help, "--changes: %d: must be at least 1", c.Changes)
	case c.Lost < -1 || c.Lost > c.Instances:
		return program.Fail(program.Usage, help, "--lost: %d: must be 0 to %d, all instances", c.Lost, c.Instances)
	default:
		return nil
	}
}

// startCold measures the start of a leader on an etcd that is started for it.
func (inv *Invocation) startCold(ctx context.Context, cfg planning.Config, report func(string)) (
	cold planning.ColdStart, err error,
) {
	b, err := inv.ownEtcd(ctx)
	if err != nil {
		return cold, err
	}
	cold, err = planning.StartCold(ctx, b.store, cfg.Size, min(cfg.Changes, 200), func() (time.Duration, error) {
		theirs, err := measure.Read(b.part.PID())
		return theirs.CPU, err
	}, report)
	if ended := b.end(err == nil || ctx.Err() != nil); ended != nil {
		inv.warn("%s", ended)
	}
	if err != nil && ctx.Err() == nil {
		err = program.Fail(program.Failed, "look at "+b.part.Log(), "%s", program.Joined(err))
	}
	return cold, err
}

// planDocument returns the JSON result, with its verdict.
func planDocument(r planning.Result) any {
	return struct {
		planning.Result
		Rate     float64  `json:"changes_per_second"`
		Verdict  string   `json:"verdict"`
		Problems []string `json:"problems,omitempty"`
	}{Result: r, Rate: r.Rate(), Verdict: r.Verdict(), Problems: r.Problems()}
}

func showPlanning(inv *Invocation, r planning.Result) error {
	scr := inv.screen()
	fmt.Fprintf(scr.W, "%d instances in %d groups: %d keys, %s\n\n", r.Instances, r.Groups, r.Keys,
		output.Bytes(r.KeyBytes))
	stages := output.Table{Columns: []output.Column{
		{Title: "NEW LEADER"},
		{Title: "TOOK", Right: true},
		{Title: "CPU", Right: true},
		{Title: "ALLOCATED", Right: true},
		{Title: "NOTE"},
	}}
	stage := func(what string, cost planning.Cost, note string) {
		stages.Add(what, short(cost.Took), short(cost.CPU), output.Bytes(cost.Bytes), note)
	}
	stage("read the records", r.Cache,
		fmt.Sprintf("%s an instance", short(r.Cache.CPU/time.Duration(r.Instances))))
	stage("evaluate them", r.Seen, "")
	stage("plan all groups", r.Plan,
		fmt.Sprintf("%s, the longest %s", output.Counted(r.Steps, "step", "steps"), short(r.Longest.Max)))
	stage("process a provider's list", r.Listed, "every provider_poll")
	if err := stages.Write(scr, inv.wide()); err != nil {
		return err
	}
	fmt.Fprintf(scr.W, "\nmemory: %s of records and %s of evidence: %s an instance\n\n", output.Bytes(r.Heap.Cache),
		output.Bytes(r.Heap.Evidence), output.Bytes(r.Heap.PerInstance))
	changes := output.Table{Columns: []output.Column{
		{Title: "EACH CHANGE"},
		{Title: "P50", Right: true},
		{Title: "P99", Right: true},
		{Title: "CPU", Right: true},
		{Title: "ALLOCATIONS", Right: true},
		{Title: "ALLOCATED", Right: true},
	}}
	for _, k := range r.Changes {
		changes.Add(k.What, short(k.Spread.P50), short(k.Spread.P99), short(k.Each.CPU), fmt.Sprint(k.Each.Allocations),
			output.Bytes(k.Each.Bytes))
	}
	if err := changes.Write(scr, inv.wide()); err != nil {
		return err
	}
	if cs := r.ColdStart; cs != nil {
		fmt.Fprintf(scr.W,
			"\ncold start from etcd: %d records in memory after %s, the first plan after %s, "+
				"all planned after %s (CPU %s, etcd's %s); it keeps %s, and had %s at most; "+
				"then from a write to its plan p50 %s, p99 %s\n",
			cs.Records, short(cs.Listed), short(cs.First), short(cs.All), short(cs.CPU), short(cs.EtcdCPU),
			output.Bytes(cs.Heap), output.Bytes(cs.Most), short(cs.Changes.P50), short(cs.Changes.P99))
	}
	if st := r.Storm; st != nil {
		fmt.Fprintf(scr.W,
			"\nstorm: %d leases of %s ended at once: judged within %s (CPU %s, the longest plan %s), "+
				"%d replaced; as before %s after their return\n",
			st.Lost, output.Counted(st.Groups, "group", "groups"), short(st.Judged.Took), short(st.Judged.CPU),
			short(st.Longest), st.Replaced, short(st.Returned.Took))
	}
	fmt.Fprintf(scr.W, "\n%s\n", r.Verdict())
	return nil
}

// short formats a measured duration with its three significant digits.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	default:
		return d.Round(100 * time.Nanosecond).String()
	}
}
