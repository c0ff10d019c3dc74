package upgrade

import (
	"sync"
	"time"
)

// Lease is one that the agent would act on (SAFE-9). The version on trial does so, but it may hang,
// and so may this process before that one is started.
type Lease struct {
	Lost time.Time // when to act, unless it is renewed
	Kill time.Time // when nothing may run any more
	// Act does what the group asks for. What runs is killed at that time.
	Act func(kill time.Time)
}

// guard acts on a lease in time, whatever the disk does meanwhile.
type guard struct {
	lease *Lease // nil: there is none
	timer *time.Timer
	mu    sync.Mutex // held while it acts
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

// renewed is called once the version on trial is acknowledged, which it was not at that time. It
// had renewed the lease then, and that lasts for twice as long as it may take to leave.
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

// Wait waits until the lease is acted on, if that has begun.
func (t *Trial) Wait() {
	t.guard.mu.Lock()
	defer t.guard.mu.Unlock()
}
