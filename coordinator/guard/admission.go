package guard

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

// How agents that arrive at the same time are admitted.
const (
	admitAtOnce = 64 // sessions that begin at the same time; others wait in the queue
	minAdmit    = 4  // the same while renewals are late
	// the longest wait of an agent that does not understand a request to wait: it soon gives up
	silentWait = 3 * time.Second
	tellAfter  = time.Second // after which a replica asks an agent to wait
	waitSpare  = time.Second // how much longer than announced an agent should expect to wait
	// assumed time between two admissions before any is measured; rather too short, since a waiting
	// agent has no coordinator
	firstInterval = 500 * time.Microsecond
	minInterval   = 100 * time.Microsecond // the shortest time between two admissions
	// without progress for this long, the interval grows; the first of many agents take that long
	// anyway
	stallTime = time.Second
	slowAgain = 500 * time.Millisecond // how often Slower takes effect
)

// Admission decides when a session may begin. When a replica fails, thousands of agents connect to
// the next one at once. Each needs several exchanges with etcd, while agents that are already
// connected must keep renewing. So only a limited number of sessions begin at a time, and fewer
// while renewals are late. Agents that can be admitted soon wait in a queue. The others get a time
// to retry, spread at the measured rate of admissions (SAFE-11).
type Admission struct {
	mu       sync.Mutex
	running  int
	most     int           // at the same time
	queue    list.List     // of chan struct{}, closed when the agent is admitted
	over     chan struct{} // closed when nothing is admitted any longer
	ended    bool
	interval time.Duration // measured time between two admissions
	done     int           // admissions completed since …
	since    time.Time     // … this time, from which on at least one was always waiting or running
	progress time.Time     // when an admission last began on an idle replica, or completed
	booked   time.Time     // the latest retry time that was given to an agent
	slowed   time.Time
}

// NewAdmission returns an Admission that is open.
func NewAdmission() *Admission {
	return &Admission{most: admitAtOnce, interval: firstInterval, over: make(chan struct{})}
}

// Crowded is the error of an agent that cannot be admitted now.
type Crowded struct {
	After time.Duration // when there is room
}

func (c *Crowded) Error() string {
	return "too many agents come at once: go to another replica, or come again after " +
		c.After.Round(time.Millisecond).String()
}

// Refused returns the message that tells the agent when to come again.
func (c *Crowded) Refused() *protocol.Refused {
	return &protocol.Refused{Reason: protocol.Refused_UNAVAILABLE, Message: c.Error(), After: durationpb.New(c.After)}
}

// Patience says how long an agent can wait for its admission.
type Patience struct {
	Most time.Duration
	Tell func(most time.Duration) error // tells the agent to wait, and for how long; nil: not possible
}

// Impatient is for agents that do not understand a request to wait.
var Impatient = Patience{Most: silentWait}

// PatienceFor returns how long an agent waits if a replica asks it to. The time that a leader gives
// agents to return allows for two replicas that do not answer in one round. This is one replica
// that answers late (SAFE-1).
func PatienceFor(reconnectMax time.Duration) time.Duration {
	return max(reconnectMax/2, 2*protocol.AnswerTimeout) - protocol.AnswerTimeout - waitSpare
}

// ErrStopping means that the replica is stopping and admits no more agents.
var ErrStopping = errors.New("this replica stops: go to another")

// errTimeout means that an agent has waited as long as it can.
var errTimeout = errors.New("too many agents come at once")

// Enter waits until a session may begin. The caller must call leave when it has begun. The error is
// *Crowded if there is no room in time; its After is at most latest.
func (a *Admission) Enter(ctx context.Context, p Patience, latest time.Duration) (leave func(), err error) {
	a.mu.Lock()
	switch {
	case a.ended:
		a.mu.Unlock()
		return nil, ErrStopping
	case a.running < a.most && a.queue.Len() == 0:
		if a.running == 0 {
			a.progress = time.Now()
			a.done, a.since = 0, a.progress
		}
		a.running++
		a.mu.Unlock()
		return a.leave, nil
	case a.expectedInterval(time.Now())*time.Duration(a.queue.Len()) > p.Most:
		defer a.mu.Unlock()
		return nil, a.book(time.Now(), latest)
	}
	admitted := make(chan struct{})
	at := a.queue.PushBack(admitted)
	a.mu.Unlock()

	if err = a.await(ctx, admitted, p); err == nil {
		return a.leave, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-admitted: // at the same moment
		a.running--
		a.admitNext()
	default:
		a.queue.Remove(at)
	}
	if errors.Is(err, errTimeout) {
		return nil, a.book(time.Now(), latest)
	}
	return nil, err
}

// await waits until admitted is closed, and notifies the agent if that takes long.
func (a *Admission) await(ctx context.Context, admitted <-chan struct{}, p Patience) error {
	silent := p.Most
	if p.Tell != nil {
		silent = min(silent, tellAfter)
	}
	timer := time.NewTimer(silent)
	defer timer.Stop()
	for told := p.Tell == nil; ; told = true {
		select {
		case <-admitted:
			return nil
		case <-a.over:
			return ErrStopping
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		if told {
			return errTimeout
		}
		left := p.Most - silent
		if err := p.Tell(left + waitSpare); err != nil {
			return err
		}
		timer.Reset(left)
	}
}

// End sends all waiting agents away and admits no more.
func (a *Admission) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended {
		a.ended = true
		close(a.over)
	}
}

// leave completes an admission and measures the interval.
func (a *Admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.progress = now
	if a.done++; a.done == admitAtOnce {
		// While a crowd arrives, admissions take longer, also because agents have to be refused.
		// That says little about later ones, so the interval grows slowly.
		a.interval = max(minInterval, min(a.interval*5/4, now.Sub(a.since)/admitAtOnce))
		a.done, a.since = 0, now
	}
	if a.most < admitAtOnce && now.Sub(a.slowed) > slowAgain {
		a.most++
	}
	a.running--
	if a.admitNext(); a.running < a.most {
		a.done, a.since = 0, now // idle time is not part of the interval
	}
}

// admitNext admits agents from the queue while there is room. a.mu must be held.
func (a *Admission) admitNext() {
	for a.running < a.most && a.queue.Len() > 0 {
		admitted, _ := a.queue.Remove(a.queue.Front()).(chan struct{}) // the queue holds nothing else
		close(admitted)
		a.running++
	}
}

// expectedInterval returns the expected time between two admissions: the measured interval, or a
// longer one if there is no progress. a.mu must be held.
func (a *Admission) expectedInterval(now time.Time) time.Duration {
	if a.running == 0 {
		return a.interval
	}
	return max(a.interval, (now.Sub(a.progress)-stallTime)/time.Duration(a.most))
}

// book finds the time at which there is room for one more agent. The booked times are a little
// closer than the admissions, so that the queue never runs empty. a.mu must be held.
func (a *Admission) book(now time.Time, latest time.Duration) *Crowded {
	interval := a.expectedInterval(now)
	if soonest := now.Add(interval * time.Duration(a.queue.Len()+a.running)); a.booked.Before(soonest) {
		a.booked = soonest
	}
	next := a.booked.Add(interval * 3 / 4)
	after := next.Sub(now)
	if after > latest { // too many to give each its own time: spread them at random
		return &Crowded{latest/2 + rand.N(max(1, latest/2))}
	}
	a.booked = next
	return &Crowded{after}
}

// Slower admits fewer sessions at the same time. It is called when renewals are late.
func (a *Admission) Slower(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.slowed) < slowAgain {
		return
	}
	a.slowed = now
	a.most = max(minAdmit, a.most/2)
}
