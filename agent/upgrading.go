package agent

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/session"
	"github.com/leasehold/leasehold/agent/upgrade"
)

// ErrTrialOver means that an agent on trial was acknowledged and has left, for the process that
// judges it.
var ErrTrialOver = errors.New("the new version is acknowledged")

// wantUpgrade sets the offered version. Setting the same again changes nothing.
func (a *Agent) wantUpgrade(w *protocol.AgentUpgrade) {
	if w == nil {
		a.deps.Upgrade.Want(nil)
		return
	}
	o := upgrade.Offer{
		Token: w.GetToken(), Addresses: w.GetAddresses(), Downgrade: w.GetDowngrade(), Within: w.GetWithin().AsDuration(),
	}
	if left := w.GetLeft(); left != nil {
		o.Left = max(left.AsDuration(), 1) // 0 would mean unknown
	}
	for _, p := range w.GetPrograms() {
		o.Programs = append(o.Programs, upgrade.Program{Statement: p.GetStatement(), Path: p.GetPath()})
	}
	a.deps.Upgrade.Want(&o)
}

// upgrading returns why the agent must end for another version now; nil: it must not. A machine
// that leaves or restarts its workload finishes that first.
func (a *Agent) upgrading() error {
	t := a.deps.Upgrade.Trial()
	limit, lease := a.unfencedFor()
	limited := lease != nil
	if !a.mayRun || a.leaving != nil || a.fenced || a.restart != "" && a.restart != a.assignment.Restarted {
		return nil // even if they began after the trial was recorded
	}
	if t == nil {
		if a.deps.Upgrade.Ready() {
			a.deps.Upgrade.Begin()
		}
		return nil
	}
	t.End = upgrade.LeaveTime
	if !a.cfg.KeepWorkload {
		t.End += a.stopTimeout
	}
	switch _, ttl := a.session.Renewed(); {
	case limited && limit < ttl/3:
		return nil // the trial begins after the next renewal
	case limited && (t.Within <= 0 || limit < t.Within):
		t.Within = limit
	}
	if limited { // it renewed the lease when it was acknowledged, and may hang while it leaves
		t.By = time.Now().Add(limit) // this agent may hang too, and nothing guards the lease then
		t.Leave = min(limit/2, upgrade.LeaveTime)
		t.Lease = lease
	}
	return t
}

// unfencedFor returns how long the agent may be away before it must act on its lease (SAFE-9); nil
// if the group does not act on its loss.
func (a *Agent) unfencedFor() (time.Duration, *upgrade.Lease) {
	renewed, ttl := a.session.Renewed()
	if a.assignment.OnLeaseLost == "" || renewed.IsZero() {
		return 0, nil
	}
	stop := a.stopTimeout
	if a.assignment.OnLeaseLost == fenceRun {
		stop = ttl
	}
	begin, kill := fenceTimes(renewed, ttl, stop)
	return time.Until(begin) - fenceMargin(ttl), &upgrade.Lease{Lost: begin, Kill: kill, Act: a.actInPlace()}
}

// actInPlace returns a function that acts on a lost lease after this agent has ended.
func (a *Agent) actInPlace() func(kill time.Time) {
	act, run, vars := a.assignment.OnLeaseLost, a.assignment.OnLeaseLostRun, a.assignment.Vars
	return func(kill time.Time) {
		a.log.Warn("lease was not renewed during the trial of a version", "on_lease_lost", act)
		ctx, cancel := context.WithDeadline(context.Background(), kill)
		defer cancel()
		var err error
		switch act {
		case fenceRun:
			err = a.deps.Fence.Command(ctx, run, vars)
		case fencePowerOff:
			err = errors.Join(a.deps.Workload.StopReleased(ctx), a.deps.Fence.PowerOff(context.Background()))
		default:
			err = a.deps.Workload.StopReleased(ctx)
		}
		if err != nil {
			a.log.Error("lost lease was not acted on", "error", err)
		}
	}
}

// judged reports the first acknowledgement to the process that judges an agent on trial.
func (a *Agent) judged(ev session.Event) error {
	said, ok := ev.(session.Heard)
	if a.cfg.Acknowledged == nil || !ok || said.Message.GetAck() == nil {
		return nil
	}
	if err := a.cfg.Acknowledged(); err != nil {
		return err
	}
	return ErrTrialOver
}

// staysBehind marks the workload to keep running when the agent ends for another agent.
func (a *Agent) staysBehind(why error) {
	var t *upgrade.Trial
	tried := a.cfg.Acknowledged != nil && why != nil && !errors.Is(why, ErrPoweredOff)
	if tried || errors.As(why, &t) {
		a.cfg.Farewell, a.cfg.KeepWorkload = FarewellRestart, true
	}
}

// upgradeState returns how the last offer ended.
func (a *Agent) upgradeState() *protocol.UpgradeState {
	last := a.deps.Upgrade.Last()
	if last == nil {
		return nil
	}
	return &protocol.UpgradeState{
		Token: last.Token, Version: last.Version, Result: string(last.Result), Why: last.Why,
	}
}
