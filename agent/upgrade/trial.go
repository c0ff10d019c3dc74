package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/agent/gated"
)

// EnvTrial names the file that an agent on trial creates once it is acknowledged. It then leaves as
// for a restart, keeps its workload running, and exits with 0.
const EnvTrial = "LEASEHOLD_UPGRADE_TRIAL"

// LeaveTime is how long an acknowledged agent may take to leave, if its lease allows it.
const LeaveTime = 30 * time.Second

const (
	defaultWithin = 2 * time.Minute
	lookEvery     = 50 * time.Millisecond
	killTime      = 5 * time.Second
)

// Trial is a program to be tried. The agent returns it as the error with which it ends.
type Trial struct {
	Within time.Duration // time until it must be acknowledged; 0: 2m
	By     time.Time     // latest time for that, however long the agent took to end; zero: none
	Leave  time.Duration // time to leave after that; 0: 30s
	// End is the time for it to end in order when this process is terminated: the workload may have
	// to end first. 0: 30s.
	End time.Duration
	// Unfinished means that the agent that ended for the trial still does something, or that the
	// disk lacks what the next agent needs.
	Unfinished bool
	// Lease is acted on unless the version on trial has renewed it; nil: its loss has no
	// consequence.
	Lease *Lease

	place *Place
	state state
	asked time.Time // when the program was asked to end
	guard guard
}

// errNotTried means that the disk used up the version's time. That is not the version's fault, so
// its offer stays valid.
var errNotTried = errors.New("too little time is left")

func (t *Trial) Error() string {
	return "the agent ends for the trial of version " + t.state.Trial.Version
}

// Run runs the program as a child until it is judged, and returns the program to run from now on;
// "" is this one. When ctx ends, the child receives SIGTERM, and the error is ctx's. beat is called
// regularly as a sign of life.
func (t *Trial) Run(ctx context.Context, args, env []string, beat func()) (string, error) {
	runtime.LockOSThread() // the kernel kills the child with this thread
	defer runtime.UnlockOSThread()
	p, s := t.place, t.state
	p.Log.Info("new version of the agent is tried", "version", s.Trial.Version)
	t.guard.begin(t.Lease)
	err := t.try(ctx, args, env, beat)
	after, next := s.won(), p.path(s.Trial.Program.File)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err() // the next start settles it
	case errors.Is(err, errNotTried):
		p.Log.Warn("new version of the agent is not tried now: the disk is slow", "version", s.Trial.Version)
		after, next = s.untried(), ""
	case err != nil:
		p.Log.Warn("new version of the agent was taken back", "version", s.Trial.Version, "why", err)
		after, next = s.lost(err.Error()), ""
	default:
		p.Log.Info("new version of the agent is acknowledged", "version", s.Trial.Version)
	}
	return next, onDisk(ctx, beat, func() error {
		if p.save(after) || next == "" { // if neither is done, the next start decides the same
			_ = os.Remove(p.path(ackFile))
		}
		return nil
	})
}

// try returns why the program must not stay; nil if it may.
func (t *Trial) try(ctx context.Context, args, env []string, beat func()) error {
	if t.Unfinished {
		return errNotTried
	}
	err := onDisk(ctx, beat, func() error { return t.place.verify(&t.state.Trial.Program) })
	if err != nil {
		return err
	}
	return t.judge(ctx, args, env, beat)
}

// onDisk runs what a hanging disk can block, and gives up when ctx ends.
func onDisk(ctx context.Context, beat func(), do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		beat()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Undo takes back an acknowledged trial whose program could not be run after all.
func (t *Trial) Undo(why error) { t.place.save(t.state.lost(why.Error())) }

func (t *Trial) end() time.Duration {
	if t.End <= 0 {
		return LeaveTime
	}
	return t.End
}

// LastStop returns until when what the terminated program left running may end in order. The
// program used up that time itself unless it ended early.
func (t *Trial) LastStop() time.Time {
	asked := t.asked
	if asked.IsZero() {
		asked = time.Now()
	}
	return asked.Add(t.end() + LeaveTime)
}

// judge returns why the program must not stay; nil if it may.
func (t *Trial) judge(ctx context.Context, args, env []string, beat func()) error {
	p := t.place
	ack := p.path(ackFile)
	within, err := t.timeLeft()
	if err != nil {
		return err
	}
	cmd := exec.Command(p.path(t.state.Trial.Program.File), args...)
	cmd.Env = append(WithoutTrial(env), EnvTrial+"="+ack)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	process, err := gated.Start(cmd)
	if err != nil {
		return notStarted(err)
	}
	judging, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	started := make(chan error, 1)
	go func() { started <- process.LetGo(judging) }() // the disk may block it
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	leave := t.Leave
	if leave <= 0 {
		leave = LeaveTime
	}
	late, leaving, missing := time.NewTimer(within), false, time.Now()
	defer late.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	asked := ctx.Done()
	for {
		beat()
		select {
		case err := <-ended:
			if why := <-started; why != nil {
				return notStarted(why)
			}
			return failure(err, ack)
		case <-asked:
			asked, t.asked = nil, time.Now()
			p.Log.Info("ending the new version of the agent", "version", t.state.Trial.Version)
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if !leaving {
				late.Reset(t.end())
				t.guard.last() // it stops the workload, and must not be disturbed before its deadline
			}
		case now := <-look.C:
			if leaving {
				continue
			}
			if _, err := os.Stat(ack); err != nil {
				missing = now
				continue
			}
			leaving = true // it keeps the workload running, whatever this process is asked to do
			late.Reset(leave)
			t.guard.renewed(missing, leave)
		case <-late.C:
			kill(cmd, ended)
			if leaving {
				return fmt.Errorf("it was acknowledged, and did not leave within %s", leave)
			}
			return fmt.Errorf("it was not acknowledged within %s", within)
		}
	}
}

// timeLeft returns the time until the program must be acknowledged, or errNotTried if too little of
// it is left.
func (t *Trial) timeLeft() (time.Duration, error) {
	within := t.Within
	if within <= 0 {
		within = defaultWithin
	}
	if t.By.IsZero() {
		return within, nil
	}
	left := time.Until(t.By)
	if left < within/2 {
		return 0, errNotTried
	}
	return min(within, left), nil
}

// failure returns why a program that has ended must not replace this one; nil if it may. err is how
// it ended.
func failure(err error, ack string) error {
	if err != nil {
		return fmt.Errorf("it ended too early: %w", err)
	}
	if _, err := os.Stat(ack); err != nil {
		return errors.New("it ended before it was acknowledged")
	}
	return nil
}

// kill kills a program. It does not wait for one that is stuck in the kernel.
func kill(cmd *exec.Cmd, ended <-chan error) {
	_ = cmd.Process.Kill()
	select {
	case <-ended: //nolint:errcheck // why it ended is known
	case <-time.After(killTime):
	}
}

func notStarted(why error) error { return fmt.Errorf("it could not be started: %w", why) }

// Acknowledged notifies the process that judges this agent's trial.
func Acknowledged(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("report the acknowledgement: %w", err)
	}
	return f.Close()
}

// WithoutTrial removes EnvTrial from an environment.
func WithoutTrial(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, EnvTrial+"=") })
}

// Arguments returns the arguments for running another of this agent's programs. This program may be
// leasehold, which includes an agent; the others are leasehold-agent.
func Arguments(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	args := argv[1:]
	if filepath.Base(argv[0]) != "leasehold-agent" {
		if at := slices.Index(args, "agent"); at >= 0 {
			return append([]string{"run"}, args[at+1:]...)
		}
	}
	return slices.Clone(args)
}
