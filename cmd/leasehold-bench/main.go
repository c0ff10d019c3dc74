// Command leasehold-bench measures what a machine, an etcd or the planner can carry. It is separate
// from leasehold, so that the operator's program links no load generators. The commands are in
// cmd/bench.
package main

import (
	"crypto/rand"
	"os"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/bench"
	"github.com/leasehold/leasehold/cmd/program"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(int(run()))
}

func run() program.Code {
	ctx, stop := program.UntilInterrupted()
	defer stop()
	return bench.Run(ctx, bench.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		StdoutTerminal: program.IsTerminal(os.Stdout), StderrTerminal: program.IsTerminal(os.Stderr),
		Colour:   os.Getenv("NO_COLOR") == "",
		Columns:  program.Columns(os.Stdout),
		Now:      time.Now,
		RandomID: func() string { return strings.ToLower(rand.Text()) },
		Version:  version,
		Open:     program.OpenEtcd,
	}, os.Args[1:])
}
