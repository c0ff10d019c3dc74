package agent

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// What an agent does that could not renew its lease (SAFE-9).
const (
	fenceStop     = "stop"
	fencePowerOff = "poweroff"
	fenceRun      = "run"
)

// ErrPoweredOff means that the agent powered its machine off because it could not renew its lease.
var ErrPoweredOff = errors.New("the lease could not be renewed: the machine is powered off, " +
	"as report.on_lease_lost says")

// Fence is what ends more than the workload.
type Fence interface {
	// PowerOff ends the machine. Where that is the agent's own end it returns nil, and the agent
	// ends.
	PowerOff(ctx context.Context) error
	// Command runs what the group has asked for until it ends, or kills it when the context does.
	Command(ctx context.Context, run []string, vars map[string]string) error
}

// stamp is from when a lease counts, on a clock that goes on beside the agent.
type stamp struct {
	Boot   string        `json:"boot"`   // the machine's, and with it the clock's
	Uptime time.Duration `json:"uptime"` // of the kernel
	TTL    time.Duration `json:"ttl"`
}

// kernelUptime also counts while the machine sleeps, as its lease does.
func kernelUptime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// fenceMargin returns how long before the lease can end everything has ended: what a kill and a
// loop take.
func fenceMargin(ttl time.Duration) time.Duration { return min(time.Second, ttl/6) }

// fenceTimes says when to begin, and when what has not ended by then is killed. The first two
// thirds of a lease are for coming back: in them a replica that is gone was missed, and another one
// asked. A workload has what it may take to stop, and the last third at most.
func fenceTimes(renewed time.Time, ttl, stop time.Duration) (begin, kill time.Time) {
	kill = renewed.Add(ttl - fenceMargin(ttl))
	begin = kill.Add(-stop)
	if earliest := renewed.Add(ttl * 2 / 3); begin.Before(earliest) {
		begin = earliest
	}
	return begin, kill
}

// guard acts on the lease: it fences before the lease can have ended, and lifts the fence once it
// is renewed. It returns when to look again; zero if only a renewal changes anything. It runs
// before reports are made, so that no report describes a workload that is about to start again.
func (a *Agent) guard(background context.Context, now time.Time) time.Time {
	act := a.assignment.OnLeaseLost
	if act == "" || !a.mayRun {
		a.unfence("nothing is to be done without a lease") // one that is retired runs nothing, and may be adopted
		return time.Time{}
	}
	renewed, ttl := a.session.Renewed()
	if renewed.IsZero() {
		// None is known of this boot, so there is none to be lost: that ends no machine. But
		// nothing may run without one.
		if !a.stopped && act != fenceRun {
			a.stopped = true
			a.log.Info("workload waits for a lease", "on_lease_lost", act)
			a.setTarget(now)
		}
		return time.Time{}
	}
	stop := a.stopTimeout
	if act == fenceRun {
		stop = ttl // how long it takes is unknown
	}
	begin, kill := fenceTimes(renewed, ttl, stop)
	switch {
	case now.Before(begin):
		a.stampLease(renewed, ttl)
		a.unfence("the lease is renewed")
		return begin
	case !a.fenced:
		a.fenced = true
		a.log.Warn("lease could not be renewed", "on_lease_lost", act, "left", renewed.Add(ttl).Sub(now).String())
		a.fence(background, renewed.Add(ttl), kill)
	}
	if act == fencePowerOff && now.Before(a.offBy) {
		return a.offBy
	}
	return time.Time{}
}

// fence does what is asked for. All of it has ended when the lease does.
func (a *Agent) fence(background context.Context, ends, kill time.Time) {
	if a.assignment.OnLeaseLost == fenceRun {
		run, vars := a.assignment.OnLeaseLostRun, a.assignment.Vars
		a.tasks.Go(func() {
			ctx, cancel := context.WithDeadline(background, ends)
			defer cancel()
			if err := a.deps.Fence.Command(ctx, run, vars); err != nil {
				a.log.Warn("command for a lost lease failed", "error", err)
			}
		})
		return
	}
	verdicts := a.currentVerdicts()
	a.stopped = true
	a.wantChecks(false, verdicts)
	a.offBy = kill.Add(ends.Sub(kill) / 4) // powering off takes its time too
	a.setTarget(kill)
	a.deps.Hook.Want(nil)
}

// powerOff powers the machine off once nothing runs on it any longer, or once what runs cannot be
// killed. It reports whether the agent has to end as well.
func (a *Agent) powerOff(ctx context.Context) bool {
	if !a.fenced || a.assignment.OnLeaseLost != fencePowerOff || !a.keeper.resting() && time.Now().Before(a.offBy) {
		return false
	}
	a.log.Warn("machine is powered off: its lease could not be renewed")
	if err := a.deps.Fence.PowerOff(ctx); err != nil {
		a.log.Error("machine is not powered off, its workload stays stopped", "error", err)
		return false
	}
	return true
}

// unfence starts the workload again. The loop waits for that, as it does before its first report,
// so that the next report does not call a healthy machine unhealthy.
func (a *Agent) unfence(why string) {
	a.fenced = false
	if !a.stopped {
		return
	}
	a.stopped = false
	if !a.mayRun {
		return
	}
	a.log.Info("workload may run again", "why", why)
	select {
	case <-a.keeper.done: // of its stop
	default:
	}
	a.setTarget(time.Time{})
	a.settle(context.Background())
	a.noteDone()
	a.wantChecks(false, a.kept)
	a.drain(a.leaving)
}

// setTarget tells the keeper the wanted state of the workload; by is the time by which the workload
// must have ended, if it must.
func (a *Agent) setTarget(by time.Time) {
	a.keeper.want(target{run: a.mayRun && !a.stopped, restart: a.restartNow(), by: by})
}

// stampLease remembers the lease for an agent that is started again. It is written once for each
// renewal, and not synced: another boot has no workload that runs on.
func (a *Agent) stampLease(renewed time.Time, ttl time.Duration) {
	if renewed.Equal(a.stamped) {
		return
	}
	a.stamped = renewed
	a.assignment.Lease = &stamp{Boot: a.cfg.BootID, Uptime: a.deps.Uptime() - time.Since(renewed), TTL: ttl}
	a.remember(false)
}

// lease returns what the former run of this boot knew of its lease.
func (a *Agent) lease(d assignment) (renewed time.Time, ttl time.Duration) {
	if d.Lease == nil || d.Lease.Boot != a.cfg.BootID {
		return time.Time{}, 0
	}
	ago := a.deps.Uptime() - d.Lease.Uptime
	if ago < 0 {
		return time.Time{}, 0
	}
	return time.Now().Add(-ago), d.Lease.TTL
}
