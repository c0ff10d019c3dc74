package gateway

import (
	"container/list"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// How agents are let in that come all at once.
const (
	openingAtOnce = 64                     // hellos: what comes beyond waits
	openingLeast  = 4                      // while renewals are late
	openingWait   = 3 * time.Second        // for how long, where it is not told that it waits: it would give us up soon
	openingTell   = time.Second            // after so long it is told, if it understands that
	openingSpare  = time.Second            // how much later than that it stops waiting
	openingHope   = 500 * time.Microsecond // between one and the next, before any has begun: whoever is told to wait for longer than need be is without a coordinator
	openingPace   = 100 * time.Microsecond // and at the least
	openingStall  = time.Second            // for how long none may get ready before that says something of the pace: while a crowd comes the first take that long in any case
	lateRenewal   = 300 * time.Millisecond // of renewals, which take some milliseconds: what begins sessions takes too much of etcd, or of us
	slowAgain     = 500 * time.Millisecond // how often that is counted
)

// admission decides when a session may begin. When a replica is gone, thousands of agents come to the next one at once: each needs several exchanges with
// etcd, and those who are there already must go on renewing meanwhile. So only so many begin at a time, and fewer while renewals come late; all who can be
// let in soon wait in line; the others are told when to come again, one after the other, at the pace at which sessions do begin (SAFE-11).
type admission struct {
	mu      sync.Mutex
	running int
	most    int           // at once
	queue   list.List     // of chan struct{}, closed when the turn has come
	over    chan struct{} // closed when nobody is let in any more
	ended   bool
	each    time.Duration
	ready   int       // sessions, since
	since   time.Time // as long as there was always one that waited
	moved   time.Time // when one last began or was ready, with something to do ever since
	booked  time.Time // when the last one comes who was told to
	slowed  time.Time
}

func newAdmission() *admission {
	return &admission{most: openingAtOnce, each: openingHope, over: make(chan struct{})}
}

// crowded says that too many agents come at once, and after how long there is room.
type crowded struct{ after time.Duration }

func (c *crowded) Error() string {
	return "too many agents come at once: go to another replica, or come again after " + c.after.Round(time.Millisecond).String()
}

// refused tells an agent that is not let in why, and when to come again if that is known.
func (c *crowded) refused() *protocol.Refused {
	return &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE, Message: c.Error(), After: durationpb.New(c.after)}
}

// patience is how long somebody can be let wait for his turn.
type patience struct {
	most time.Duration
	tell func(most time.Duration) error // him that he waits, and for how long; nil: he is not told
}

// impatient is who cannot be told that he waits.
var impatient = patience{most: openingWait}

// patientFor is how long an agent waits that is told so. A leader gives agents the time to return, and counts with two replicas that do not answer in a
// round through all of them: here is one that answers late (SAFE-1).
func patientFor(longest time.Duration) time.Duration {
	return max(longest/2, 2*protocol.AnswerTimeout) - protocol.AnswerTimeout - openingSpare
}

var errStops = errors.New("this replica stops: go to another")

// enter waits until a session may begin; leave must be called when it has. Whoever is not let in, and could wait, is a *crowded; latest is when all
// come again at the latest.
func (a *admission) enter(ctx context.Context, p patience, latest time.Duration) (leave func(), err error) {
	a.mu.Lock()
	switch {
	case a.ended:
		a.mu.Unlock()
		return nil, errStops
	case a.running < a.most && a.queue.Len() == 0:
		if a.running == 0 {
			a.moved = time.Now()
			a.ready, a.since = 0, a.moved
		}
		a.running++
		a.mu.Unlock()
		return a.leave, nil
	case a.pace(time.Now())*time.Duration(a.queue.Len()) > p.most:
		defer a.mu.Unlock()
		return nil, a.book(time.Now(), latest)
	}
	mine := make(chan struct{})
	at := a.queue.PushBack(mine)
	a.mu.Unlock()

	if err = a.await(ctx, mine, p); err == nil {
		return a.leave, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-mine: // it came at the same moment
		a.running--
		a.pass()
	default:
		a.queue.Remove(at)
	}
	if errors.Is(err, errLate) {
		return nil, a.book(time.Now(), latest)
	}
	return nil, err
}

// errLate: a turn did not come in time.
var errLate = errors.New("too many agents come at once")

// await waits for a turn, and tells who has to wait for long.
func (a *admission) await(ctx context.Context, mine <-chan struct{}, p patience) error {
	silent := p.most
	if p.tell != nil {
		silent = min(silent, openingTell)
	}
	clock := time.NewTimer(silent)
	defer clock.Stop()
	for told := p.tell == nil; ; told = true {
		select {
		case <-mine:
			return nil
		case <-a.over:
			return errStops
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-clock.C:
		}
		if told {
			return errLate
		}
		left := p.most - silent
		if err := p.tell(left + openingSpare); err != nil {
			return err
		}
		clock.Reset(left)
	}
}

// end sends away all who wait, and lets nobody in any more.
func (a *admission) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.ended = true
		close(a.over)
	}
}

// leave ends a turn, and takes note of the pace.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.moved = now
	if a.ready++; a.ready == openingAtOnce {
		a.each = max(openingPace, min(a.each*5/4, now.Sub(a.since)/openingAtOnce)) // it takes longer while many come, and hears us say no: that says little of later
		a.ready, a.since = 0, now
	}
	if a.most < openingAtOnce && now.Sub(a.slowed) > slowAgain {
		a.most++
	}
	a.running--
	if a.pass(); a.running < a.most {
		a.ready, a.since = 0, now // how long it takes until the next one comes is not our pace
	}
}

// pass gives turns to those who wait. The caller has the lock.
func (a *admission) pass() {
	for a.running < a.most && a.queue.Len() > 0 {
		mine, _ := a.queue.Remove(a.queue.Front()).(chan struct{}) // nothing else is in it
		close(mine)
		a.running++
	}
}

// pace is how long it takes from one session that begins to the next: as it was, or longer if none is ready. The caller has the lock.
func (a *admission) pace(now time.Time) time.Duration {
	if a.running == 0 {
		return a.each
	}
	return max(a.each, (now.Sub(a.moved)-openingStall)/time.Duration(a.most))
}

// book finds the time at which there is room for one more. They come a little faster than that, so that there is always one who waits. The caller has the
// lock.
func (a *admission) book(now time.Time, latest time.Duration) *crowded {
	pace := a.pace(now)
	if soonest := now.Add(pace * time.Duration(a.queue.Len()+a.running)); a.booked.Before(soonest) {
		a.booked = soonest
	}
	next := a.booked.Add(pace * 3 / 4)
	after := next.Sub(now)
	if after > latest { // too many for that: they come in no order
		return &crowded{latest/2 + rand.N(max(1, latest/2))}
	}
	a.booked = next
	return &crowded{after}
}

// slower lets fewer begin: renewals are late.
func (a *admission) slower(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.slowed) < slowAgain {
		return
	}
	a.slowed = now
	a.most = max(openingLeast, a.most/2)
}
