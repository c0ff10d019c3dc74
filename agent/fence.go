package agent

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// What an agent does when it cannot renew its lease (SAFE-9).
const (
	fenceStop     = "stop"
	fencePowerOff = "poweroff"
	fenceRun      = "run"
)

// ErrPoweredOff means that the agent powered its machine off because it could not renew its lease.
var ErrPoweredOff = errors.New("the lease could not be renewed: the machine is powered off, " +
	"as report.on_lease_lost says")

// Fence carries out the actions on a lost lease that affect more than the workload.
type Fence interface {
	// PowerOff powers the machine off. Where that ends the agent too, it returns nil and the agent
	// ends.
	PowerOff(ctx context.Context) error
	// Command runs the group's command until it ends, and kills it when the context ends.
	Command(ctx context.Context, run []string, vars map[string]string) error
}

// stamp is the start of a lease on a clock that continues while the agent is down.
type stamp struct {
	Boot   string        `json:"boot"`   // of the machine, and therefore of the clock
	Uptime time.Duration `json:"uptime"` // the kernel's uptime
	TTL    time.Duration `json:"ttl"`
}

// kernelUptime includes the time that the machine sleeps, as its lease does.
func kernelUptime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// fenceMargin returns how long before the earliest end of the lease everything must have ended: the
// time of a kill and one pass of the loop.
func fenceMargin(ttl time.Duration) time.Duration { return min(time.Second, ttl/6) }

// fenceTimes returns when fencing begins, and when what still runs is killed. The first two thirds
// of a lease are for reconnecting: the agent notices that its replica is gone and asks another one.
// The workload has its stop timeout, but at most the last third.
func fenceTimes(renewed time.Time, ttl, stop time.Duration) (begin, kill time.Time) {
	kill = renewed.Add(ttl - fenceMargin(ttl))
	begin = kill.Add(-stop)
	if earliest := renewed.Add(ttl * 2 / 3); begin.Before(earliest) {
		begin = earliest
	}
	return begin, kill
}

// guard acts on the lease: it fences before the lease can have ended, and lifts the fence once the
// lease is renewed. It returns when to call again; zero if only a renewal changes anything. It runs
// before reports are made, so that no report describes a workload that is about to start again.
func (a *Agent) guard(background context.Context, now time.Time) time.Time {
	act := a.assignment.OnLeaseLost
	if act == "" || !a.mayRun {
		a.unfence("no action on a lost lease is wanted") // a retired instance runs nothing, and may be adopted
		return time.Time{}
	}
	renewed, ttl := a.session.Renewed()
	if renewed.IsZero() {
		// No lease of this boot is known, so none can be lost and the machine is not powered off.
		// But nothing may run without a lease.
		if !a.stopped && act != fenceRun {
			a.stopped = true
			a.log.Info("workload waits for a lease", "on_lease_lost", act)
			a.setTarget(now)
		}
		return time.Time{}
	}
	stop := a.stopTimeout
	if act == fenceRun {
		stop = ttl // the duration of the command is unknown
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
		ends := renewed.Add(ttl)
		if act == fenceRun && now.After(kill) {
			ends = now.Add(ttl / 3) // the agent was away or stood still; late is better than never
		}
		a.fence(background, ends, kill)
	}
	if act == fencePowerOff && now.Before(a.offBy) {
		return a.offBy
	}
	return time.Time{}
}

// fence carries out on_lease_lost. Everything has ended when the lease ends.
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
	a.offBy = kill.Add(ends.Sub(kill) / 4) // powering off takes time too
	a.setTarget(kill)
	a.deps.Hook.Want(nil)
}

// powerOff powers the machine off once nothing runs on it any longer, or once it is clear that what
// runs cannot be killed. It reports whether the agent must end too.
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

// unfence starts the workload again. The loop waits for the start, as before its first report, so
// that the next report does not call a healthy machine unhealthy.
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
	case <-a.keeper.done: // the error of its stop
	default:
	}
	a.setTarget(time.Time{})
	a.settle(context.Background())
	a.noteDone()
	a.wantChecks(false, a.kept)
	a.drain(a.leaving)
}

// setTarget gives the keeper the wanted state of the workload; by is the time by which the workload
// must have ended, if it must.
func (a *Agent) setTarget(by time.Time) {
	a.keeper.want(target{run: a.mayRun && !a.stopped, restart: a.restartNow(), by: by})
}

// noteSleep tells the session if the machine has slept. Times are compared by the monotonic clock,
// which stands still meanwhile.
func (a *Agent) noteSleep() {
	asleep := a.deps.Uptime() - a.startedAt - time.Since(a.started)
	if asleep > a.asleep {
		a.session.Slept(asleep - a.asleep)
		a.asleep = asleep
	}
}

// stampLease records the lease for a restarted agent. It writes once per renewal and does not sync:
// after another boot no workload is running.
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
