package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/parts"
	"github.com/leasehold/leasehold/cmd/bench/rivals"
	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// BenchCompare is the command bench compare.
type BenchCompare struct {
	Agents   int           `help:"How many (default: ${default})." default:"2000" placeholder:"N"`
	Interval time.Duration `help:"How often each agent reports; its lease lasts three intervals and 2s (default: ${default})." default:"5s" placeholder:"DURATION"`
	Shared   int           `help:"Have all agents share so many connections, unsecured (default: each agent has its own; Leasehold's over TLS)." placeholder:"N"`
	Steady   time.Duration `help:"How long everyday is measured (default: ${default})." default:"20s" placeholder:"DURATION"`
	Stall    time.Duration `help:"How long etcd, and then a process between, stand still (default: a lease and 3s)." placeholder:"DURATION"`
	Ramp     float64       `help:"Agents that begin in a second (default: 300 where each has its own connection, else 2000)." placeholder:"N"`
}

const (
	// compareConnections is how many agents may have connections of their own: an etcd may open 20,000 files in most places.
	compareConnections = 15_000
	// compareProcesses is in how many processes a rival's agents live.
	compareProcesses = 4
	// compareReport is how long a report is that somebody writes as JSON.
	compareReport = 400
	// compareReplicas is how many replicas Leasehold has.
	compareReplicas = 2
	// compareReconnect is the product's own default.
	compareReconnect = 30 * time.Second
	// compareStalled is how much longer than a lease something stands still.
	compareStalled = 3 * time.Second
)

// compared is one of those that are held against each other.
type compared struct {
	Name string `json:"name"`
	What string `json:"what"`
	rivals.Figures
}

// comparison is what JSON shows.
type comparison struct {
	Agents     int          `json:"agents"`
	Interval   string       `json:"interval"`
	Lease      string       `json:"lease"`
	Shared     int          `json:"shared_connections"` // 0: each agent has its own
	Contenders []compared   `json:"contenders"`
	Rows       []rivals.Row `json:"rows"`
}

// Run has each contender go through the same, one after the other.
func (c *BenchCompare) Run(ctx context.Context, s *Session) error {
	shard := &BenchShard{Interval: c.Interval, Shared: c.Shared, Ramp: c.Ramp, GroupSize: 1000, ReconnectMax: compareReconnect}
	if err := c.check(s, shard); err != nil {
		return err
	}
	lease := c.lease()
	r := comparison{Agents: c.Agents, Interval: c.Interval.String(), Lease: lease.String(), Shared: c.Shared}
	var all []rivals.Figures
	for _, one := range []struct {
		compared
		play func(context.Context, rivals.Plan) (rivals.Figures, error)
	}{
		{compared{Name: "keepalive", What: "agents are etcd clients: automatic KeepAlive, a put for each report"}, c.rival(s, rivals.Automatic, shard)},
		{compared{Name: "keepalive-once", What: "the same with KeepAliveOnce: a stream for each report"}, c.rival(s, rivals.EachCall, shard)},
		{compared{Name: "leasehold", What: fmt.Sprintf("Leasehold with %d replicas", compareReplicas)}, c.leasehold(s, shard)},
	} {
		told := s.newBenchProgress()
		f, err := one.play(ctx, rivals.Plan{Steady: c.Steady, Stall: c.stall(), Tell: func(what string) { told.tell(one.Name+":", what) }})
		told.end()
		if err != nil {
			return err
		}
		one.Figures = f
		r.Contenders, all = append(r.Contenders, one.compared), append(all, f)
	}
	r.Rows = rivals.Rows(all...)
	done, err := s.records(r)
	if !done {
		err = c.show(s, &r)
	}
	return err
}

func (c *BenchCompare) lease() time.Duration {
	g := store.DefaultGroup()
	g.Report.Interval, g.Report.LeaseTTL = store.Duration(c.Interval), 0
	g.Complete()
	return g.Report.LeaseTTL.D()
}

func (c *BenchCompare) stall() time.Duration {
	if c.Stall > 0 {
		return c.Stall
	}
	return c.lease() + compareStalled
}

func (c *BenchCompare) check(s *Session, shard *BenchShard) error {
	const help = "leasehold bench compare --help"
	switch {
	case s.given("endpoints"):
		return failure(Usage, "leave out --endpoints", "--endpoints: each contender gets an etcd of its own, which is made to stand still")
	case c.Shared == 0 && c.Agents > compareConnections:
		return failure(Usage, "add --shared 100", "--agents: %d: at most %d have connections of their own", c.Agents, compareConnections)
	case c.Agents < compareProcesses:
		return failure(Usage, help, "--agents: %d: must be at least %d", c.Agents, compareProcesses)
	case c.Steady < time.Second:
		return failure(Usage, help, "--steady: %s: must be at least 1s", c.Steady)
	case c.Stall < 0:
		return failure(Usage, help, "--stall: %s: must not be negative", c.Stall)
	}
	return shard.check("compare", c.Agents)
}

// rival plays with clients of etcd.
func (c *BenchCompare) rival(s *Session, habit rivals.Habit, shard *BenchShard) func(context.Context, rivals.Plan) (rivals.Figures, error) {
	return func(ctx context.Context, p rivals.Plan) (f rivals.Figures, err error) {
		shared := 0
		if c.Shared > 0 {
			shared = max(1, c.Shared/compareProcesses)
		}
		p.Tell("starting etcd and a detector")
		r, err := rivals.Begin(ctx, rivals.Config{
			Habit: habit, Agents: c.Agents, Processes: compareProcesses, Shared: shared, Interval: c.Interval, TTL: c.lease(), Size: compareReport,
			Rate: shard.config(s, c.Agents, 1).Rate,
		})
		if err == nil {
			f, err = rivals.Contest(ctx, r, c.Agents, p)
		}
		ended := r.End(err == nil || ctx.Err() != nil)
		switch {
		case ctx.Err() != nil:
			return f, failure(Interrupted, "", "interrupted: nothing is left behind")
		case err != nil:
			return f, failure(Failed, "read the logs in "+r.Dir()+"; fewer --agents ask less of this machine", "%s", joined(err))
		}
		return f, ended
	}
}

// leasehold plays with a shard.
func (c *BenchCompare) leasehold(s *Session, shard *BenchShard) func(context.Context, rivals.Plan) (rivals.Figures, error) {
	return func(ctx context.Context, p rivals.Plan) (f rivals.Figures, err error) {
		err = shard.run(ctx, s, c.Agents, compareReplicas, func(ctx context.Context, t *trial.Trial) (err error) {
			f, err = rivals.Contest(ctx, t.Contender(), c.Agents, p)
			return err
		})
		return f, err
	}
}

func (c *BenchCompare) show(s *Session, r *comparison) error {
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
	if err := t.Write(s.screen(), s.wide()); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s agents that report every %s, leases of %s. A ratio is to Leasehold's figure.\n", thousands(r.Agents), r.Interval, r.Lease)
	for _, one := range r.Contenders {
		fmt.Fprintf(&b, "%s: %s.\n", one.Name, one.What)
		for _, st := range []struct {
			rivals.Stall
			who string
		}{{one.EtcdStall, "etcd"}, {one.MiddleStall, "the process between"}} {
			fmt.Fprintf(&b, "  %s stood still for %.0fs: %d of %d living agents declared dead, all as before after %.0fs\n",
				st.who, st.Seconds, st.Declared, st.Stall.Agents, st.Settled)
		}
	}
	if c.Shared == 0 {
		b.WriteString("Each agent has its own connection; Leasehold's are over TLS, the others' are not.\n")
	} else {
		fmt.Fprintf(&b, "All agents share %s, unsecured: a connection for each would cost the others most.\n", counted(c.Shared, "connection", "connections"))
	}
	b.WriteString("Leasehold's agents are simulated, many in one process, so their own cost says nothing; the others' are etcd's own client.\n")
	_, err := io.WriteString(s.env.Stdout, b.String())
	return err
}

// comparedValue is a figure for people.
func comparedValue(v float64, unit string) string {
	switch unit {
	case "cores":
		return fmt.Sprintf("%.2f", v)
	case "bytes":
		return output.Bytes(uint64(max(0, v)))
	case "bytes/s":
		return output.Bytes(uint64(max(0, v))) + "/s"
	case "/s":
		return fmt.Sprintf("%.0f/s", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// BenchPartRival is a process of a rival, for a bench.
type BenchPartRival struct {
	As string `required:"" help:"What it is, as JSON." placeholder:"ROLE"`
}

// Run serves until the bench ends it.
func (c *BenchPartRival) Run(ctx context.Context, s *Session) error {
	role, err := rivals.RoleOf(c.As)
	if err != nil {
		return err
	}
	return parts.Serve(ctx, s.env.Stdin, s.env.Stdout, role.Part)
}
