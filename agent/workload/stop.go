package workload

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

const (
	// groupLookEvery is how often to look whether the last process of the group has ended: no event
	// announces it.
	groupLookEvery = 20 * time.Millisecond
	// killWait is how long the kernel may take to end what was killed. What is stuck in it longer
	// stays.
	killWait = 5 * time.Second
)

// Stop ends the workload in order: it sends SIGTERM to the process group, and SIGKILL to what is
// left after the timeout, or as soon as ctx ends. It returns when the group is gone. A later Start
// starts the workload again.
func (r *Runner) Stop(ctx context.Context) {
	defer r.reveals.Wait()
	if r.run == nil {
		r.resume()
	}
	p := r.run
	if p == nil {
		r.forget()
		return
	}
	r.mu.Lock()
	r.asked = true
	r.mu.Unlock()
	if p.over() {
		// It ended by itself and its group was killed then; by now the ID may be another's.
		p.tasks.Wait()
		r.run = nil
		r.forget()
		return
	}
	r.log.Info("workload is stopped", "pid", p.PID, "timeout", r.cfg.StopTimeout.String())
	r.signal(p, syscall.SIGTERM)
	patient, cancel := context.WithTimeout(ctx, r.cfg.StopTimeout)
	gone := p.gone(patient)
	cancel()
	if !gone {
		r.log.Warn("workload did not end in time: killed", "pid", p.PID)
		r.signal(p, syscall.SIGKILL)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), killWait)
		gone = p.gone(last)
		cancel()
	}
	p.cancel()
	p.tasks.Wait()
	r.run = nil
	if gone {
		r.log.Info("workload has ended", "pid", p.PID)
	} else {
		r.log.Warn("workload cannot be killed", "pid", p.PID)
	}
	r.forget()
}

// resume takes up what an earlier agent left running, to be stopped: it may have been killed while
// it did just that.
func (r *Runner) resume() {
	old, known, err := readRecord(r.recordPath())
	if err != nil {
		r.log.Warn("workload of an earlier agent is not known", "error", err)
	}
	if known && old.runs() {
		r.watch(&process{record: old})
	}
}

func (r *Runner) signal(p *process, sig syscall.Signal) {
	if err := signalGroup(p.PID, sig); err != nil {
		r.log.Warn("workload was not signalled", "error", err, "pid", p.PID)
	}
}

// forget makes the next Start begin from scratch.
func (r *Runner) forget() {
	if err := os.Remove(r.recordPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.log.Warn("workload record was not removed", "error", err)
	}
	r.mu.Lock()
	r.state = State{Wanted: len(r.argv) > 0}
	r.mu.Unlock()
}

// Kill ends the workload at once, as a failure of its own would: it counts as ended by itself.
func (r *Runner) Kill() {
	r.mu.Lock()
	p, runs := r.newest, r.state.Running && !r.asked
	r.mu.Unlock()
	if !runs {
		return
	}
	if s, err := readStat(p.PID); err == nil && s.start == p.Start {
		r.signal(p, syscall.SIGKILL)
	}
}

// Release leaves the workload running, for the next agent to take up.
func (r *Runner) Release() {
	defer r.reveals.Wait()
	if p := r.run; p != nil {
		p.cancel()
		p.tasks.Wait()
		r.run = nil
	}
}

// over reports whether the leader was reaped.
func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// gone waits until the leader was reaped and no process of the group runs.
func (p *process) gone(ctx context.Context) bool {
	tick := time.NewTicker(groupLookEvery)
	defer tick.Stop()
	for {
		if p.over() && !groupLives(p.PID) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}
