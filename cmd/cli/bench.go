package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/trial"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// Benches are the commands that measure what a machine carries.
type Benches struct {
	Agents   BenchAgents   `cmd:"" help:"See how many agents one shard carries on this machine, and how soon the failure of one is seen."`
	Failover BenchFailover `cmd:"" help:"Kill the replica that serves all agents, and see how soon another serves them."`
	Storm    BenchStorm    `cmd:"" help:"Lose many agents at once, and see that nothing is replaced and nobody else harmed."`
	Etcd     BenchEtcd     `cmd:"" help:"What this etcd can do: renewals, transactions, watches, and how many agents that is enough for."`
	Plan     BenchPlan     `cmd:"" help:"Measure the planner alone, with a shard of any size in imagined time."`
	Compare  BenchCompare  `cmd:"" help:"Leasehold beside agents that are clients of etcd: what each costs, and who is declared dead when something stands still."`
	Part     BenchPart     `cmd:"" hidden:"" help:"A process that a bench starts."`
}

// BenchShard are the flags of benches that run a whole shard.
type BenchShard struct {
	Interval     time.Duration `help:"How often each agent reports (default: ${default})." default:"10s" placeholder:"DURATION"`
	LeaseTTL     time.Duration `name:"lease-ttl" help:"Silence for so long is loss; whole seconds (default: three intervals and 2s)." placeholder:"DURATION"`
	Shared       int           `help:"Have all agents share so many connections to each replica, unsecured (default: each agent has its own, over TLS)." placeholder:"N"`
	Ramp         float64       `help:"Agents that begin in a second (default: 300 over TLS, 2000 where connections are shared)." placeholder:"N"`
	GroupSize    int           `help:"Instances of each group (default: ${default})." default:"1000" placeholder:"N"`
	ReconnectMax time.Duration `help:"The longest that an agent waits before it tries again to be served (default: ${default}). So long, and half as long again, nobody is judged lost after a disturbance." default:"30s" placeholder:"DURATION"`
	UsedEtcd     bool          `help:"Use an etcd of --endpoints even if it holds something: whoever uses it will feel it."`
}

// What agents begin in a second, if nobody says: some less than what was seen to be possible with everything on two processors.
const (
	rampOwn    = 300
	rampShared = 2000
)

func (b *BenchShard) check(s *Session, command string, agents int) error {
	help := "leasehold bench " + command + " --help"
	switch {
	case b.UsedEtcd && !s.given("endpoints"):
		return usedByNobody()
	case agents < 1 || agents > 1_000_000:
		return failure(Usage, help, "--agents: %d: must be 1 to 1000000", agents)
	case b.Shared < 0:
		return failure(Usage, help, "--shared: %d: must not be negative", b.Shared)
	case b.Ramp < 0:
		return failure(Usage, help, "--ramp: %g: must not be negative", b.Ramp)
	case b.ReconnectMax < time.Second || b.ReconnectMax > 5*time.Minute:
		return failure(Usage, help, "--reconnect-max: %s: must be 1s to 5m", b.ReconnectMax)
	case b.GroupSize < 1 || b.GroupSize > 10_000:
		return failure(Usage, help, "--group-size: %d: must be 1 to 10000", b.GroupSize)
	case b.Shared == 0:
		if most, err := trial.MostOwnConnections(); err == nil && agents > most {
			return failure(Usage, "add --shared 100, or raise ulimit -Hn", "--agents: %d: at most %d can have connections of their own to one replica here", agents, most)
		}
	}
	g := store.DefaultGroup()
	g.Name, g.Provider = "bench", "bench"
	g.Report.Interval, g.Report.LeaseTTL = store.Duration(b.Interval), store.Duration(b.LeaseTTL)
	g.Complete()
	var wrong *store.FieldError
	if err := g.Validate(); errors.As(err, &wrong) {
		flag := map[string]string{"report.interval": "--interval", "report.lease_ttl": "--lease-ttl"}[wrong.Path]
		return failure(Usage, help, "%s: %s: %s", flag, wrong.Value, wrong.Allowed)
	}
	return nil
}

// usedByNobody is for who says that an etcd may be in use, and names none.
func usedByNobody() error {
	return failure(Usage, "add --endpoints HOST:PORT, or leave out --used-etcd", "--used-etcd: without --endpoints the bench has an etcd of its own, which nobody uses")
}

// run plays a trial from its beginning to its end, whatever comes between.
func (b *BenchShard) run(ctx context.Context, s *Session, agents, replicas int, play func(context.Context, *trial.Trial) error) error {
	told := s.newBenchProgress()
	t, err := trial.Begin(ctx, b.config(s, agents, replicas), b.deps(s, told))
	if err == nil {
		err = play(ctx, t)
	}
	if ctx.Err() != nil {
		told.tell("ending", "")
		err = ctx.Err()
	}
	ended := t.End(err)
	told.end()
	var known *Failure
	switch {
	case ctx.Err() != nil && ended == nil:
		return failure(Interrupted, "", "interrupted: nothing is left behind")
	case errors.As(err, &known):
		return err
	case err != nil:
		return failure(Failed, "read the logs in "+t.Logs(), "%s", joined(err))
	case ended != nil:
		return failure(Failed, "", "%s", joined(ended))
	}
	return nil
}

func (b *BenchShard) config(s *Session, agents, replicas int) trial.Config {
	rate := b.Ramp
	switch {
	case rate == 0 && b.Shared > 0:
		rate = rampShared
	case rate == 0:
		rate = rampOwn
	}
	return trial.Config{
		Shard: benchShard(s.env.RandomID()), Agents: agents, Interval: b.Interval, LeaseTTL: b.LeaseTTL, GroupSize: b.GroupSize, Shared: b.Shared, Rate: rate,
		Replicas: replicas, ReconnectMax: b.ReconnectMax,
	}
}

// benchShard is a name that no other shard has; it is part of every key.
func benchShard(random string) string { return "bench-" + random[:min(8, len(random))] }

// deps says which etcd is used: one of the bench's own, unless the command line names another. What the environment or a file names is for work, not for benches.
func (b *BenchShard) deps(s *Session, told *benchProgress) trial.Deps {
	named := s.given("endpoints")
	return trial.Deps{
		Version: s.env.Version, Own: !named, Env: s.benchEnvironment(named), Tell: told.tell,
		Open: func(ctx context.Context, address string) (store.Store, func() error, error) {
			return s.openBenchEtcd(ctx, address, nil)
		},
		Refuse: func(ctx context.Context, st store.Store) error {
			if b.UsedEtcd {
				return nil
			}
			return s.refuseUsed(ctx, &benchedEtcd{where: strings.Join(s.flags.Endpoints, ", "), store: st})
		},
	}
}

// openBenchEtcd opens an etcd of the bench's own or, without an address, the one that the flags name.
func (s *Session) openBenchEtcd(ctx context.Context, address string, log *slog.Logger) (store.Store, func() error, error) {
	if address == "" {
		return s.connect(ctx, log)
	}
	return s.env.Open(ctx, Connection{Endpoints: []string{address}, Logger: log})
}

// benchEnvironment has parts find the etcd that was named. It is no argument of theirs, since everybody can read those.
func (s *Session) benchEnvironment(named bool) (env []string) {
	if !named {
		return nil
	}
	for name, value := range map[string]string{
		"ENDPOINTS": strings.Join(s.flags.Endpoints, ","), "CACERT": s.flags.CACert, "CERT": s.flags.Cert, "KEY": s.flags.Key, "USER": s.flags.User, "CONFIG": s.flags.Config,
	} {
		if value != "" {
			env = append(env, "LEASEHOLD_"+name+"="+value)
		}
	}
	return env
}

// benchProgress tells a person who waits what goes on: one line that is written anew on a terminal, elsewhere a line when something else begins, and now and then.
type benchProgress struct {
	s     *Session
	doing string
	told  time.Time
	shown bool
}

const benchToldEvery = 10 * time.Second

func (s *Session) newBenchProgress() *benchProgress { return &benchProgress{s: s} }

func (p *benchProgress) tell(doing, far string) {
	text := strings.TrimSpace(doing + " " + far)
	now := p.s.env.Now()
	switch {
	case p.s.env.StderrTerminal:
		fmt.Fprintf(p.s.env.Stderr, "\r\x1b[K%s", p.s.aside().Dim("["+text+"]"))
		p.shown = true
	case doing != p.doing || now.Sub(p.told) >= benchToldEvery:
		p.s.note("%s", text)
		p.told = now
	}
	p.doing = doing
}

func (p *benchProgress) end() {
	if p.shown {
		fmt.Fprint(p.s.env.Stderr, "\r\x1b[K")
	}
}

// benchResult ends a bench that ran: its document, or what show writes of it, and the exit code by its verdict.
func (s *Session) benchResult(document any, v trial.Verdict, show func() error) error {
	done, err := s.records(document)
	if !done {
		err = show()
	}
	if err != nil {
		return err
	}
	if !v.Carries {
		return failure(Failed, "", "%s", v.Text)
	}
	return nil
}

// benchRows is a table of two columns, what and how much.
func benchRows() output.Table {
	return output.Table{Columns: []output.Column{{Title: "WHAT"}, {Title: "HOW MUCH"}}}
}

func benchTimes(t trial.Times) string {
	if t.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("p50 %s  p99 %s  max %s", benchMillis(t.P50), benchMillis(t.P99), benchMillis(t.Max))
}

func benchMillis(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.2fs", ms/1000)
	}
	return fmt.Sprintf("%.1fms", ms)
}

// benchSetting says what a trial was about.
func benchSetting(r trial.Setting) string {
	how := "each with its own connection over TLS"
	if r.Shared > 0 {
		how = fmt.Sprintf("on %s, unsecured", counted(r.Shared, "connection", "connections"))
	}
	seconds := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	return fmt.Sprintf("%d every %s, lease %s, %s", r.Agents, seconds(r.Interval), seconds(r.LeaseTTL), how)
}

func benchProcesses(t *output.Table, all []trial.Process) {
	for _, p := range all {
		t.Add("process "+p.Name, fmt.Sprintf("%.2f cores  %s (most %s)  %d descriptors", p.Cores, output.Bytes(p.Memory), output.Bytes(p.MostMemory), p.Descriptors))
	}
}

// writeBench writes the table, what went wrong, and the verdict if that is good: a bad one is an error.
func (s *Session) writeBench(t *output.Table, wrongly []string, troubles map[string]int, v trial.Verdict) error {
	if err := t.Write(s.screen(), s.wide()); err != nil {
		return err
	}
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(troubles)) {
		fmt.Fprintf(&b, "agents: %d times %s\n", troubles[what], output.OneLine(what))
	}
	for _, w := range wrongly {
		fmt.Fprintf(&b, "wrongly: %s\n", output.OneLine(w))
	}
	if v.Carries {
		b.WriteString(v.Text + "\n")
	}
	_, err := io.WriteString(s.env.Stdout, b.String())
	return err
}
