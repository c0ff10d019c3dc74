package agent

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/agent/notice"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// lifecycleTask is the lifecycle of a workload that is complete once it has ended with exit code 0
// (REC-12).
const lifecycleTask = "task"

// The kinds of drill.
const (
	drillAgent    = "agent"
	drillWorkload = "workload"
)

// resume adopts the state of the former run, or of the bootstrap document.
func (a *Agent) resume(d assignment) {
	if d.ConfigHash == "" {
		b := a.cfg.Bootstrap
		d.Run, d.Vars, d.Secrets, d.Files = b.Run, b.Vars, b.Secrets, b.Files
	}
	if d.Lifecycle == "" {
		d.Lifecycle = a.cfg.Bootstrap.Lifecycle
		d.OnLeaseLost, d.OnLeaseLostRun = a.cfg.Bootstrap.OnLeaseLost, a.cfg.Bootstrap.OnLeaseLostRun
	}
	a.assignment = d
	a.deps.Secrets.Want(d.Secrets)
	a.deps.Files.Expect(d.Files)
	a.deps.Secrets.Unread(d.Files && a.deps.Files != nil)
	a.deps.Workload.Configure(d.Run, d.Vars)
	a.deps.Notices.Watch(d.Notices)
	a.keeper.carried(d.Restarted)
}

// applyWanted applies the wanted state. Any part of it may have been applied before.
func (a *Agent) applyWanted(w *protocol.Wanted) {
	a.keepClaim(w.GetClaim())
	a.wantUpgrade(w.GetUpgrade())
	now := a.assignment
	if w.GetLifecycle() != "" {
		now.Lifecycle = w.GetLifecycle()
	}
	knew := a.checksKnown()
	list, _ := a.checked()
	healthy, _ := health(knew, list) // before any change: a new check begins with this verdict
	hash := w.GetConfigHash()
	config := hash != "" && (hash != now.ConfigHash || !sameSpecs(now.specs(), w.GetChecks()))
	secretNews := hash != "" && a.deps.Secrets.Tell(secretsOf(w))
	if config {
		now.ConfigHash, now.Run, now.Vars, now.Checks = hash, slices.Clone(w.GetRun()), maps.Clone(w.GetVars()),
			keepSpecs(w.GetChecks())
		now.Secrets = namesOf(w)
		now.Files = w.GetFiles()
		a.deps.Workload.Configure(now.Run, now.Vars)
		a.log.Info("configuration applied", "config", hash)
	}
	n := w.GetNotices()
	now.Notices = notice.Spec{Source: n.GetSource(), File: n.GetFile(), Endpoint: n.GetEndpoint()}
	now.OnLeaseLost, now.OnLeaseLostRun = fenceOf(w.GetOnLeaseLost()), slices.Clone(w.GetOnLeaseLost().GetRun())
	if now.Notices != a.assignment.Notices || now.OnLeaseLost != a.assignment.OnLeaseLost ||
		!slices.Equal(now.OnLeaseLostRun, a.assignment.OnLeaseLostRun) {
		a.assignment.Notices, a.assignment.OnLeaseLost = now.Notices, now.OnLeaseLost
		a.assignment.OnLeaseLostRun = now.OnLeaseLostRun
		a.remember(false)
	}
	a.deps.Notices.Watch(now.Notices)
	a.heard = true
	if config {
		a.wantFiles(now)
	}
	if config || now.Lifecycle != a.assignment.Lifecycle || !knew {
		a.assignment = now
		a.wantChecks(healthy, nil)
		a.take(now)
		select {
		case a.news <- struct{}{}: // DET-1
		default:
		}
	}
	if secretNews {
		a.wantChecks(healthy, a.kept)
		a.setTarget(time.Time{}) // what waited for secrets can be started
		select {
		case a.news <- struct{}{}:
		default:
		}
	}
	if token := w.GetRestartToken(); token != a.restart {
		a.restart = token
		a.setTarget(time.Time{})
	}
	a.drain(w.GetDrain())
	a.drill(w.GetDrill())
}

// drill causes a failure on purpose, once for each token (DAY-6). The tokens need not survive a
// restart, because a drill is sent on one stream only.
func (a *Agent) drill(d *protocol.Drill) {
	if d.GetToken() == "" || d.GetToken() == a.drilled {
		return
	}
	a.drilled = d.GetToken()
	switch kind := d.GetKind(); {
	case kind == drillWorkload:
		a.log.Warn("workload is killed for a drill", "drill", a.drilled)
		a.deps.Workload.Kill()
	case kind == drillAgent && a.deps.Crash != nil:
		a.log.Warn("agent kills itself for a drill", "drill", a.drilled)
		a.deps.Crash()
	default:
		a.log.Warn("drill of an unknown kind", "drill", a.drilled, "kind", kind)
	}
}

// keepClaim keeps the claim that a coordinator has sealed, for later hellos. Only another claim
// replaces it.
func (a *Agent) keepClaim(sealed []byte) {
	if len(sealed) == 0 || len(sealed) > protocol.MaxClaim || bytes.Equal(sealed, a.assignment.Claim) {
		return
	}
	a.assignment.Claim = bytes.Clone(sealed)
	a.remember(false)
}

// fenceOf returns the action on a lost lease. An unknown value stops the workload: the safe choice
// for a group that asked for more than nothing.
func fenceOf(l *protocol.LeaseLost) string {
	switch act := l.GetAction(); act {
	case "", fenceStop, fencePowerOff, fenceRun:
		return act
	default:
		return fenceStop
	}
}

// take makes this the agent's assignment. It is written before it is reported.
func (a *Agent) take(d assignment) {
	a.assignment = d
	a.remember(true)
}

// drain runs the hook for this drain, unless the hook has ended.
func (a *Agent) drain(d *protocol.Drain) {
	a.leaving = d
	if a.stopped || d.GetToken() == "" || d.GetToken() == a.assignment.Drained {
		a.deps.Hook.Want(nil)
		return
	}
	a.deps.Hook.Want(&workload.Drain{
		Token: d.GetToken(), Run: d.GetHook(), Vars: a.assignment.Vars, Timeout: d.GetTimeout().AsDuration(),
	})
}

// noteDone remembers what the workload's keeper and the drain hook have completed since. It is
// reported only after it is written, so that a crash in between repeats a restart and loses none.
func (a *Agent) noteDone() {
	now := a.assignment
	now.Restarted = a.keeper.carriedOut()
	if token := a.deps.Hook.Ended(); token != "" {
		now.Drained = token
	}
	if now.Restarted != a.assignment.Restarted {
		a.checkAfresh()
	}
	if now.Restarted != a.assignment.Restarted || now.Drained != a.assignment.Drained {
		a.take(now)
	}
}

// remember queues a write of the state file.
func (a *Agent) remember(novel bool) {
	a.assignment.Verdicts = a.verdictsNow()
	a.stateWriter.write(stateFile{memory: a.memory, assignment: a.assignment, novel: novel})
}
