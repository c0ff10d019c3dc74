package cli

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/coordinator/keyfile"
)

// Grammar is the command line.
type Grammar struct {
	Globals `embed:"" group:"Flags of every command:"`

	Status   Status    `cmd:"" help:"Show the shard: leader, groups, problems and what to do about them."`
	Group    Groups    `cmd:"" help:"Groups: what is wanted."`
	Instance Instances `cmd:"" help:"Instances: the machines that there are."`
	Events   Events    `cmd:"" help:"Show what was decided, by which rule, and why."`
	Explain  Explain   `cmd:"" help:"Say what happened to an instance or goes on in a group, why, and why not yet; or what a rule says."`
	Init     Init      `cmd:"" help:"Create the shard: once, before its first coordinator."`
	Repair   Repair    `cmd:"" help:"Show which records were lost or cannot be read, and put them back from etcd's history."`
	Recover  Recover   `cmd:"" help:"Bring a shard back whose records are lost for good: the last resort."`
	Hold     Hold      `cmd:"" help:"Put the shard on hold: nothing is created or deleted."`
	Release  Release   `cmd:"" help:"End the hold."`
	Evacuate Evacuate  `cmd:"" help:"Empty a zone: its instances are replaced elsewhere, and none is made there."`
	Simulate Simulate  `cmd:"" help:"See what would happen to groups, in imagined time: nothing is asked of etcd."`
	Bench    Bench     `cmd:"" hidden:"" passthrough:"" help:"Say that benches are in leasehold-bench."`
	Secret   Secrets   `cmd:"" help:"Secrets: values that workloads get and nobody else sees."`
	Config   Config    `cmd:"" help:"What holds for the whole shard: its file of static groups, its settings, and those of this program."`
	Auth     Auths     `cmd:"" help:"Who may do what: etcd's users and roles for the shard."`
	PKI      PKIs      `cmd:"" name:"pki" help:"Certificates: the shard's authorities, and what they issue."`
	Version  Version   `cmd:"" help:"Show the version of this program."`

	Dev         services.Dev         `cmd:"" help:"Run everything on this machine: etcd, coordinator and a demo group."`
	Coordinator services.Coordinator `cmd:"" help:"Run one replica of a shard's coordinator."`
	Agent       services.Agent       `cmd:"" help:"Run the agent of one machine."`
	DemoWeb     services.DemoWeb     `cmd:"" hidden:"" help:"The workload of the demo group."`

	Completion Completion `cmd:"" help:"Print what makes bash, zsh or fish complete commands."`
}

// Groups are the commands about groups.
type Groups struct {
	Apply         GroupApply         `cmd:"" help:"Make groups as a file says."`
	Diff          GroupDiff          `cmd:"" help:"Show how a file differs from what is asked for now."`
	List          GroupList          `cmd:"" help:"List the groups."`
	Show          GroupShow          `cmd:"" help:"Show one group: what is wanted and what is."`
	Scale         GroupScale         `cmd:"" help:"Change how many instances are wanted."`
	Edit          GroupEdit          `cmd:"" help:"Change a group in an editor."`
	Pause         GroupPause         `cmd:"" help:"Create, heal and delete nothing in a group."`
	Resume        GroupResume        `cmd:"" help:"End a pause."`
	Stop          GroupStop          `cmd:"" help:"Drain and delete all instances of a group; its size is kept."`
	Start         GroupStart         `cmd:"" help:"Start a group that was stopped, or applied with --no-start."`
	Restart       GroupRestart       `cmd:"" help:"Relaunch all instances of a group, under its budgets."`
	Retry         GroupRetry         `cmd:"" help:"Try slots again that wait or were given up."`
	Rollback      GroupRollback      `cmd:"" help:"Put back what the instances were made from when the whole group was last healthy."`
	History       GroupHistory       `cmd:"" help:"Show the specs that were in force."`
	OverrideStorm GroupOverrideStorm `cmd:"" help:"Take a storm for over: replace again what is lost."`
	Delete        GroupDelete        `cmd:"" help:"Delete a group and all its instances."`
}

// Instances are the commands about instances.
type Instances struct {
	List    InstanceList    `cmd:"" help:"List the instances."`
	Show    InstanceShow    `cmd:"" help:"Show one instance: its record, its session and its last report."`
	Replace InstanceReplace `cmd:"" help:"Make a replacement first, then remove the instance."`
	Restart InstanceRestart `cmd:"" help:"Restart the machine in its place."`
	Drain   InstanceDrain   `cmd:"" help:"Let the instance finish its work and go; its slot is filled again."`
	Drained InstanceDrained `cmd:"" help:"Say that a draining instance has nothing left to wait for."`
	Protect InstanceProtect `cmd:"" help:"Keep the instance when the group shrinks, ages or rolls."`
	Create  InstanceCreate  `cmd:"" help:"Make an instance on demand, beside those that the group wants."`
	Adopt   InstanceAdopt   `cmd:"" help:"Take up a machine that has no record."`
	Logs    InstanceLogs    `cmd:"" help:"Show how the workload of an instance ended, and its last words."`
	Delete  InstanceDelete  `cmd:"" help:"Remove the instance now; its slot is filled again."`
}

// Run does what the arguments say, tells the operator on env.Stderr how it ended, and returns the exit code. When ctx ends
// it stops as after Ctrl-C.
func Run(ctx context.Context, env Env, args []string) Code {
	var g Grammar
	s := &Session{env: env, flags: &g.Globals}
	defer s.end()
	exited := false
	file := &settingsFile{usual: env.Settings, dev: env.devSettings()}
	parser, err := newParser(&g, env, func(int) { exited = true }, kong.Resolvers(file))
	if err != nil {
		return report(ctx, s.aside(), fmt.Errorf("build command line: %w", err))
	}
	parsed, err := parser.Parse(args)
	if exited { // help was shown
		return Done
	}
	if err != nil {
		return report(ctx, s.aside(), negativeSize(err, args))
	}
	if !isName(g.Shard) {
		return report(ctx, s.aside(), failure(Usage, "leasehold --help", "--shard: %q: must be a name without /", g.Shard))
	}
	if g.Timeout < 0 {
		return report(ctx, s.aside(), failure(Usage, "leasehold --help", "--timeout: %s: must not be negative", g.Timeout))
	}
	s.settings, s.command = settingsOf(parsed, file), spoken(parsed)
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.Bind(s, s.host())
	return report(ctx, s.aside(), parsed.Run())
}

// spoken is a command as one speaks of it: without its arguments.
func spoken(parsed *kong.Context) string {
	command, _, _ := strings.Cut(parsed.Command(), " <")
	return command
}

// Complete answers a shell that asks how a command line might go on, and says whether there was such a question.
func Complete(env Env) (answered bool, err error) {
	var g Grammar
	parser, err := newParser(&g, env, func(int) {})
	if err != nil {
		return false, fmt.Errorf("build command line: %w", err)
	}
	kongcompletion.Register(parser,
		kongcompletion.WithExitFunc(func(int) { answered = true }),
		kongcompletion.WithErrorHandler(func(e error) { err = e }))
	return answered, err
}

func newParser(g *Grammar, env Env, exit func(int), more ...kong.Option) (*kong.Kong, error) {
	return kong.New(g, append(more,
		kong.Name("leasehold"),
		kong.Description("Keeps groups of machines at the size and in the health that you asked for."),
		kong.Vars{"request_timeout": requestTimeout.String(), "wait_timeout": waitTimeout.String(), "pki_dir": authority.DefaultDir, "secrets_key": keyfile.Usual},
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.KindMapper(reflect.Uint64, kong.MapperFunc(decodeUint64)),
	)...)
}

// decodeUint64 reads a flag's value. kong's own reader takes -1 for a flag, and says so.
func decodeUint64(ctx *kong.DecodeContext, target reflect.Value) error {
	text := ctx.Scan.Pop().String()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: must be a whole number, 0 to %d", text, uint64(math.MaxUint64))
	}
	target.SetUint(n)
	return nil
}
