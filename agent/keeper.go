package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold/leasehold/agent/workload"
)

// keeper starts, stops and restarts the workload, one operation at a time and outside the loop,
// since a workload may take long to end. Only the last target counts.
type keeper struct {
	workload Workload
	log      *slog.Logger

	wanted chan target   // capacity 1: the last target, until run takes it
	done   chan struct{} // signals that something was done
	ended  chan struct{}
	last   target
	up     bool        // started, and not stopped since; used by run alone
	why    string      // the last start failed; used by run alone
	late   *time.Timer // expires the last target; used by the loop alone

	mu        sync.Mutex
	targets   int                // number of targets so far
	restarted string             // token of the last completed restart
	cut       context.CancelFunc // ends the operation under way at once
	callOff   context.CancelFunc // cancels a start under way
	halts     bool               // the last target is that nothing runs
	rests     bool               // that target has been reached
}

// readAgain is the interval for retrying an unreadable record of an earlier agent's workload.
const readAgain = 5 * time.Second

// target is the wanted state of the workload.
type target struct {
	run     bool
	restart string // token of a restart; "": none is wanted
	// by is when nothing may run any longer, regardless of what was under way before; zero: no
	// limit.
	by time.Time
}

func newKeeper(w Workload, log *slog.Logger) *keeper {
	return &keeper{
		workload: w, log: log,
		wanted: make(chan target, 1), done: make(chan struct{}, 1), ended: make(chan struct{}),
		cut: func() {}, callOff: func() {},
	}
}

// want sets the target. Only the loop calls it.
func (k *keeper) want(w target) {
	select {
	case <-k.wanted:
	default:
	}
	if !w.run && w.by.IsZero() && !k.last.run {
		w.by = k.last.by // an earlier deadline stays in force
	}
	k.last = w
	if k.late != nil {
		k.late.Stop()
	}
	k.mu.Lock()
	k.targets++
	if number := k.targets; !w.by.IsZero() {
		k.late = time.AfterFunc(time.Until(w.by), func() { k.expire(number) })
	}
	k.rests, k.halts = false, !w.run
	if k.halts {
		k.callOff() // the start may wait for the disk for longer than a lease lasts
	}
	k.mu.Unlock()
	k.wanted <- w
}

// expire ends what is under way if its target is still the last one. A newer target, which may have
// arrived as the time was over, is not cut short.
func (k *keeper) expire(number int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.targets == number {
		k.cut()
	}
}

// resting reports whether nothing runs and nothing is wanted to run.
func (k *keeper) resting() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rests
}

// run follows the targets until conclude. While it is unknown whether a workload runs, run retries.
func (k *keeper) run(ctx context.Context) {
	defer close(k.ended)
	var w target
	var again <-chan time.Time
	for {
		open := true
		select {
		case w, open = <-k.wanted:
		case <-again:
			select {
			case w, open = <-k.wanted: // the former target no longer counts
			default:
			}
		}
		if !open {
			return
		}
		did := k.follow(ctx, w)
		unread := k.workload.State().Unread
		if again = nil; unread {
			again = time.After(readAgain)
		}
		k.mu.Lock()
		k.rests = !w.run && !unread && len(k.wanted) == 0
		k.mu.Unlock()
		if !did {
			continue
		}
		select {
		case k.done <- struct{}{}:
		default:
		}
	}
}

// follow reports whether there was anything to do.
func (k *keeper) follow(ctx context.Context, w target) bool {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	starting, callOff := context.WithCancel(ctx)
	defer callOff()
	k.mu.Lock()
	k.cut, k.callOff = cut, callOff
	if k.halts {
		callOff()
	}
	k.mu.Unlock()
	if !w.by.IsZero() {
		var done context.CancelFunc
		ctx, done = context.WithDeadline(ctx, w.by)
		defer done()
	}
	switch {
	case !w.run:
		k.workload.Stop(ctx)
		k.up = false
	case w.restart != "" && w.restart != k.carriedOut():
		k.workload.Stop(ctx)
		k.up = false
		if len(k.wanted) > 0 || k.workload.State().Unread {
			return true // it may no longer be wanted; if a restart is still wanted, it is done then
		}
		k.log.Info("workload is restarted", "token", w.restart)
		k.start(starting)
		k.carried(w.restart)
	case !k.up:
		k.start(starting)
	default:
		return false
	}
	return true
}

func (k *keeper) start(ctx context.Context) {
	err := k.workload.Start(ctx)
	why := ""
	if err != nil {
		why = err.Error()
	}
	if why != "" && why != k.why {
		k.log.Warn("workload was not started", "error", err)
	}
	k.why = why
	k.up = !errors.Is(err, workload.ErrWaits) // else the next target tries again
}

// carriedOut returns the token of the last completed restart.
func (k *keeper) carriedOut() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.restarted
}

func (k *keeper) carried(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restarted = token
}

// conclude waits for the operation under way, then ends the workload, or leaves it running if it
// should be kept and may run. It cancels a start that the disk delays, and does not wait for it. It
// reports whether all that is done and the next agent finds the workload that is kept.
func (k *keeper) conclude(ctx context.Context, keep bool) bool {
	keep = keep && k.last.run
	select {
	case <-k.wanted:
	default:
	}
	close(k.wanted)
	if !keep {
		k.startNothing()
	}
	concluded := make(chan bool, 1)
	go func() {
		<-k.ended
		if keep {
			concluded <- k.workload.Release()
		} else {
			k.workload.Stop(ctx)
			concluded <- !k.workload.State().Unread
		}
	}()
	for {
		select {
		case all := <-concluded:
			return all
		case <-time.After(leaveWait):
		}
		if !k.workload.State().Running { // else it is being stopped, which may take longer
			k.startNothing()
			k.log.Warn("workload is neither started nor stopped in time: the disk is slow")
			return false
		}
	}
}

// startNothing cancels a start under way and all later ones.
func (k *keeper) startNothing() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.halts = true
	k.callOff()
}
