package sim

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// wanted makes the agent do what its record wants, as if its gateway had sent it.
func (a *agent) wanted() {
	if !a.open {
		return
	}
	if a.condemned() {
		a.retire()
		return
	}
	v := a.w.instance(a.m.ID)
	if a.unserved(v) {
		return
	}
	if a.recognized() {
		a.restore() // the key may have gone while there was no record
	}
	rec := &v.Record
	if rec.Config != "" && rec.Config != a.config && rec.Config != a.applying {
		a.apply(rec.Config)
	}
	if token := rec.RestartWanted(); token != "" && token != a.restarted && token != a.restarting {
		a.restartWorkload(token)
	}
	if d := rec.Drain; rec.Phase == store.Draining && d != nil && d.Token != "" && d.Token != a.draining &&
		d.Token != a.drained {
		if len(rec.Spec.Drain.Hook) > 0 {
			a.runHook(d.Token)
		} else {
			a.drained = d.Token // nothing to be done
			a.report()
		}
	}
	if d := rec.Drill; d != nil && d.Epoch == a.epoch && d.Request != a.drilledFor {
		a.drilledFor = d.Request
		a.drill(d.Kind)
	}
}

// drill causes a failure on purpose (DAY-6). An agent that is killed is started again.
func (a *agent) drill(kind store.DrillKind) {
	switch kind {
	case store.DrillWorkload:
		a.w.Exit(a.m.ID, 137)
	case store.DrillAgent:
		a.w.note("agent %s is killed for a drill", a.m.ID)
		a.fallSilent(true)
		a.retry()
	case store.DrillMachine:
	}
}

// apply applies a configuration.
func (a *agent) apply(config string) {
	a.applying = config
	a.later(a.w.chance.upTo(3*time.Second), func() {
		if a.applying == config {
			a.config, a.applying = config, ""
			a.report()
		}
	})
}

func (a *agent) restartWorkload(token string) {
	a.restarting = token
	a.later(a.w.chance.upTo(3*time.Second), func() {
		if a.restarting != token {
			return
		}
		a.restarted, a.restarting, a.exit = token, "", nil
		if a.ill <= illTillRestart {
			a.ill = healthy
		}
		a.stir()
		a.report()
	})
}

// runHook runs the drain hook, which ends after a while or never.
func (a *agent) runHook(token string) {
	a.draining = token
	if a.w.chance.happens(a.w.stuckHooks) {
		return
	}
	a.later(a.w.chance.upTo(20*time.Second), func() {
		if a.draining == token {
			a.drained = token
			a.report()
		}
	})
}

// touch checks again whether the instance works.
func (a *agent) touch() {
	a.works = a.working()
	a.stir()
}

// stir reports a change on which the instance's true state depends.
func (a *agent) stir() { a.w.stir(a.m.ID) }

// working reports the truth, which no record shows: the machine runs, its reports arrive, and its
// checks pass.
func (a *agent) working() bool {
	return a.m.Running() && a.up && a.open && !a.retired && a.passing() && a.said.Healthy && a.said.BootID == a.boot
}
