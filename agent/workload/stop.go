package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

const (
	// groupLookEvery is the interval for checking whether the last process of the group has ended,
	// which no event announces.
	groupLookEvery = 20 * time.Millisecond
	// killWait is how long the kernel may take to end killed processes. Those that are stuck in the
	// kernel for longer remain.
	killWait = 5 * time.Second
	// diskWait is how long Stop and Release wait for disk operations, which may hang.
	diskWait = time.Second
)

// Stop ends the workload in order: it sends SIGTERM to the process group, and SIGKILL to what is
// left after the timeout, or as soon as ctx ends. It returns when the group is gone. A later Start
// starts the workload again. If the record of an earlier agent cannot be read, Stop ends nothing:
// see State.Unread.
func (r *Runner) Stop(ctx context.Context) {
	if r.run == nil && !r.resume() {
		return // the record stays, since its process may run
	}
	p := r.run
	if p == nil {
		r.forget()
		r.settle(nil)
		return
	}
	r.mu.Lock()
	r.asked = true
	r.mu.Unlock()
	if p.over() {
		// It ended by itself and its group was killed then; by now another group may have the ID.
		r.run = nil
		r.forget()
		r.settle(p)
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
	r.run = nil
	if gone {
		r.log.Info("workload has ended", "pid", p.PID)
	} else {
		r.log.Warn("workload cannot be killed", "pid", p.PID)
	}
	r.forget()
	r.settle(p)
}

// settle waits for disk operations, unless the disk hangs, and reports whether all are done. p: a
// process that is released.
func (r *Runner) settle(p *process) bool {
	watched := func() <-chan struct{} {
		if p == nil {
			return nil
		}
		return endOf(&p.tasks)
	}
	// In this order, since a watch may end with a record.
	if !inTime(diskWait, watched, r.reading, r.records.written) {
		r.log.Warn("workload's record or output is not written or read in time: the disk is slow")
		return false
	}
	return r.records.kept()
}

// inTime waits for the channels, each of which is nil or closed at the end of something, and
// reports whether all were closed in time.
func inTime(most time.Duration, each ...func() <-chan struct{}) bool {
	late := time.NewTimer(most)
	defer late.Stop()
	for _, what := range each {
		over := what()
		if over == nil {
			continue
		}
		select {
		case <-over:
		case <-late.C:
			return false
		}
	}
	return true
}

// endOf returns a channel that is closed when all tasks have ended.
func endOf(tasks *sync.WaitGroup) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		tasks.Wait()
	}()
	return over
}

// resume adopts what an earlier agent left running, in order to stop it: that agent may have been
// killed while it did so. It reports whether the record could be read.
func (r *Runner) resume() bool {
	old, known, err := r.recall()
	if err != nil {
		r.setUnread(err)
		return false
	}
	if known && old.runs() {
		r.watch(&process{record: old})
	}
	return true
}

// recall reads the record. If it knows what another Runner left, it does not wait long for the
// disk.
func (r *Runner) recall() (record, bool, error) {
	if r.left == nil {
		return r.records.read()
	}
	type answer struct {
		record
		known bool
		err   error
	}
	read := make(chan answer, 1)
	go func() {
		var a answer
		a.record, a.known, a.err = r.records.read()
		read <- a
	}()
	late := time.NewTimer(diskWait)
	defer late.Stop()
	a := answer{err: errors.New("the disk does not answer")}
	select {
	case a = <-read:
	case <-late.C:
	}
	if a.err != nil && r.left.runs() { // then nothing has replaced it
		r.log.Warn("workload's record cannot be read: what was left is stopped", "error", a.err)
		return *r.left, true, nil
	}
	return a.record, a.known, a.err
}

func (r *Runner) signal(p *process, sig syscall.Signal) {
	if err := signalGroup(p.PID, sig); err != nil {
		r.log.Warn("workload was not signalled", "error", err, "pid", p.PID)
	}
}

// forget makes the next Start begin from scratch.
func (r *Runner) forget() {
	r.mu.Lock()
	r.records.put(nil)
	r.state = State{Wanted: len(r.argv) > 0}
	r.mu.Unlock()
}

// Kill ends the workload at once. It counts as ended by itself, as after a failure of its own.
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

// Release leaves the workload running for the next agent. It reports whether the disk has what that
// agent must know: without it, that agent would start a second workload.
func (r *Runner) Release() bool {
	r.records.stop()
	p := r.run
	if p != nil {
		p.cancel()
		r.run = nil
	}
	return r.settle(p)
}

// StopReleased ends what Release left running. If another agent has restarted the workload since,
// that agent's record counts. What this Runner remembers counts only if the disk hangs.
func (r *Runner) StopReleased(ctx context.Context) error {
	next, err := New(r.cfg, Deps{Logger: r.log})
	if err != nil {
		return err
	}
	r.mu.Lock()
	if r.newest != nil {
		next.left = &r.newest.record
	}
	r.mu.Unlock()
	next.Stop(ctx)
	if s := next.State(); s.Unread {
		return fmt.Errorf("workload may run: %s", s.Waits)
	}
	return nil
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
