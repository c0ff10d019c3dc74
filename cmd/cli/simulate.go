package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/cmd/scenario"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Simulate is the command simulate.
type Simulate struct {
	File          []string      `short:"f" sep:"none" help:"File with groups, one in each YAML document; - is standard input. May be given several times." placeholder:"FILE"`
	Scenario      string        `help:"Scenario file (default: the group starts, and each kind of failure happens once)." placeholder:"FILE"`
	Seed          *uint64       `help:"Seed of the random numbers (default: the scenario's, else 1)." placeholder:"N"`
	For           time.Duration `help:"Length of the simulation (default: the scenario's, else 1h)." placeholder:"DURATION"`
	Runs          int           `help:"Run with this many seeds, starting at --seed, and print a summary." default:"1" placeholder:"N"`
	All           bool          `help:"Show every step instead of summarizing repeated ones."`
	Summary       bool          `help:"Show only the result, without the timeline."`
	PrintScenario bool          `help:"Print the default scenario and exit."`
}

const (
	maxRuns = 10_000
	// garbagePercent makes garbage collection rarer than by default: a simulated shard is small
	// compared with the garbage of each plan.
	garbagePercent = 1000

	scenarioPage = "correct the file; docs/simulate.md describes scenarios"
)

// Run plays a scenario with the groups of the files in virtual time, and prints the result.
func (c *Simulate) Run(ctx context.Context, inv *Invocation) error {
	if c.PrintScenario {
		_, err := io.WriteString(inv.env.Stdout, scenario.DefaultText)
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	sc, err := c.read(inv)
	if err != nil {
		return err
	}
	if c.For > 0 {
		if n := sc.Until(c.For); n > 0 {
			inv.warn("%s after --for %s: not simulated", counted(n, "event is", "events are"), c.For)
		}
	}
	if c.Seed != nil {
		sc.Seed = *c.Seed
	}
	defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent))
	if c.Runs > 1 {
		return c.runs(ctx, inv, sc)
	}
	shown := inv.newProgress(sc.Length)
	res := sc.Play(ctx, shown.at)
	shown.end()
	switch {
	case c.Summary:
		res.Timeline = nil
	case !c.All:
		res.Timeline = scenario.Fold(res.Timeline)
	}
	done, err := inv.records(res)
	if !done {
		err = c.show(inv, res)
	}
	if err != nil {
		return err
	}
	return c.outcome(res)
}

func (c *Simulate) check() error {
	const help = "leasehold simulate --help"
	switch {
	case len(c.File) == 0:
		return failure(Usage, "leasehold simulate -f FILE", "no group file given")
	case c.Runs < 1 || c.Runs > maxRuns:
		return failure(Usage, help, "--runs: %d: must be 1 to %d", c.Runs, maxRuns)
	case c.For < 0:
		return failure(Usage, help, "--for: %s: must not be negative", c.For)
	case c.All && (c.Runs > 1 || c.Summary):
		return failure(Usage, "leave out --all", "--all shows the steps of one run; --runs and --summary show no steps")
	default:
		return nil
	}
}

// read reads the groups and the scenario.
func (c *Simulate) read(inv *Invocation) (*scenario.Scenario, error) {
	named := Files{Files: c.File}
	files, err := inv.parseFiles(named)
	if err != nil {
		return nil, err
	}
	entries, err := judgeFiles(named, files, nil)
	if err != nil {
		return nil, wrongFile(err, "correct the file; docs/group-file.md describes its fields")
	}
	setting := scenario.Setting{File: func(name string) ([]store.Group, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(c.Scenario), name)
		}
		return groupsOf(name)
	}}
	for _, e := range entries {
		setting.Groups = append(setting.Groups, e.Group)
	}
	if c.Scenario == "" {
		sc, err := scenario.Default(setting)
		return sc, wrongFile(err, scenarioPage)
	}
	f, err := os.Open(c.Scenario)
	if err != nil {
		return nil, unreadableScenario(c.Scenario, err)
	}
	sc, err := scenario.Read(c.Scenario, f, setting)
	_ = f.Close() // it was only read
	var problems yamlfile.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, unreadableScenario(c.Scenario, err)
	}
	return sc, wrongFile(err, scenarioPage)
}

// groupsOf reads the groups in a file that the scenario applies.
func groupsOf(name string) ([]store.Group, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, bare(err)
	}
	groups, err := groupfile.Read(name, f)
	_ = f.Close() // it was only read
	return groups, err
}

// bare returns an error without the name of the file, which the message has already.
func bare(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func unreadableScenario(name string, err error) error {
	return failure(Usage, "give a readable file; leasehold simulate --print-scenario prints an example",
		"--scenario %s: %s", name, bare(err))
}

// wrongFile returns an invalid file. It has another exit code than a result of the simulation.
func wrongFile(err error, next string) error {
	var problems yamlfile.Problems
	if errors.As(err, &problems) {
		return &misspelt{Problems: problems, next: next, code: Usage}
	}
	return err
}

// outcome returns an error unless everything is as expected.
func (c *Simulate) outcome(res *scenario.Result) error {
	next := ""
	if !c.All {
		next = c.command(res.Seed) + " --all, which shows every step"
	}
	switch {
	case res.Cut:
		return failure(Interrupted, "run it again, for less time with --for",
			"interrupted after %s of virtual time", res.Length)
	case len(res.Broken) > 0:
		return failure(Failed, next, "a safety rule was violated, which is a bug: %s", res.Broken[0])
	case !res.Met:
		return failure(Failed, next, "not met: %s", missed(res))
	default:
		return nil
	}
}

// missed returns the expectations that were not met.
func missed(res *scenario.Result) string {
	text := ""
	for _, k := range res.Checks {
		if k.Met {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += k.Name
	}
	return text
}

// command returns the command that repeats a run.
func (c *Simulate) command(seed uint64) string {
	text := "leasehold simulate " + Files{Files: c.File}.flags()
	if c.Scenario != "" {
		text += " --scenario " + reason.ShellWord(c.Scenario)
	}
	if c.For > 0 {
		text += " --for " + c.For.String()
	}
	return text + fmt.Sprintf(" --seed %d", seed)
}
