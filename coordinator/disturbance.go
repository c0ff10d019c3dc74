package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	vitalsEvery   = time.Second
	vitalsSilence = 3 * time.Second // as SAFE-3 has it for the watch
)

// disturbed notes that leases may have ended though their agents live: the leader, here or elsewhere, then judges nobody
// lost until all had time to return (SAFE-1).
func (r *Replica) disturbed(what string) {
	r.mu.Lock()
	news := r.last == nil || r.last.What != what || time.Since(r.last.At) > time.Second
	if news {
		r.disturbances++
		r.last = &store.Disturbance{At: time.Now().UTC(), What: what}
	}
	t := r.tenure
	r.mu.Unlock()
	if t != nil {
		t.evidence.Disturb(what)
		t.poke()
	}
	if news {
		r.deps.Meter.Disturbed()
		r.log.Warn("disturbance", "what", what)
		r.pokePublish()
	}
}

// mostBearable is the longest standstill that is none, whatever the leases.
const mostBearable = 5 * time.Second

// bearable is for how long etcd, or this process, may stand still without any lease ending by it, if the shortest that an agent here has had is so long. A lease outlasts three reports, so that an eighth of it
// more is nothing to it: on a busy replica of many agents collecting garbage alone may take two seconds. Without agents nothing is borne.
func bearable(shortest time.Duration) time.Duration {
	return min(max(vitalsEvery, shortest/8), mostBearable)
}

// Bearable is for how long this process may stand still without any lease of an agent here ending by it.
func (r *Replica) Bearable() time.Duration {
	r.mu.Lock()
	gw := r.gateway
	r.mu.Unlock()
	if gw == nil {
		return bearable(0)
	}
	return bearable(gw.ShortestLease())
}

// watchVitals asks etcd every second how it is, and calls what a living agent may have suffered from a disturbance.
func (r *Replica) watchVitals(ctx context.Context) {
	var before store.Vitals
	heard, silent := time.Now(), false
	var holds sync.WaitGroup // vitals are watched while a hold that cannot be written yet is tried again
	defer holds.Wait()
	tick := time.NewTicker(vitalsEvery)
	defer tick.Stop()
	for {
		asked := time.Now()
		v, err := r.askVitals(ctx)
		bearable := bearable(r.gateway.ShortestLease())
		silence := max(vitalsSilence, bearable)
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
				r.disturbed(fmt.Sprintf("etcd, or we, stood still for %s", time.Since(heard).Round(100*time.Millisecond)))
			}
			known, what := compareVitals(before, v)
			if what != "" {
				r.disturbed(what)
			}
			if before != (store.Vitals{}) && (before.Cluster != known.Cluster || known.Revision < before.Revision) {
				holds.Go(func() { r.exchanged(ctx, what) })
			}
			before, heard, silent = known, time.Now(), false
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *Replica) askVitals(ctx context.Context) (store.Vitals, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*vitalsEvery)
	defer cancel()
	return r.deps.Store.Vitals(ctx)
}

// compareVitals says what of etcd is not as it was, if anything, and what the next answer is to be compared with. A member that
// knows of no leader, or of an older term than one that was asked before, knows less, and is no news.
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
