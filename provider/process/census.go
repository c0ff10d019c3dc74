package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// resident is a running process of this host.
type resident struct {
	stat
	marker string // of the machine it belongs to, by its environment
	bootID string
}

// census looks at every running process of this host. Environments that we may not read are those
// of other users: they carry no marker of ours.
func census(ctx context.Context) ([]resident, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("look at processes: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return nil, fmt.Errorf("look at processes: %w", err)
	}
	var all []resident
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := readStat(pid)
		if errors.Is(err, errGone) || err == nil &&
			(s.ended() || s.parent == kthreadd || pid == kthreadd && s.parent == 0) {
			continue
		}
		if errors.Is(err, fs.ErrPermission) {
			continue // hidden from us: another user's
		}
		if err != nil {
			return nil, err
		}
		r := resident{stat: s}
		if env, err := os.ReadFile("/proc/" + name + "/environ"); err == nil {
			r.marker, r.bootID = lookup(env, provider.EnvMachine), lookup(env, provider.EnvBootID)
		} else if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM) {
			return nil, fmt.Errorf("look at process %d: %w", pid, err)
		}
		all = append(all, r)
	}
	return all, nil
}

const kthreadd = 2 // the parent of the kernel's threads

func lookup(env []byte, name string) string {
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if k, val, ok := bytes.Cut(v, []byte{'='}); ok && string(k) == name {
			return string(val)
		}
	}
	return ""
}

// kin are the processes known to belong to one machine. A process that was once identified stays
// so, when its parent and its leader are gone.
type kin map[identity]bool

// processes returns the running processes of a machine: those with its marker, those in known, and
// processes with such a process as parent or as the living leader of their session or group. Those
// are added to known.
func (known kin) processes(all []resident, marker string) []identity {
	in := map[int]bool{} // by pid, which is unambiguous within one census
	var found []identity
	add := func(r resident) {
		in[r.pid] = true
		known[r.identity] = true
		found = append(found, r.identity)
	}
	for _, r := range all {
		if r.marker == marker || known[r.identity] {
			add(r)
		}
	}
	for grew := true; grew; {
		grew = false
		for _, r := range all {
			if !in[r.pid] && r.pid > 1 && (in[r.parent] || in[r.sessn] || in[r.pgrp]) {
				add(r)
				grew = true
			}
		}
	}
	return found
}

// agentAmong finds the agent of a boot whose start was interrupted before its process was recorded:
// the first to carry the marker and the boot's ID while leading its own session.
func agentAmong(all []resident, marker, bootID string) (identity, bool) {
	var first identity
	for _, r := range all {
		if r.marker == marker && r.bootID == bootID && r.sessn == r.pid && (first.pid == 0 || r.start < first.start) {
			first = r.identity
		}
	}
	return first, first.pid != 0
}

// recorded are the processes that the machine's directory names: the agent, and the workload that
// the agent has recorded. A workload may have no marker: nginx writes its title over its
// environment.
func (p *Provider) recorded(r record) (kin, error) {
	known := kin{}
	if id, ok := p.agent(r); ok {
		known[id] = true
	}
	data, err := os.ReadFile(filepath.Join(p.machineDir(r.Instance), provider.WorkloadFile))
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return nil, err // there may be a workload that nothing else tells of
	}
	var w provider.WorkloadProcess
	if json.Unmarshal(data, &w) != nil || w.Kernel != p.hostBoot || w.PID <= 1 {
		return known, nil //nolint:nilerr // a damaged file tells nothing
	}
	if start, err := strconv.ParseUint(w.Start, 10, 64); err == nil {
		known[identity{pid: w.PID, start: start}] = true
	}
	return known, nil
}

// relatives identifies the machine's processes while its agent may still show whose they are.
func (p *Provider) relatives(ctx context.Context, r record) (kin, error) {
	known, err := p.recorded(r)
	if err != nil {
		return nil, err
	}
	all, err := census(ctx)
	if err != nil {
		return nil, err
	}
	known.processes(all, r.marker())
	return known, nil
}

// sweep kills every process of a machine and returns when none is left. After a kill two censuses
// in a row must find none: a process in the middle of its exec shows no environment for a moment.
func (p *Provider) sweep(ctx context.Context, marker string, known kin) error {
	wait := time.Millisecond
	for clean := 1; ; {
		all, err := census(ctx)
		if err != nil {
			return err
		}
		members := known.processes(all, marker)
		if len(members) == 0 {
			if clean--; clean == 0 {
				return nil
			}
			continue
		}
		clean = 2
		for _, id := range members {
			if err := id.signal(syscall.SIGKILL); err != nil {
				return fmt.Errorf("end machine %s: %w", marker, err)
			}
		}
		if err := pause(ctx, &wait, 50*time.Millisecond); err != nil {
			return fmt.Errorf("end machine %s: process %d was killed and has not ended: %w", marker, members[0].pid,
				err)
		}
	}
}
