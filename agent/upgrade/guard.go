package upgrade

import (
	"sync"
	"time"
)

// Lease is the lease whose loss the agent would act on (SAFE-9). The version on trial does so, but
// it may hang, and so may this process before it has started that version.
type Lease struct {
	Lost time.Time // when to act, unless it is renewed
	Kill time.Time // when nothing may run any longer
	// Act carries out the group's on_lease_lost. It kills what still runs at that time.
	Act func(kill time.Time)
}

// guard acts on a lease in time, even if the disk hangs.
type guard struct {
	lease *Lease // nil: no lease
	timer *time.Timer
	mu    sync.Mutex // held while acting
}

func (g *guard) begin(l *Lease) {
	g.lease = l
	if l != nil {
		g.at(l.Lost, l.Kill)
	}
}

func (g *guard) at(begin, kill time.Time) {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.timer = time.AfterFunc(time.Until(begin), func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.lease.Act(kill)
	})
}

// renewed records that the version on trial is acknowledged; since was the last time when it was
// not. It had renewed the lease by then, and the lease lasts twice as long as the version may take
// to leave.
func (g *guard) renewed(since time.Time, leave time.Duration) {
	if g.lease == nil {
		return
	}
	if lost := since.Add(2 * leave); lost.After(g.lease.Lost) {
		g.at(lost, lost.Add(g.lease.Kill.Sub(g.lease.Lost)))
	}
}

// last leaves it to the version on trial to end the workload in order.
func (g *guard) last() {
	if g.lease != nil {
		g.at(g.lease.Kill, g.lease.Kill)
	}
}

// Wait waits until the action on the lease has finished, if it has begun.
func (t *Trial) Wait() {
	t.guard.mu.Lock()
	defer t.guard.mu.Unlock()
}
