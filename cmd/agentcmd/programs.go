package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/leasehold/leasehold/agent"
	"github.com/leasehold/leasehold/agent/release"
	"github.com/leasehold/leasehold/agent/upgrade"
	"github.com/leasehold/leasehold/cmd/supervised"
)

// programs are the programs to which this agent may be upgraded.
type programs struct {
	place *upgrade.Place
	trial string // file to create once this agent is acknowledged; "": it is not on trial
	log   *slog.Logger
}

// programsOf ends an upgrade that an earlier run left unfinished. It does not return if another
// program must run in place of this one. If ctx ends first, this one continues, to end in order.
func (c *Cmd) programsOf(ctx context.Context, stateDir string, version Version, log *slog.Logger) (programs, error) {
	keys, err := releaseKeys(c.ReleaseKey)
	if err != nil { // the workload must not suffer for it
		log.Error("no offered version will be installed, and none runs: the release keys cannot be read", "error", err)
		keys = release.Keys{}
	}
	boot, err := kernelBoot()
	if err != nil {
		log.Debug("starts of an agent are counted across boots", "error", err)
	}
	p := programs{
		place: &upgrade.Place{
			Dir: filepath.Join(stateDir, "program"), Version: string(version), Keys: keys, Log: log, Boot: boot,
		},
		trial: os.Getenv(upgrade.EnvTrial), log: log,
	}
	if p.trial != "" {
		return p, os.Unsetenv(upgrade.EnvTrial) // it is of this process alone
	}
	if next := p.place.Start(); next != "" {
		err := become(ctx, next, append([]string{next}, upgrade.Arguments(os.Args)...), os.Environ())
		if ctx.Err() == nil {
			log.Warn("installed program runs: the upgraded one does not start", "error", err)
			p.place.Forget()
		}
	}
	return p, nil
}

// releaseKeys returns the keys whose signatures count: those that are named, else the built-in
// ones. Coordinators cannot change them.
func releaseKeys(named []string) (release.Keys, error) {
	if len(named) == 0 {
		return release.BuiltIn()
	}
	var all release.Keys
	for _, text := range named {
		if !strings.Contains(text, "+") || strings.HasPrefix(text, "/") {
			data, err := os.ReadFile(text)
			if err != nil {
				return all, fmt.Errorf("--release-key: %w", err)
			}
			text = string(data)
		}
		keys, err := release.ReadKeys(text)
		if err != nil {
			return all, fmt.Errorf("--release-key: %w", err)
		}
		all = all.With(keys)
	}
	return all, nil
}

// manager returns the manager of offers; nil for an agent on trial.
func (p programs) manager(papers papers, dial func(context.Context, string) (net.Conn, error)) *upgrade.Manager {
	if p.trial != "" {
		return nil
	}
	return upgrade.New(p.place, upgrade.Deps{TLS: papers.TLS, Dial: dial})
}

// acknowledged returns the function that an agent on trial calls at its first acknowledgement; nil
// for any other.
func (p programs) acknowledged() func() error {
	if p.trial == "" {
		return nil
	}
	return func() error { return upgrade.Acknowledged(p.trial) }
}

// ended continues after the agent's run. If another version was to be tried it does not return:
// this process becomes that version, or this program again. It calls last if the process was asked
// to end during the trial: the workload was left to a version that may not have ended it. last
// kills what runs when its context ends.
func (p programs) ended(
	ctx context.Context, err error, service supervised.Service, last func(context.Context) error,
) error {
	var t *upgrade.Trial
	switch {
	case errors.Is(err, agent.ErrTrialOver):
		return nil
	case !errors.As(err, &t):
		if err == nil && p.trial == "" {
			p.place.Ended()
		}
		return err
	}
	beats := make(chan struct{})
	watching, end := context.WithCancel(ctx)
	defer end()
	go service.Watch(watching, func(asking context.Context) bool {
		select {
		case <-beats:
			return true
		case <-asking.Done():
			return false
		}
	})
	args := upgrade.Arguments(os.Args)
	next, err := t.Run(ctx, args, os.Environ(), func() {
		select {
		case beats <- struct{}{}:
		default:
		}
	})
	if err == nil {
		t.Wait() // the next program would interrupt it
		err = p.goOn(ctx, t, next, args, append(os.Environ(), service.Environ()...))
	}
	if ctx.Err() != nil {
		p.log.Info("agent was asked to end during the trial of a version")
		stopping, cancel := context.WithDeadline(context.WithoutCancel(ctx), t.LastStop())
		defer cancel()
		return last(stopping)
	}
	return err
}

// goOn makes this process the next program, or this one again if that does not start. It returns
// only if neither does, or if ctx has ended.
func (p programs) goOn(ctx context.Context, t *upgrade.Trial, next string, args, environ []string) error {
	if next != "" {
		err := become(ctx, next, append([]string{next}, args...), environ)
		if ctx.Err() != nil {
			return err
		}
		p.log.Error("new version of the agent does not start", "error", err)
		t.Undo(err)
	}
	self, err := os.Executable()
	if err == nil {
		err = become(ctx, self, os.Args, environ)
	}
	if ctx.Err() != nil {
		return err
	}
	// Its file may be gone.
	return errors.Join(err, become(ctx, "/proc/self/exe", os.Args, environ))
}

// become replaces the program of this process. It returns only if it cannot, or if ctx has ended.
func become(ctx context.Context, program string, argv, environ []string) error {
	again, err := supervised.BeforeExec(ctx)
	if err != nil {
		return err
	}
	defer again()
	return fmt.Errorf("run %s: %w", program, syscall.Exec(program, argv, environ))
}
