package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/tests/programs"
)

func main() {
	os.Exit(start())
}

// start is the role of this process: the program that a person starts, or one of those that it
// starts in turn.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if code, mine := serveRole(ctx); mine {
		return code
	}
	cfg, err := readFlags(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	res, err := measure(ctx, cfg, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	if cfg.JSON {
		err = res.writeJSON(os.Stdout)
	} else {
		err = res.writeTable(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	if !res.Met {
		return 1
	}
	return 0
}

// config holds the options of a run. It is passed to the process that does the run as JSON.
type config struct {
	Trials   int           `json:"trials"` // of each scenario
	Pace     time.Duration `json:"pace"`   // between two trials of a scenario
	Interval time.Duration `json:"interval"`
	Replicas int           `json:"replicas"`
	Only     []string      `json:"only"`
	JSON     bool          `json:"-"`
	Keep     bool          `json:"-"`   // directory of all logs
	Dir      string        `json:"dir"` // of the run; holds the programs
}

// defaultInterval is report.interval where a group does not say.
const defaultInterval = 5 * time.Second

// leaseTTL is what a lease lasts if a group does not say.
func (c config) leaseTTL() time.Duration { return 3*c.Interval + 2*time.Second }

func readFlags(args []string, stderr io.Writer) (config, error) {
	c := config{}
	output, only := "", ""
	f := flag.NewFlagSet("detect", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&c.Trials, "trials", 50, "trials of each scenario, 1 to 1000")
	f.DurationVar(&c.Pace, "pace", 4*time.Second, "time between two trials of a scenario, at least 1s")
	f.DurationVar(&c.Interval, "interval", defaultInterval,
		"report interval of the agents, in whole seconds; leases last three times that and 2s")
	f.IntVar(&c.Replicas, "replicas", 1, "replicas of the coordinator, 1 to 5")
	f.StringVar(&only, "only", "", "scenarios to run, by name, separated by commas; all if empty")
	f.BoolVar(&c.Keep, "keep", false, "keep the directory with the logs and machines, and say where it is")
	f.StringVar(&output, "o", "table", "table or json, on standard output")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if only != "" {
		c.Only = strings.Split(only, ",")
	}
	c.JSON = output == "json"
	var err error
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case c.Trials < 1 || c.Trials > 1000:
		err = fmt.Errorf("-trials: %d: must be 1 to 1000", c.Trials)
	case c.Pace < time.Second:
		err = fmt.Errorf("-pace: %s: must be at least 1s, or so many losses at once are a storm", c.Pace)
	case c.Interval < time.Second || c.Interval > time.Minute || c.Interval%time.Second != 0:
		err = fmt.Errorf("-interval: %s: must be whole seconds, 1s to 1m", c.Interval)
	case c.Replicas < 1 || c.Replicas > 5:
		err = fmt.Errorf("-replicas: %d: must be 1 to 5", c.Replicas)
	case output != "table" && output != "json":
		err = fmt.Errorf("-o: %q: must be table or json", output)
	default:
		_, err = chosen(c.Only)
	}
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
	}
	return c, err
}

// measure builds the programs, runs the bench in namespaces, and prints the figures.
func measure(ctx context.Context, cfg config, progress io.Writer) (res result, err error) {
	for _, tool := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			return res, fmt.Errorf("no %s on the PATH: run scripts/test-needs.sh, or install iproute2 and util-linux",
				tool)
		}
	}
	if cfg.Dir, err = os.MkdirTemp("", "leasehold-detect-"); err != nil {
		return res, err
	}
	defer func() {
		if cfg.Keep || err != nil && ctx.Err() == nil {
			fmt.Fprintln(progress, "logs and machines are kept in", cfg.Dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(cfg.Dir))
	}()
	fmt.Fprintln(progress, "building the programs")
	if err := programs.Build(cfg.Dir, programs.Leasehold, programs.Agent, programs.DetectWeb); err != nil {
		return res, err
	}
	if err := runApart(ctx, cfg, progress); err != nil {
		return res, err
	}
	return readResult(filepath.Join(cfg.Dir, resultFile))
}
