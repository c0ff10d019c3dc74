package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
)

const name = "leasehold-bench"

// Grammar is the command line.
type Grammar struct {
	Globals `embed:"" group:"Flags of every command:"`

	Agents   Agents   `cmd:"" help:"Measure how many agents one shard carries on this machine, and how soon it notices failures."`
	Failover Failover `cmd:"" help:"Kill the replica that serves all agents, and measure how soon another serves them."`
	Storm    Storm    `cmd:"" help:"Lose many agents at once, and check that nothing is replaced and no other agent is affected."`
	Readers  Readers  `cmd:"" help:"Have live pages read while a group rolls, and measure what they cost the replica and its agents."`
	Etcd     Etcd     `cmd:"" help:"Measure an etcd: renewals, transactions, watches, and how many agents it can carry."`
	Plan     Plan     `cmd:"" help:"Measure the planner alone, with a shard of any size in virtual time."`
	Compare  Compare  `cmd:"" help:"Compare Leasehold with agents that are etcd clients: what each costs, and which agents are declared dead during a pause."`
	Part     Part     `cmd:"" hidden:"" help:"A process that a bench starts."`
}

// Globals are the flags of every command. Endpoints has an environment variable of its own, so that
// a bench never picks up the etcd that an operator works with.
type Globals struct {
	Endpoints []string         `help:"The etcd to measure (default: the bench starts its own)." env:"LEASEHOLD_BENCH_ENDPOINTS" placeholder:"HOST:PORT"`
	CACert    string           `name:"cacert" help:"Certificate authority that issued etcd's certificate." env:"LEASEHOLD_CACERT" type:"path" placeholder:"FILE"`
	Cert      string           `help:"Certificate to show to etcd." env:"LEASEHOLD_CERT" type:"path" placeholder:"FILE"`
	Key       string           `help:"Key of that certificate." env:"LEASEHOLD_KEY" type:"path" placeholder:"FILE"`
	User      string           `help:"etcd user, with its password." env:"LEASEHOLD_USER" placeholder:"NAME:PASSWORD"`
	Output    string           `short:"o" help:"Output format: ${enum}." enum:"table,wide,json,yaml" default:"table" placeholder:"FORMAT"`
	NoColor   bool             `help:"No colours (also with NO_COLOR or TERM=dumb)."`
	Timeout   time.Duration    `help:"How long to wait for an etcd that is named (default: ${default})." default:"5s" placeholder:"DURATION"`
	Version   kong.VersionFlag `help:"Show the version and exit."`
}

// Env holds what a bench needs from its process. All fields are required, except Columns and
// Colour.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Interactive reports whether a person reads the output.
	StdoutTerminal, StderrTerminal bool
	// Colour says whether a terminal shows colours.
	Colour bool
	// Columns is the width of the terminal at Stdout; 0: unknown.
	Columns int

	Now      func() time.Time
	RandomID func() string
	Version  string

	// Open opens the store. The returned function closes it.
	Open func(context.Context, program.Connection) (store.Store, func() error, error)
}

// Run runs the command line, writes the outcome to env.Stderr, and returns the exit code. When ctx
// ends it stops as after Ctrl-C.
func Run(ctx context.Context, env Env, args []string) program.Code {
	var g Grammar
	inv := &Invocation{env: env, flags: &g.Globals}
	exited := false
	parser, err := kong.New(&g,
		kong.Name(name),
		kong.Description("Measures how many agents a machine, an etcd or Leasehold's planner can carry."),
		kong.Vars{"version": name + " " + env.Version},
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(func(int) { exited = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return report(ctx, inv.aside(), fmt.Errorf("build command line: %w", err))
	}
	parsed, err := parser.Parse(args)
	if exited { // help or the version was shown
		return program.Done
	}
	if err != nil {
		return report(ctx, inv.aside(), err)
	}
	if g.Timeout <= 0 {
		return report(ctx, inv.aside(), program.Fail(program.Usage, name+" --help", "--timeout: %s: must be more than 0",
			g.Timeout))
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.Bind(inv)
	return report(ctx, inv.aside(), parsed.Run())
}

// report writes how a bench ended, and returns the exit code.
func report(ctx context.Context, to output.Screen, err error) program.Code {
	var f *program.Failure
	var parse *kong.ParseError
	switch {
	case err == nil:
		return program.Done
	case errors.As(err, &f) && f.Code == program.Interrupted:
	case ctx.Err() != nil:
		return program.Interrupted
	case errors.As(err, &f):
	case errors.As(err, &parse):
		f = program.Fail(program.Usage, program.HelpCommand(name, parse), "%s", parse)
	default:
		f = program.Fail(program.Failed, "", "%s", program.Joined(err))
	}
	return f.Show(to)
}
