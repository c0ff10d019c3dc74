package coordinator

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

const (
	vitalsEvery = time.Second
	// standstillFelt is how long after a standstill its effects are noticed: watches and leases are
	// found broken when they are used next.
	standstillFelt = 3 * time.Second
	// knownSavedEvery bounds how far the revision that a replica remembers on disk lags.
	knownSavedEvery = 10 * time.Second
)

// disturbed records that leases may have ended although their agents live. The leader, on this
// replica or another, then judges no instance lost until all agents had time to return (SAFE-1).
//
// If the replica itself was paused, that is the disturbance, and the cause of whatever it notices
// right afterwards. Otherwise status, which shows the last disturbance, would blame etcd.
func (r *Replica) disturbed(what string) {
	if still := r.pulse.stoodStill(time.Now().Add(-standstillFelt)); still > 0 && what != store.DisturbedRecordBack {
		r.noteDisturbance(stoodStillFor(still), true)
		return
	}
	r.noteDisturbance(what, false)
}

func stoodStillFor(still time.Duration) string {
	return fmt.Sprintf("this replica stood still for %s", still.Round(time.Second))
}

// disturbedBySilence records that etcd has not answered since a time, and whether etcd or this
// replica was the cause.
func (r *Replica) disturbedBySilence(heard time.Time) {
	silent := time.Since(heard)
	if still := r.pulse.stoodStill(heard); still >= silent/2 {
		r.noteDisturbance(stoodStillFor(still), true)
		return
	}
	r.noteDisturbance(fmt.Sprintf("etcd did not answer for %s", silent.Round(100*time.Millisecond)), false)
}

// outageOver is how long a disturbance must not be noted for the next of its kind to be another.
const outageOver = 10 * time.Second

// noteDisturbance records what happened, and whether this replica rather than etcd caused it. While
// it goes on it is recorded again and again, since agents have to return after its end; it is
// logged once.
func (r *Replica) noteDisturbance(what string, own bool) {
	now := time.Now()
	r.mu.Lock()
	news := r.last == nil || r.last.What != what || now.Sub(r.last.At) > time.Second
	if news {
		r.disturbances++
		r.last = &store.Disturbance{At: now.UTC(), What: what, Own: own}
	}
	maps.DeleteFunc(r.goesOn, func(_ string, noted time.Time) bool { return now.Sub(noted) > outageOver })
	_, known := r.goesOn[what]
	if r.goesOn == nil {
		r.goesOn = map[string]time.Time{}
	}
	r.goesOn[what] = now
	t := r.term
	r.mu.Unlock()
	if t != nil {
		t.evidence.Disturb(what)
		t.poke()
	}
	if news {
		r.deps.Meter.Disturbed()
		r.pokePublish()
	}
	if !known {
		r.log.Warn("disturbance", "what", what)
	}
}

// maxBearable is the longest standstill that is ignored, however long the leases are.
const maxBearable = 5 * time.Second

// bearable returns for how long etcd, or this process, may stall without a lease ending
// because of it, given the shortest lease of an agent here. A lease outlasts three reports, so an
// eighth more is harmless: on a busy replica, garbage collection alone may take two seconds.
// Without agents no standstill is tolerated.
func bearable(shortest time.Duration) time.Duration {
	return min(max(vitalsEvery, shortest/8), maxBearable)
}

// Bearable returns for how long this process may stall without ending an agent's lease.
func (r *Replica) Bearable() time.Duration {
	r.mu.Lock()
	gw := r.gateway
	r.mu.Unlock()
	if gw == nil {
		return bearable(0)
	}
	return bearable(gw.ShortestLease())
}

// shortestSince is the shortest lease that a replica may have served since etcd answered last. The
// sessions that are open when a stall is over do not show it: the stall may have ended others.
type shortestSince struct {
	now   func() time.Duration // 0: no agent is served
	known time.Duration
}

// see takes up the leases as they are now.
func (s *shortestSince) see() time.Duration {
	s.known = min(s.known, s.now())
	return s.known
}

// forget forgets leases that have gone: no stall that begins now can end them.
func (s *shortestSince) forget() { s.known = s.now() }

// watchVitals asks etcd every second how it is, and records as a disturbance what may have cost a
// living agent its lease. shortestLease is the shortest one that is served now; 0: there is none.
func (r *Replica) watchVitals(ctx context.Context, shortestLease func() time.Duration) {
	var before store.Vitals
	shortest := shortestSince{now: shortestLease, known: shortestLease()}
	heard, silent, saved := time.Now(), false, time.Now()
	var beside sync.WaitGroup // vitals are watched while a hold is retried, and while the disk hangs
	var holding, saving atomic.Bool
	defer r.saveKnown()
	defer beside.Wait()
	tick := time.NewTicker(vitalsEvery)
	defer tick.Stop()
	for {
		shortest.see()
		asked := time.Now()
		v, err := r.askVitals(ctx)
		bearable := bearable(shortest.see())
		silence := max(store.WatchSilence, bearable)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if time.Since(heard) > silence {
				silent = true
				r.disturbed("etcd does not answer")
			}
		default:
			r.etcdAnswered()
			if silent || time.Since(heard) > silence || time.Since(asked) > bearable {
				r.disturbedBySilence(heard)
			}
			known, what := compareVitals(before, v)
			if what != "" { // which no standstill of this replica explains
				r.noteDisturbance(what, false)
			}
			if why := r.compareKnown(known); why != "" && holding.CompareAndSwap(false, true) {
				beside.Go(func() {
					defer holding.Store(false)
					r.exchanged(ctx, why)
				})
			}
			if time.Since(saved) >= knownSavedEvery && saving.CompareAndSwap(false, true) {
				saved = time.Now()
				beside.Go(func() {
					defer saving.Store(false)
					r.saveKnown()
				})
			}
			before, heard, silent = known, time.Now(), false
			shortest.forget()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// compareKnown returns why etcd is not the one that this replica knows, and records its revision if
// it is. If etcd does not hold the shard there is nothing to compare: see wait.
func (r *Replica) compareKnown(v store.Vitals) (why string) {
	known := r.known.get()
	r.cache.View(func(c *cache.Content) {
		shard := c.Shard.Record
		if !c.Shard.Present() || shard.ID != known.ShardID {
			return
		}
		switch why = known.exchanged(shard, v); {
		case why != "":
		case shard.Generation > known.Generation:
			r.known.learn(shard, v)
		default:
			r.known.seen(v)
		}
	})
	return why
}

func (r *Replica) askVitals(ctx context.Context) (store.Vitals, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*vitalsEvery)
	defer cancel()
	return r.deps.Store.Vitals(ctx)
}

// compareVitals returns what has changed in etcd, if anything, and what to compare the next answer
// with. A member that knows of no leader, or of an older term than one asked before, knows less,
// and its answer is ignored.
func compareVitals(before, now store.Vitals) (known store.Vitals, what string) {
	known = now
	if now.Cluster == before.Cluster && (now.Leader == 0 || now.Term < before.Term) {
		known.Leader, known.Term = before.Leader, before.Term
	}
	switch {
	case before == (store.Vitals{}):
	case before.Cluster != known.Cluster:
		what = "etcd is another cluster than before"
	case known.Revision < before.Revision:
		what = "etcd's revision went backwards"
	case before.Leader != known.Leader:
		what = "etcd changed its leader"
	case before.Term != known.Term:
		what = "etcd held an election"
	}
	return known, what
}
