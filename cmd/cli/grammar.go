package cli

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/leasehold/leasehold/cmd/server"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/keyfile"
	"github.com/leasehold/leasehold/coordinator/pki"
)

// Grammar is the command line.
type Grammar struct {
	Globals `embed:"" group:"Flags of every command:"`

	Status   Status    `cmd:"" help:"Show the shard: leader, groups, problems and what to do about them."`
	Top      Top       `cmd:"" help:"Show the shard live in the terminal: groups, instances, and the reasons for their states."`
	Apply    Apply     `cmd:"" help:"Apply a directory of groups and settings to the shard, all or nothing."`
	Group    Groups    `cmd:"" help:"Groups: the desired state."`
	Instance Instances `cmd:"" help:"Instances: the machines that exist."`
	Events   Journal   `cmd:"" help:"Show the journal: each decision, its rule and its reason; or export it."`
	Explain  Explain   `cmd:"" help:"Explain the state of an instance or a group: what happened, why, and what is blocked; or show the text of a rule."`
	Report   Report    `cmd:"" help:"Report how well the groups were kept: availability, causes of lost time, and how soon failures were repaired."`
	Init     Init      `cmd:"" help:"Create the shard, once, before its first coordinator starts."`
	Backup   Backup    `cmd:"" help:"Write a backup of the shard to a file."`
	Restore  Restore   `cmd:"" help:"Restore a shard from a backup, on hold, into an etcd that does not hold it."`
	Repair   Repair    `cmd:"" help:"Show lost and unreadable records, and restore them from etcd's history."`
	Recover  Recover   `cmd:"" help:"Rebuild a shard whose records cannot be restored: the last resort."`
	Hold     Hold      `cmd:"" help:"Put the shard on hold: nothing is created or deleted."`
	Release  Release   `cmd:"" help:"End the hold."`
	Freeze   Freeze    `cmd:"" help:"Freeze the shard for a while: no roll, expiry, rebalance or scale-down begins."`
	Evacuate Evacuate  `cmd:"" help:"Evacuate a zone: its instances are replaced elsewhere, and no new ones are created there."`
	Drill    Drills    `cmd:"" help:"Drills: failures on purpose, with each promise and what happened."`
	Simulate Simulate  `cmd:"" help:"Simulate groups in virtual time, without etcd or a provider."`
	Replay   Replay    `cmd:"" help:"Play what happened in the past against other groups: what it would have been with their budgets and targets."`
	Bench    Bench     `cmd:"" hidden:"" passthrough:"" help:"Explain that benchmarks are in leasehold-bench."`
	Provider Providers `cmd:"" help:"Providers: make and remove the machines."`
	Secret   Secrets   `cmd:"" help:"Secrets: encrypted values for workloads."`
	Webhook  Webhooks  `cmd:"" help:"Webhooks: receivers of decisions."`
	Config   Config    `cmd:"" help:"Configuration: static groups and settings of the shard, and settings of this program."`
	Auth     Auths     `cmd:"" help:"Access control: the shard's users and roles in etcd."`
	PKI      PKIs      `cmd:"" name:"pki" help:"Certificates: the shard's certificate authorities and their certificates."`
	Upgrade  Upgrades  `cmd:"" help:"Upgrades of Leasehold itself."`
	Version  Version   `cmd:"" help:"Show the version of this program."`

	Dev         services.Dev         `cmd:"" help:"Run everything on this machine: etcd, coordinator and a demo group."`
	Server      Servers              `cmd:"" help:"Run a host of a cluster: an etcd member and a replica of the coordinator."`
	Coordinator services.Coordinator `cmd:"" help:"Run one replica of a shard's coordinator."`
	Agent       services.Agent       `cmd:"" help:"Run the agent of one machine."`
	DemoWeb     services.DemoWeb     `cmd:"" hidden:"" help:"The workload of the demo group."`

	Completion Completion `cmd:"" help:"Print the completion script for bash, zsh or fish."`
	Man        Manual     `cmd:"" hidden:"" help:"Print the manual page."`
}

// Webhooks are the commands about webhooks.
type Webhooks struct {
	List WebhookList `cmd:"" help:"List the webhooks: how far their deliveries have come, and which deliveries failed."`
	Test WebhookTest `cmd:"" help:"Send a test event, as the coordinator would."`
}

// Journal are the commands about the journal.
type Journal struct {
	List   Events       `cmd:"" default:"withargs" help:"Show the journal, the oldest entry first. The word list may be left out."`
	Export EventsExport `cmd:"" help:"Write what is known of a time span to standard output, as a file for report and replay."`
}

// Groups are the commands about groups.
type Groups struct {
	Apply         GroupApply         `cmd:"" help:"Create or change the groups in a file."`
	Diff          GroupDiff          `cmd:"" help:"Show how a file differs from the stored groups."`
	List          GroupList          `cmd:"" help:"List the groups."`
	Show          GroupShow          `cmd:"" help:"Show one group: its spec and its status."`
	Scale         GroupScale         `cmd:"" help:"Change the size of a group."`
	Edit          GroupEdit          `cmd:"" help:"Change a group in an editor."`
	Pause         GroupPause         `cmd:"" help:"Pause a group: no instance is created, healed or deleted."`
	Resume        GroupResume        `cmd:"" help:"End a pause."`
	Stop          GroupStop          `cmd:"" help:"Drain and delete all instances of a group; its size is kept."`
	Start         GroupStart         `cmd:"" help:"Start a group that was stopped, or applied with --no-start."`
	Restart       GroupRestart       `cmd:"" help:"Restart all instances of a group within its budgets."`
	Promote       GroupPromote       `cmd:"" help:"Let a roll continue beyond its canaries."`
	Retry         GroupRetry         `cmd:"" help:"Retry slots that are backing off or were given up, and continue a stopped roll or upgrade of agents."`
	Rollback      GroupRollback      `cmd:"" help:"Restore the template with which the whole group was last healthy."`
	History       GroupHistory       `cmd:"" help:"Show earlier specs of a group."`
	OverrideStorm GroupOverrideStorm `cmd:"" help:"End a storm by hand: lost instances are replaced again."`
	Delete        GroupDelete        `cmd:"" help:"Delete a group and all its instances."`
}

// Instances are the commands about instances.
type Instances struct {
	List      InstanceList      `cmd:"" help:"List the instances."`
	Show      InstanceShow      `cmd:"" help:"Show one instance: its record, session and last report."`
	Replace   InstanceReplace   `cmd:"" help:"Create a replacement, then remove the instance."`
	Restart   InstanceRestart   `cmd:"" help:"Restart the machine in place."`
	Drain     InstanceDrain     `cmd:"" help:"Drain the instance and remove it; its slot is filled again."`
	Drained   InstanceDrained   `cmd:"" help:"Declare that an instance has finished draining."`
	Protect   InstanceProtect   `cmd:"" help:"Protect the instance from scale-down, age limits and rolls."`
	Create    InstanceCreate    `cmd:"" help:"Create an instance on demand, in addition to the group's size."`
	Bootstrap InstanceBootstrap `cmd:"" help:"Print a script that joins a machine you set up by hand to a group."`
	Adopt     InstanceAdopt     `cmd:"" help:"Adopt a machine that has no record."`
	Logs      InstanceLogs      `cmd:"" help:"Show how the workload of an instance exited, and its last output."`
	Delete    InstanceDelete    `cmd:"" help:"Remove the instance now; its slot is filled again."`
}

// Run runs the command line, writes the outcome to env.Stderr, and returns the exit code. When ctx
// ends it stops as after Ctrl-C.
func Run(ctx context.Context, env Env, args []string) Code {
	var g Grammar
	env.Stdin = &input{ctx, env.Stdin}
	inv := &Invocation{env: env, flags: &g.Globals}
	defer inv.end()
	exited := false
	file := &settingsFile{usual: env.Settings, local: env.localSettings()}
	parser, err := newParser(&g, env, func(int) { exited = true }, kong.Resolvers(file))
	if err != nil {
		return report(ctx, inv.aside(), fmt.Errorf("build command line: %w", err))
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	if exited { // help was shown
		return Done
	}
	if err != nil {
		return report(ctx, inv.aside(), misparsed(err, args))
	}
	if !isName(g.Shard) {
		return report(ctx, inv.aside(), failure(Usage, "leasehold --help", "--shard: %q: must be a name without /",
			g.Shard))
	}
	if g.Timeout < 0 {
		return report(ctx, inv.aside(), failure(Usage, "leasehold --help", "--timeout: %s: must not be negative",
			g.Timeout))
	}
	inv.args, inv.settings, inv.command = args, settingsOf(parsed, file), spoken(parsed)
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.Bind(inv, inv.host())
	return report(ctx, inv.aside(), parsed.Run())
}

// spoken returns the name of a command without its arguments.
func spoken(parsed *kong.Context) string {
	command, _, _ := strings.Cut(parsed.Command(), " <")
	return command
}

// Complete answers a shell's request for completions, and reports whether there was one.
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
		kong.Vars{
			"request_timeout": requestTimeout.String(), "wait_timeout": waitTimeout.String(),
			"version": "leasehold " + env.Version,
			"pki_dir": pki.DefaultDir, "server_dir": server.DefaultDir, "secrets_key": keyfile.Usual,
		},
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.KindMapper(reflect.Uint64, kong.MapperFunc(decodeUint64)),
	)...)
}

// decodeUint64 parses a flag's value. kong's own parser takes -1 for a flag, and says so.
func decodeUint64(ctx *kong.DecodeContext, target reflect.Value) error {
	text := ctx.Scan.Pop().String()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: must be a whole number, 0 to %d", text, uint64(math.MaxUint64))
	}
	target.SetUint(n)
	return nil
}
