package coordinator

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
)

const (
	// how often they are checked: no lease ends sooner after its stream is closed
	certificatesEvery = time.Second
	unservedEvery     = 5 * time.Second     // how often the log repeats that no agent can be served
	authorityNear     = 30 * 24 * time.Hour // how long before its end the log warns
	nearEvery         = 24 * time.Hour
)

// watchCertificates warns of the end of the authority. If it has ended, or this replica has no
// certificate for another reason, and no other replica has a better one, no agent can renew its
// lease anywhere. That is evidence against none of them, but a disturbance (SAFE-1).
func (r *Replica) watchCertificates(ctx context.Context) {
	if r.deps.Authority == nil {
		return
	}
	tick := time.NewTicker(certificatesEvery)
	defer tick.Stop()
	var warned, noted time.Time
	for {
		now := time.Now()
		if ends := issuerEnds(r.deps.Authority.Trust()); ends.Sub(now) < authorityNear &&
			(warned.IsZero() || now.Sub(warned) >= nearEvery) {
			warned = now
			r.log.Warn("the agents' authority ends, and with it every agent's certificate", "ends", ends, "next",
				"leasehold pki rotate --wait")
		}
		if why := r.unserved(now); why != "" && (noted.IsZero() || now.Sub(noted) >= unservedEvery) {
			noted = now
			r.noteDisturbance(why, false)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// unserved returns why agents can be served nowhere; "" if they can.
func (r *Replica) unserved(now time.Time) (why string) {
	for _, c := range r.Certificates() {
		switch {
		case c.Problem != "":
			why = "agents cannot be served: no certificate can be made for this replica"
		case !now.Before(c.Ends):
			why = "agents cannot be served: the certificate of their authority or of this replica has ended"
		}
	}
	if why == "" {
		return ""
	}
	r.cache.View(func(c *cache.Content) {
		for id, other := range c.Replicas {
			if id != r.cfg.ID && now.Before(other.Record.IssuerEnds) {
				why = ""
			}
		}
	})
	return why
}
