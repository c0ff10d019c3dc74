package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// List reads every machine's directory and looks at its process. A directory or a process that
// cannot be looked at is an error: it might be a machine that runs.
func (p *Provider) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	names, err := p.instances()
	if err != nil {
		return nil, err
	}
	machines := []provider.Machine{}
	var all []resident // taken once, and only if a start seems to have been interrupted
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := p.find(shard, name)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if p.interrupted(r) {
			if all == nil {
				if all, err = census(ctx); err != nil {
					return nil, err
				}
			}
			if id, ok := agentAmong(all, r.marker(), r.BootID); ok {
				r.State, r.PID, r.Start = stepStarted, id.pid, id.start
			} else {
				r.State, r.Why = stepFailed, "its start was interrupted"
			}
		}
		m, err := p.see(r)
		if err == nil && m.State.Down() && r.Exit == nil {
			m, err = p.see(p.noteExit(r))
		}
		if err != nil {
			return nil, fmt.Errorf("list machines: %s: %w", name, err)
		}
		machines = append(machines, m)
	}
	return machines, nil
}

// interrupted reports whether a start has had more than enough time to record its process and did
// not.
func (p *Provider) interrupted(r record) bool {
	return r.State == stepStarting &&
		(r.HostBoot != p.hostBoot || sinceHostBoot()-time.Duration(r.Begun)*time.Millisecond > startGrace)
}

// agent is the machine's agent, if a process of this boot of the host was recorded. It may have
// ended.
func (p *Provider) agent(r record) (identity, bool) {
	return identity{pid: r.PID, start: r.Start}, r.PID > 1 && r.HostBoot == p.hostBoot
}

func (p *Provider) agentRuns(r record) (bool, error) {
	id, ok := p.agent(r)
	if !ok {
		return false, nil
	}
	return id.runs()
}

// noteExit records how an agent ended, if that can be learnt now: it is our child and no other call
// for the machine is under way (that call learns it itself). Failure to record costs the reason,
// not the state.
func (p *Provider) noteExit(r record) record {
	id, ok := p.agent(r)
	if !ok {
		return r
	}
	if s, err := readStat(id.pid); err != nil || s.identity != id || !s.ended() || s.parent != os.Getpid() {
		return r
	}
	unlock, err := tryAcquire(filepath.Join(p.dir, locksDir, r.Instance))
	if err != nil {
		return r
	}
	defer unlock()
	now, err := p.find(r.Shard, r.Instance)
	if err != nil || now.BootID != r.BootID {
		return r
	}
	if now.Exit = id.reap(); now.Exit == nil {
		return now
	}
	if err := p.write(now); err != nil {
		p.log.Warn("record how an agent ended", "group", r.Group, "instance", r.Instance, "error", err)
	}
	p.log.Info("agent ended", "group", r.Group, "instance", r.Instance, "pid", r.PID, "why", now.Exit.String())
	return now
}

// see works out what a record and the process say of a machine now.
func (p *Provider) see(r record) (provider.Machine, error) {
	m := provider.Machine{
		Instance: r.Instance, Shard: r.Shard, Group: r.Group, Ref: p.machineDir(r.Instance), Zone: r.Zone,
		Address: r.address(), BootID: r.BootID, Why: r.Why,
	}
	runs, err := p.agentRuns(r)
	if err != nil {
		return m, err
	}
	switch {
	case r.State == stepFailed:
		m.State = provider.StateFailed
	case r.State == stepStarting:
		m.State = provider.StateStarting
	case runs && r.State == stepStarted:
		m.State = provider.StateRunning
	case runs:
		m.State = provider.StateStopping
	case r.State == stepStopping || r.State == stepStopped:
		m.State, m.Why = provider.StateStopped, r.Why
		if r.Exit != nil {
			m.Why = r.Exit.String()
		}
		if r.Halted {
			m.Why = "halted with its host program"
		}
	case r.Exit != nil && r.Exit.Signal == "" && r.Exit.Code == 0:
		m.State, m.Why = provider.StateStopped, r.Exit.String()
	case r.HostBoot != p.hostBoot:
		m.State, m.Why = provider.StateCrashed, "the host was started again"
	default:
		m.State, m.Why = provider.StateCrashed, r.Exit.String()
	}
	return m, nil
}
