package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/durable"
)

const (
	loopback = "127.0.0.1"
	maxLog   = 8 << 20
)

// Create makes the machine's directory and starts its agent. Called again, it completes what was
// interrupted, and else returns the machine that is there, running or not.
func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	b := req.Bootstrap
	if err := checkNames(b.Shard, b.Instance); err != nil {
		return provider.Machine{}, err
	}
	if err := p.Validate(req.Template); err != nil {
		return provider.Machine{}, err
	}
	if req.Zone == "" {
		req.Zone = p.zones[0]
	}
	if err := p.Validate(provider.Template{Zones: []string{req.Zone}}); err != nil {
		return provider.Machine{}, err
	}
	var m provider.Machine
	err := p.locked(ctx, b.Instance, func() (err error) {
		m, err = p.create(ctx, req)
		return err
	})
	if err != nil {
		return provider.Machine{}, fmt.Errorf("create machine %s: %w", b.Instance, err)
	}
	return m, nil
}

func (p *Provider) create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	b := req.Bootstrap
	if deleted, err := p.wasDeleted(b.Shard, b.Instance); err != nil || deleted {
		return provider.Machine{}, errors.Join(err, deletedError(deleted))
	}
	r, err := p.read(b.Instance)
	switch {
	case errors.Is(err, errAbsent):
		if r, err = p.make(ctx, req); err != nil {
			return provider.Machine{}, err
		}
	case err != nil:
		return provider.Machine{}, err
	case r.Shard != b.Shard:
		return provider.Machine{},
			fmt.Errorf("the name is taken by a machine of shard %s: use another directory for this shard", r.Shard)
	case r.State == stepStarting || r.State == stepFailed:
		if r, err = p.adopt(ctx, r); err != nil {
			return provider.Machine{}, err
		}
		if r.State == stepStarted {
			return p.see(r)
		}
		known, err := p.recorded(r)
		if err != nil {
			return provider.Machine{}, err
		}
		if err := p.sweep(ctx, r.marker(), known); err != nil {
			return provider.Machine{}, err
		}
		// The token and the addresses of the interrupted call may be outdated by now.
		if err := p.writeBootstrap(p.machineDir(r.Instance), r, b); err != nil {
			return provider.Machine{}, err
		}
	default:
		return p.see(r)
	}
	if r, err = p.boot(r); err != nil {
		return provider.Machine{}, err
	}
	return p.see(r)
}

func deletedError(deleted bool) error {
	if deleted {
		return provider.ErrDeleted
	}
	return nil
}

// make chooses a port and lets the machine's directory appear, whole, with the intent to start its
// agent recorded. The port is kept from others by the record, so the lock on ports is held until
// that is in its place.
func (p *Provider) make(ctx context.Context, req provider.CreateRequest) (record, error) {
	unlock, err := acquire(ctx, filepath.Join(p.dir, locksDir, portLock))
	if err != nil {
		return record{}, err
	}
	defer unlock()
	port, err := p.choosePort(ctx)
	if err != nil {
		return record{}, err
	}
	b := req.Bootstrap
	r := record{
		Schema: recordSchema, Instance: b.Instance, Shard: b.Shard, Group: b.Group, Zone: req.Zone, Port: port,
		Created: time.Now().UTC().Truncate(time.Millisecond), State: stepStarting, BootID: newBootID(),
		HostBoot: p.hostBoot,
		Begun:    sinceHostBoot().Milliseconds(),
	}
	staged := filepath.Join(p.dir, newDir, r.Instance)
	if err := os.RemoveAll(staged); err != nil {
		return record{}, err
	}
	if err := os.MkdirAll(filepath.Join(staged, workDir), 0o700); err != nil {
		return record{}, err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return record{}, err
	}
	if err := durable.Replace(filepath.Join(staged, recordFile), append(data, '\n'), 0o600); err != nil {
		return record{}, err
	}
	if err := p.writeBootstrap(staged, r, b); err != nil {
		return record{}, err
	}
	if err := os.Rename(staged, p.machineDir(r.Instance)); err != nil {
		return record{}, err
	}
	p.rememberPort(r.Instance, port)
	return r, durable.SyncDir(p.dir)
}

// writeBootstrap writes the document with what only the provider knows. It holds the join token:
// no other user may read it.
func (p *Provider) writeBootstrap(dir string, r record, b provider.Bootstrap) error {
	facts := maps.Clone(b.Facts)
	if facts == nil {
		facts = map[string]string{}
	}
	facts["port"] = strconv.Itoa(r.Port)
	facts["host"] = loopback
	facts["address"] = r.address()
	facts["dir"] = filepath.Join(p.machineDir(r.Instance), workDir)
	b.Facts = facts
	b.Zone = r.Zone
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("write bootstrap document: %w", err)
	}
	if err := durable.Replace(filepath.Join(dir, bootstrapFile), append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write bootstrap document: %w", err)
	}
	return nil
}

// adopt looks for the agent of a boot that was interrupted between its fork and the record of its
// process. A record that comes back with another state than stepStarted has none.
func (p *Provider) adopt(ctx context.Context, r record) (record, error) {
	if r.State != stepStarting || r.HostBoot != p.hostBoot {
		return r, nil
	}
	all, err := census(ctx)
	if err != nil {
		return r, err
	}
	id, ok := agentAmong(all, r.marker(), r.BootID)
	if !ok {
		return r, nil
	}
	r.State, r.PID, r.Start = stepStarted, id.pid, id.start
	p.log.Info("agent of an interrupted start found", "group", r.Group, "instance", r.Instance, "pid", r.PID)
	return r, p.write(r)
}

// boot starts the agent. Nothing of the machine may run. The intent, with the boot's ID, is
// recorded first, so that after a crash in here the next call knows what to look for.
func (p *Provider) boot(r record) (record, error) {
	r.State, r.Halted, r.Why, r.Exit = stepStarting, false, "", nil
	r.Boot++
	r.BootID = newBootID()
	r.PID, r.Start = 0, 0
	r.HostBoot, r.Begun = p.hostBoot, sinceHostBoot().Milliseconds()
	if err := p.write(r); err != nil {
		return r, err
	}
	id, err := p.fork(r)
	if err != nil {
		r.State, r.Why = stepFailed, err.Error()
		return r, errors.Join(err, p.write(r))
	}
	r.State, r.PID, r.Start = stepStarted, id.pid, id.start
	if err := p.write(r); err != nil {
		return r, err // the agent runs: it is found again by its marker
	}
	p.log.Info("agent started", "group", r.Group, "instance", r.Instance, "pid", r.PID, "port", r.Port, "boot", r.Boot)
	return r, nil
}

// fork starts the agent in a session of its own, so that neither a terminal's Ctrl-C nor our end
// ends it.
func (p *Provider) fork(r record) (identity, error) {
	dir := p.machineDir(r.Instance)
	out, err := openLog(filepath.Join(dir, logFile))
	if err != nil {
		return identity{}, fmt.Errorf("start agent: %w", err)
	}
	defer out.Close()
	in, err := os.Open(os.DevNull)
	if err != nil {
		return identity{}, fmt.Errorf("start agent: %w", err)
	}
	defer in.Close()
	work := filepath.Join(dir, workDir)
	env := append([]string{
		provider.EnvBootstrap + "=" + filepath.Join(dir, bootstrapFile),
		provider.EnvBootID + "=" + r.BootID,
		provider.EnvMachine + "=" + r.marker(),
	}, p.env...)
	proc, err := os.StartProcess(p.command[0], p.command, &os.ProcAttr{
		Dir: work, Env: env, Files: []*os.File{in, out, out}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return identity{}, fmt.Errorf("start agent: %w", err)
	}
	pid := proc.Pid
	if err := proc.Release(); err != nil {
		return identity{}, fmt.Errorf("start agent: %w", err)
	}
	// It is our child and is not reaped without the lock, so it is there even if it has ended
	// already.
	s, err := readStat(pid)
	if err != nil {
		return identity{}, fmt.Errorf("start agent: %w", err)
	}
	return s.identity, nil
}

// openLog opens the log for appending. One that has grown large becomes agent.log.1.
func openLog(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxLog {
		err = os.Rename(path, path+".1")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}
