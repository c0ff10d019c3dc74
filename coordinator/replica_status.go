package coordinator

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/cache"
)

// ReplicaStatus is how a replica is doing, for health checks, metrics and logs.
type ReplicaStatus struct {
	Serving   string    // the address at which agents are served; "" while they are not
	Streams   int       // of agents
	ShardID   string    // "" until the shard's record was read
	EtcdHeard time.Time // the last answer of etcd; zero: none yet
	Leads     bool
	GraceEnd  time.Time     // of a leader: no instance is judged lost before (SAFE-1)
	History   time.Duration // of a leader: the least age of history that etcd keeps; 0: not known
	Waits     string        // why nothing is decided: etcd does not hold the shard (SAFE-15); "" if it does
}

// Working reports whether the replica's loops answer before ctx ends: the cache and, while it
// leads, the leader's loop. It asks nothing of etcd, which may be down.
func (r *Replica) Working(ctx context.Context) bool {
	answered := make(chan struct{})
	go func() { // outlives this call only where it hangs, and systemd ends the process then
		defer close(answered)
		r.Status()
		r.cache.View(func(*cache.Content) {})
	}()
	select {
	case <-answered:
	case <-ctx.Done():
		return false
	}
	r.mu.Lock()
	t := r.term
	r.mu.Unlock()
	if t == nil {
		return true
	}
	select {
	case t.beats <- struct{}{}:
		return true
	case <-ctx.Done():
		return false // or the term has just ended: the next call will tell
	}
}

// Status returns how the replica is doing now. It is cheap.
func (r *Replica) Status() ReplicaStatus {
	r.mu.Lock()
	s, gw, t, waits := r.status, r.gateway, r.term, r.waits
	r.mu.Unlock()
	if waits != nil {
		s.Waits = waits.Why
	}
	if gw != nil {
		s.Streams = gw.Streams()
	}
	if t != nil {
		s.Leads, s.GraceEnd, s.History = true, t.evidence.GraceEnd(), time.Duration(t.kept.Load())
	}
	return s
}

// CountMachines returns how many machines have no record (REC-8), and how many records lack a
// listed machine that should exist. Only the leader knows. It looks at every instance.
func (r *Replica) CountMachines() (orphans, missing int, leads bool) {
	r.mu.Lock()
	t := r.term
	r.mu.Unlock()
	if t == nil {
		return 0, 0, false
	}
	orphans, missing = t.evidence.CountMachines()
	return orphans, missing, true
}

// Certificate is one that the replica needs.
type Certificate struct {
	Name       string // one of a few; for people, and a label of metrics
	From, Ends time.Time
	Problem    string // what else is wrong with it; "" if nothing is
}

// Certificates returns the certificate of the authority that issues to agents, and the replica's
// own for their streams. There are none if streams are not secured.
func (r *Replica) Certificates() (all []Certificate) {
	if r.deps.Authority == nil {
		return nil
	}
	if c := issuerOf(r.deps.Authority.Trust()); c != nil {
		all = append(all, Certificate{Name: "agents_authority", From: c.NotBefore, Ends: c.NotAfter})
	}
	r.mu.Lock()
	shard := r.status.ShardID
	r.mu.Unlock()
	if shard == "" {
		return all // no agent is served yet
	}
	own, err := r.deps.Authority.Certificate(identity.Identity{
		Shard: shard, Role: identity.Coordinator,
		Name: r.cfg.ID,
	})
	if err != nil {
		return append(all, Certificate{Name: "agents_server", Problem: "it cannot be made: " + err.Error()})
	}
	return append(all, Certificate{Name: "agents_server", From: own.Leaf.NotBefore, Ends: own.Leaf.NotAfter})
}

// issuerOf returns the authority that issues now; nil if it is not known.
func issuerOf(trust identity.Trust) *x509.Certificate {
	for _, c := range trust.Authorities {
		if identity.Fingerprint(c) == trust.Issuer {
			return c
		}
	}
	return nil
}

// issuerEnds returns when that authority ends; zero if it is not known.
func issuerEnds(trust identity.Trust) time.Time {
	if c := issuerOf(trust); c != nil {
		return c.NotAfter.UTC()
	}
	return time.Time{}
}

// Cache returns the shard as the replica sees it.
func (r *Replica) Cache() *cache.Cache { return r.cache }

// nowServing records the address at which agents are served; "" once they are sent away.
func (r *Replica) nowServing(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Serving = address
}

// etcdAnswered records that etcd answered.
func (r *Replica) etcdAnswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.EtcdHeard = time.Now()
}
