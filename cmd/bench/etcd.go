package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/capacity"
	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/cmd/bench/parts"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
)

// Etcd is the command etcd.
type Etcd struct {
	Interval time.Duration `help:"How often each agent reports, for the verdict (default: ${default})." default:"10s" placeholder:"DURATION"`
	Each     time.Duration `help:"How long each measurement lasts (default: ${default})." default:"2s" placeholder:"DURATION"`
	Agents   int           `help:"How many agents are registered, and then renewed (default: ${default})." default:"4000" placeholder:"N"`
	Pace     int           `help:"How many renewals per second are requested while their latency is measured (default: ${default})." default:"5000" placeholder:"N"`
	Records  int           `help:"How many records of 1 KiB are listed (default: ${default})." default:"20000" placeholder:"N"`
	UsedEtcd bool          `help:"Measure an etcd of --endpoints even if it holds keys: the load slows its other clients down."`
}

// watchPace is how many puts per second are made while a watch is open.
const watchPace = 500

// etcdResult is the JSON result.
type etcdResult struct {
	Etcd string `json:"etcd"` // "" for the bench's own
	*capacity.Result
	Interval string              `json:"interval"`
	Limits   []capacity.Limit    `json:"limits"`
	Carries  int                 `json:"carries_agents"`
	Slow     []capacity.Measured `json:"slow,omitempty"`
}

// Run measures an etcd: the bench's own, or the one that --endpoints names.
func (c *Etcd) Run(ctx context.Context, inv *Invocation) error {
	if err := c.check(inv); err != nil {
		return err
	}
	b, err := inv.benchedEtcd(ctx, c.UsedEtcd)
	if err != nil {
		return err
	}
	shown := inv.newQuietProgress()
	res, err := capacity.Run(ctx, capacity.Config{
		Prefix: store.KeysOf("bench-" + inv.env.RandomID()).Prefix(),
		Each:   c.Each, Agents: c.Agents, Pace: c.Pace, News: watchPace, Records: c.Records, Size: 1 << 10,
		TTL: time.Minute,
	}, capacity.Deps{
		Store: b.store, Watcher: b.watcher, Usage: b.usage(), Progress: func(what string, step, of int) {
			shown.tell(fmt.Sprintf("%d of %d:", step, of), what)
		},
	})
	shown.end()
	if err := b.end(err == nil || ctx.Err() != nil); err != nil {
		inv.warn("%s", err)
	}
	switch {
	case ctx.Err() != nil && err != nil && !errors.Is(err, context.Canceled):
		return program.Fail(program.Interrupted, b.cleanBy(), "interrupted: %s", program.Joined(err))
	case ctx.Err() != nil:
		return program.Fail(program.Interrupted, "", "interrupted: removing what was written")
	case err != nil:
		return program.Fail(program.Failed, b.next(), "%s", program.Joined(err))
	}
	full := etcdResult{
		Etcd: b.where, Result: res, Interval: c.Interval.String(), Limits: capacity.Limits(res, c.Interval),
		Slow: capacity.Slow(res),
	}
	full.Carries = twoDigits(full.Limits[0].Agents)
	if done, err := inv.records(full); done || err != nil {
		return err
	}
	return c.show(inv, full)
}

func (c *Etcd) check(inv *Invocation) error {
	const help = "leasehold-bench etcd --help"
	switch {
	case c.UsedEtcd && !inv.named():
		return noneNamed()
	case c.Interval < time.Second || c.Interval > 5*time.Minute:
		return program.Fail(program.Usage, help, "--interval: %s: must be 1s to 5m", c.Interval)
	case c.Each < 100*time.Millisecond || c.Each > time.Hour:
		return program.Fail(program.Usage, help, "--each: %s: must be 100ms to 1h", c.Each)
	case c.Agents < 1 || c.Agents > 1_000_000:
		return program.Fail(program.Usage, help, "--agents: %d: must be 1 to 1000000", c.Agents)
	case c.Pace < 1 || c.Pace > 1_000_000:
		return program.Fail(program.Usage, help, "--pace: %d: must be 1 to 1000000", c.Pace)
	case c.Records < 1 || c.Records > 1_000_000:
		return program.Fail(program.Usage, help, "--records: %d: must be 1 to 1000000", c.Records)
	default:
		return nil
	}
}

// show writes the table and the verdict.
func (c *Etcd) show(inv *Invocation, r etcdResult) error {
	t := output.Table{Columns: []output.Column{
		{Title: "WHAT"},
		{Title: "AT ONCE", Right: true},
		{Title: "PER SECOND", Right: true},
		{Title: "P50 ms", Right: true},
		{Title: "P99 ms", Right: true},
		{Title: "MAX ms", Right: true, Wide: true},
		{Title: "ETCD CPU µs", Right: true},
		{Title: "OWN CPU µs", Right: true, Wide: true},
	}}
	cpu := func(us float64) string {
		if us == 0 {
			return "-"
		}
		return strconv.FormatFloat(us, 'f', 0, 64)
	}
	ms := func(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
	for _, m := range r.Measured {
		t.Add(m.What, strconv.Itoa(m.AtOnce), output.Thousands(int(m.PerSecond)), ms(m.P50), ms(m.P99), ms(m.Most),
			cpu(m.CPU), cpu(m.OwnCPU))
	}
	if err := t.Write(inv.screen(), inv.wide()); err != nil {
		return err
	}
	scr := inv.screen()
	var b strings.Builder
	b.WriteString("\n")
	for _, l := range r.Limits {
		fmt.Fprintf(&b, "%s agents  %s: %s\n", output.Thousands(twoDigits(l.Agents)), l.By, l.Why)
	}
	fmt.Fprintf(&b, "\nThis etcd carries about %s agents that report every %s, limited by %s.\n",
		output.Thousands(r.Carries), r.Interval, r.Limits[0].By)
	for _, m := range r.Slow {
		fmt.Fprintf(&b, "%s 1 of 100 took longer than %s ms (%s): failures will be noticed late.\n",
			scr.Notice("But it is slow:"), ms(m.P99), m.What)
	}
	_, err := fmt.Fprint(scr.W, b.String())
	return err
}

// twoDigits rounds a number to its first two digits, because it is not more exact.
func twoDigits(n int) int {
	if n < 100 {
		return n
	}
	scale := int(math.Pow10(len(strconv.Itoa(n)) - 2))
	return n / scale * scale
}

// benchedEtcd is the etcd under measurement, with two connections to it.
type benchedEtcd struct {
	store, watcher store.Store
	where          string      // "": the bench's own
	part           *parts.Part // the bench's own, or nil
	dir            string
	closers        []func() error
}

// benchedEtcd opens the etcd of --endpoints, or starts one.
func (inv *Invocation) benchedEtcd(ctx context.Context, used bool) (*benchedEtcd, error) {
	if !inv.named() {
		return inv.ownEtcd(ctx)
	}
	b := &benchedEtcd{where: inv.where()}
	if err := inv.openBenched(ctx, b, ""); err != nil {
		return nil, err
	}
	if used {
		return b, nil
	}
	if err := inv.refuseUsed(ctx, b); err != nil {
		return nil, errors.Join(err, b.end(true))
	}
	return b, nil
}

// ownEtcd starts an etcd of the bench's own, and opens it.
func (inv *Invocation) ownEtcd(ctx context.Context) (*benchedEtcd, error) {
	b := &benchedEtcd{}
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(program.Fail(program.Failed,
			"see that there is room in "+os.TempDir()+", or measure another etcd with --endpoints", "%s",
			program.Joined(err)), b.end(false))
	}
	return b, inv.openBenched(ctx, b, b.part.Address)
}

// openBenched opens both connections. If that fails, it closes what it has opened.
func (inv *Invocation) openBenched(ctx context.Context, b *benchedEtcd, address string) error {
	for _, st := range []*store.Store{&b.store, &b.watcher} {
		opened, closer, err := inv.open(ctx, address, nil)
		if err != nil {
			return errors.Join(err, b.end(false))
		}
		*st = opened
		b.closers = append(b.closers, closer)
	}
	return nil
}

// start starts an etcd of the bench's own.
func (b *benchedEtcd) start(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp("", "leasehold-bench-"); err != nil {
		return err
	}
	b.part, err = parts.Start(ctx, parts.Spec{Name: "etcd", Dir: b.dir, Args: []string{"part", "etcd", "--dir", b.dir}})
	return err
}

// refuseUsed refuses an etcd that holds any key: other clients would suffer from the load.
func (inv *Invocation) refuseUsed(ctx context.Context, b *benchedEtcd) error {
	limited, cancel := context.WithTimeout(ctx, inv.flags.Timeout)
	defer cancel()
	count := func(prefix string) (int, error) {
		first, err := b.store.ListPart(limited, prefix, "", 1, 0)
		return len(first.KVs) + first.Behind, err
	}
	all, err := count("")
	ours := 0
	if err == nil {
		ours, err = count(store.Root)
	}
	const next = "start another etcd and name it, or leave --endpoints out and the bench starts its own; " +
		"--used-etcd measures this one all the same"
	switch {
	case errors.Is(err, store.ErrDenied):
		return program.Fail(program.Failed, "log in as root, with --user or --cert and --key",
			"see whether etcd at %s is in use: %s", b.where, program.Joined(err))
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return program.Fail(program.Unreachable, whatHelps(inv.connection(nil)),
			"see whether etcd at %s is in use: no answer in %s", b.where, inv.flags.Timeout)
	case err != nil:
		return program.Fail(program.Unreachable, whatHelps(inv.connection(nil)), "see whether etcd at %s is in use: %s",
			b.where, program.Joined(err))
	case ours > 0:
		return program.Fail(program.Conflict, next,
			"etcd at %s holds a shard of Leasehold: a bench could cost it leases", b.where)
	case all > 0:
		return program.Fail(program.Conflict, next, "etcd at %s is in use: it holds %s", b.where,
			output.Counted(all, "key", "keys"))
	default:
		return nil
	}
}

// usage reads what the bench's own etcd and this process use; nil for another's.
func (b *benchedEtcd) usage() func() (theirs, ours measure.Usage, err error) {
	if b.part == nil {
		return nil
	}
	return func() (theirs, ours measure.Usage, err error) {
		if theirs, err = measure.Read(b.part.PID()); err != nil {
			return theirs, ours, err
		}
		ours, err = measure.Read(os.Getpid())
		return theirs, ours, err
	}
}

// next returns what the operator can do after a failed measurement.
func (b *benchedEtcd) next() string {
	if b.part == nil {
		return "look at etcd's log; a smaller --pace and fewer --agents ask less of it"
	}
	return "look at " + b.part.Log() + "; a smaller --pace and fewer --agents ask less of it"
}

// cleanBy returns the command that removes what an interrupted bench could not.
func (b *benchedEtcd) cleanBy() string {
	if b.part != nil {
		return ""
	}
	return "etcdctl --endpoints " + strings.ReplaceAll(b.where, " ", "") + " del --prefix " + store.Root + "bench-"
}

// end closes and stops everything. It keeps the log of an etcd that failed.
func (b *benchedEtcd) end(well bool) error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c())
	}
	if b.part != nil {
		errs = append(errs, b.part.Stop())
	}
	if b.dir != "" && well {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	return errors.Join(errs...)
}
