package coordinator

import (
	"crypto/x509"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/picture"
)

// Standing is how a replica is doing, for those who show it.
type Standing struct {
	Serving   string    // where agents are served; "" while they are not
	Streams   int       // of agents
	ShardID   string    // "" until the shard's record was read
	EtcdHeard time.Time // when etcd answered last; zero: never
	Leads     bool
	GraceEnd  time.Time     // of a leader: nobody is judged lost before (SAFE-1)
	History   time.Duration // to a leader: for how long etcd keeps its history at least; 0: not known
	Waits     string        // why nothing is decided: etcd does not hold the shard (SAFE-15); "" if it does
}

// Standing says how the replica is doing now. It costs nothing.
func (r *Replica) Standing() Standing {
	r.mu.Lock()
	s, gw, t, waits := r.standing, r.gateway, r.term, r.waits
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

// CountMachines says how many machines have no record (REC-8), and of how many records the machine ought to be there and is not listed. The
// leader alone knows. It looks at every instance.
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

// Certificate is one that the replica cannot do without.
type Certificate struct {
	Name       string // for people, and a label of metrics: one of a few
	From, Ends time.Time
	Problem    string // what else is wrong with it; "" if nothing is
}

// Certificates are that of the authority that issues to agents, and the replica's own on their streams. There are none where streams are not
// secured.
func (r *Replica) Certificates() (all []Certificate) {
	if r.deps.Authority == nil {
		return nil
	}
	if c := issuerOf(r.deps.Authority.Trust()); c != nil {
		all = append(all, Certificate{Name: "agents_authority", From: c.NotBefore, Ends: c.NotAfter})
	}
	r.mu.Lock()
	shard := r.standing.ShardID
	r.mu.Unlock()
	if shard == "" {
		return all // nobody is served yet
	}
	own, err := r.deps.Authority.Certificate(identity.Identity{Shard: shard, Role: identity.Coordinator, Name: r.cfg.ID})
	if err != nil {
		return append(all, Certificate{Name: "agents_server", Problem: "it cannot be made: " + err.Error()})
	}
	return append(all, Certificate{Name: "agents_server", From: own.Leaf.NotBefore, Ends: own.Leaf.NotAfter})
}

// issuerOf is the authority that issues now; nil if that is not known.
func issuerOf(trust identity.Trust) *x509.Certificate {
	for _, c := range trust.Authorities {
		if identity.Fingerprint(c) == trust.Issuer {
			return c
		}
	}
	return nil
}

// issuerEnds is when that one ends; zero if it is not known.
func issuerEnds(trust identity.Trust) time.Time {
	if c := issuerOf(trust); c != nil {
		return c.NotAfter.UTC()
	}
	return time.Time{}
}

// Picture is the shard as the replica sees it.
func (r *Replica) Picture() *picture.Picture { return r.picture }

// nowServing notes where agents are served; "" once they are sent away.
func (r *Replica) nowServing(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.standing.Serving = address
}

// etcdAnswered notes that etcd is there.
func (r *Replica) etcdAnswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.standing.EtcdHeard = time.Now()
}
