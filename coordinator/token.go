package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// tokenSpare is how long a join token outlives the time in which its machine should use it. The
// instance's phase decides whether it is still awaited; that timer does not run while no replica
// serves, and the token must not end before (SAFE-5).
const tokenSpare = 2 * time.Hour

// joinToken lets one new machine join (SEC-2); zero if streams are not secured.
type joinToken struct {
	secret string // known to the machine alone
	lease  store.LeaseID
	write  store.Write
}

// grantTokens returns the writes of the join tokens that actions grant to machines which people set
// up (PROV-9). The person has the token; etcd has its hash. If the transaction fails, the lease
// ends unused.
func (t *term) grantTokens(ctx context.Context, batch []*plan.Action) ([]store.Write, error) {
	var writes []store.Write
	for _, a := range batch {
		if a.Token == nil {
			continue
		}
		lease, err := t.grantToken(ctx, a.Token.Valid)
		if err != nil {
			return nil, err
		}
		writes = append(writes, store.PutLeased(a.Token.Key, tokenOf(a.Token.Instance), lease))
	}
	return writes, nil
}

func (t *term) grantToken(ctx context.Context, valid time.Duration) (store.LeaseID, error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	lease, err := t.r.deps.Store.Grant(ctx, valid)
	if err != nil {
		return 0, fmt.Errorf("grant lease for a join token: %w", err)
	}
	return lease.ID, nil
}

func tokenOf(instance string) []byte {
	return store.Encode(store.JoinToken{Schema: store.Schema, Instance: instance, Issued: time.Now().UTC()})
}

// newToken makes the token for one call. It is valid once its write is in etcd.
func (t *term) newToken(ctx context.Context, rec store.Instance, call time.Duration) (joinToken, error) {
	if t.r.deps.Authority == nil {
		return joinToken{}, nil
	}
	lease, err := t.grantToken(ctx, rec.Spec.RegistrationTimeout.D()+call+tokenSpare)
	if err != nil {
		return joinToken{}, err
	}
	secret := store.NewToken()
	return joinToken{
		secret: secret, lease: lease,
		write: store.PutLeased(t.r.keys.Token(store.TokenHash(secret)), tokenOf(rec.ID), lease),
	}, nil
}

// hash returns the token's hash, as etcd stores it; "" if there is none.
func (j joinToken) hash() string {
	if j.secret == "" {
		return ""
	}
	return store.TokenHash(j.secret)
}

func (j joinToken) writes() []store.Write {
	if j.secret == "" {
		return nil
	}
	return []store.Write{j.write}
}

// drop revokes a token that no machine has or will have: a provider without room is called again
// and again, each time with a token of its own.
func (j joinToken) drop(ctx context.Context, t *term) {
	if j.secret == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	_ = t.r.deps.Store.Revoke(ctx, j.lease) // otherwise it expires
}

// ca is what the agents are to trust.
func (t *term) ca() string {
	if t.r.deps.Authority == nil {
		return ""
	}
	return string(t.r.deps.Authority.Trust().PEM())
}
