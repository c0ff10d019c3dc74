package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/leasehold/leasehold/cmd/agentcmd"
	"github.com/leasehold/leasehold/cmd/manual"
	"github.com/leasehold/leasehold/cmd/supervised"
)

// version is set when a release is built.
var version = "dev"

type grammar struct {
	Run      agentcmd.Cmd      `cmd:"" default:"withargs" help:"Run the agent until it is terminated. This is the default command."`
	Evacuate agentcmd.Evacuate `cmd:"" help:"Evacuate this machine: its instance is replaced elsewhere first, then drained. No failure is counted."`

	Man man `cmd:"" hidden:"" help:"Print the manual page."`

	LogLevel slog.Level       `help:"Log level: debug, info, warn or error." default:"info" env:"LEASEHOLD_LOG_LEVEL"`
	Version  kong.VersionFlag `help:"Print the version and exit."`
}

// man prints the manual page, which packages are built with.
type man struct{}

// Run prints it.
func (man) Run(parsed *kong.Context) error {
	return manual.Write(os.Stdout, parsed.Model, version)
}

// Exit codes, as for every Leasehold program.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	var g grammar
	code := -1
	parser, err := kong.New(&g,
		kong.Name("leasehold-agent"),
		kong.Description("Joins this machine to its shard, reports its health and runs its workload."),
		kong.Vars{"version": version},
		kong.Exit(func(c int) { code = c }),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	if code >= 0 {
		return code // --help or --version was shown
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\nnext: leasehold-agent --help\n", err)
		return exitUsage
	}
	if os.Getpid() == 1 && parsed.Command() == "run" {
		return agentcmd.First(args, agentcmd.NewLogger(os.Stderr, g.LogLevel))
	}
	if parsed.Command() != "run" {
		parsed.BindTo(os.Stderr, (*io.Writer)(nil))
		if err := parsed.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			return exitFailed
		}
		return 0
	}
	ctx, stop := supervised.UntilTerminated(syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := g.Run.Run(ctx, agentcmd.NewLogger(os.Stderr, g.LogLevel), agentcmd.Version(version)); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return exitFailed
	}
	return 0
}
