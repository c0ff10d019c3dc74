package gateway

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/store"
)

// maxToken bounds the length of a token; ours have 52 characters.
const maxToken = 200

// errJoinRefused is the answer to every refused join: it reveals no reason.
var errJoinRefused = status.Error(codes.PermissionDenied, "join refused")

// notJoined says why a join is refused, for journal and log.
type notJoined struct {
	why    string // one of the phrases in this file
	detail string
}

func (e *notJoined) Error() string { return e.why }

// Join exchanges a join token for an agent's first certificate (SEC-2).
func (g *Gateway) Join(ctx context.Context, req *protocol.JoinRequest) (*protocol.Certificate, error) {
	if g.deps.Authority == nil {
		return nil, status.Error(codes.Unimplemented, "streams are not secured here: agents do not join")
	}
	if _, ok := protocol.SupportedVersions().Common(versionsOf(req)); !ok {
		f := foreign(versionsOf(req))
		f.What, f.Claimed = "join refused", req.GetInstance()
		_, f.Address = peerOf(ctx)
		g.refusals.Add(f)
		g.delayRefusal(ctx)
		return nil, status.Error(codes.InvalidArgument, "join: "+f.Detail)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	who, address := peerOf(ctx)
	chain, err := g.join(ctx, who, address, req)
	var refused *notJoined
	switch {
	case err == nil:
		answer := &protocol.Certificate{Chain: chain, Issued: timestamppb.Now()}
		if trust := g.deps.Authority.Trust(); len(g.wider(trust)) == 0 {
			answer.Trust = trustMessage(trust)
		}
		return answer, nil
	case errors.As(err, &refused):
		g.refusals.Add(guard.Refusal{
			Rule: "SEC-2", What: "join refused", Why: refused.why, Address: address,
			Claimed: req.GetInstance(), Detail: refused.detail,
		})
		return nil, errJoinRefused
	case ctx.Err() == nil:
		g.deps.Logger.Warn("agent could not join", "instance", req.GetInstance(), "from", address, "error", err)
	}
	return nil, status.Error(codes.Unavailable,
		"this replica cannot let agents join now: try another one, or try again soon")
}

// joining is what etcd holds of an instance that wants to join.
type joining struct {
	token    store.Versioned[store.JoinToken]
	joined   store.Versioned[store.Joined]
	instance store.Versioned[store.Instance]
}

// join decides. The cache suffices for a refusal; before a join is accepted, etcd is asked.
func (g *Gateway) join(ctx context.Context, who *Peer, address string, req *protocol.JoinRequest) ([][]byte, error) {
	if err := g.joinable(who, req); err != nil {
		return nil, err
	}
	hash := store.TokenHash(req.GetToken())
	var seen joining
	g.deps.Cache.View(func(c *cache.Content) {
		seen = joining{token: c.Tokens[hash], joined: c.Joined[req.GetInstance()]}
	})
	switch {
	case seen.token.Present() || seen.joined.Present():
		if err := seen.lost(hash, req.GetInstance()); err != nil {
			return nil, err
		}
	case !g.guesses.allow(guard.SourceOf(address)):
		// the cache may be behind, so etcd is asked, but not for a guessed token
		return nil, &notJoined{"token unknown or expired", "etcd was not asked: there were too many such"}
	}
	leave, err := g.letIn(ctx, guard.Impatient)
	if err != nil {
		return nil, err
	}
	defer leave()
	key, err := identity.ReadRequest(req.GetRequest())
	if err != nil {
		return nil, &notJoined{"the request is malformed, or its key is not ECDSA P-256 or has not signed it", err.Error()}
	}
	fingerprint, err := identity.KeyPrint(key)
	if err != nil {
		return nil, err
	}
	return g.exchange(ctx, address, req, store.Joined{
		Schema: store.Schema, Instance: req.GetInstance(), Token: hash, Key: fingerprint,
		From: clip.End(address, maxName), Replica: g.cfg.Replica,
	})
}

// joinable checks only the call.
func (g *Gateway) joinable(who *Peer, req *protocol.JoinRequest) error {
	switch {
	case who == nil:
		return &notJoined{why: "the connection is not secured"}
	case !identity.IsName(req.GetInstance()) || req.GetToken() == "" || len(req.GetToken()) > maxToken ||
		!identity.IsName(req.GetShard()):
		return &notJoined{why: "the call is malformed"}
	case req.GetShard() != g.cfg.ShardID:
		return &notJoined{"it is for another shard", "shard " + req.GetShard()}
	case len(who.Chain) > 0 && who.Identity != g.agentIdentity(req.GetInstance()):
		return &notJoined{"the connection shows another's certificate", who.Identity.String()}
	}
	return nil
}

// lost returns why a token can never be used for an instance, or nil.
func (j joining) lost(hash, instance string) error {
	switch {
	case j.token.Present() && j.token.Record.Instance != instance:
		return &notJoined{"the token is another instance's", "of " + j.token.Record.Instance}
	case j.joined.Present() && j.joined.Record.Token != hash && j.token.Present():
		return &notJoined{"the instance has joined with another of its tokens", ""}
	case j.joined.Present() && j.joined.Record.Token != hash:
		return &notJoined{"token unknown or expired", "the instance has joined"}
	}
	return nil
}

// exchange consumes the token and issues the certificate. Of concurrent joins, on any replica,
// exactly one finds the token unused, because the transaction compares it. The same key may ask
// again, since the answer may have been lost.
func (g *Gateway) exchange(ctx context.Context, address string, req *protocol.JoinRequest,
	rec store.Joined,
) (chain [][]byte, err error) {
	var used store.Versioned[store.JoinToken]
	err = retryConflicts(ctx, func() error {
		j, err := g.readJoining(ctx, rec)
		if err != nil {
			return err
		}
		if err := j.lost(rec.Token, rec.Instance); err != nil {
			return err
		}
		in := j.instance.Record
		switch {
		case j.joined.Present() && j.joined.Record.Key != rec.Key:
			return &notJoined{"the token was used with another key", "from " + j.joined.Record.From}
		case !j.joined.Present() && !j.token.Present():
			return &notJoined{"token unknown or expired", ""}
		case !j.instance.Present() || in.Phase == store.Deleting:
			return &notJoined{"the instance is gone", ""}
		case !j.joined.Present() && in.Phase != store.Creating && in.Phase != store.Booting:
			return &notJoined{"the instance is no longer waited for", "it is " + string(in.Phase)}
		}
		// Before anything is written: an authority that cannot issue must not use up the token.
		if chain, _, err = g.deps.Authority.Issue(req.GetRequest(), g.agentIdentity(rec.Instance),
			g.settings().Certificate.D()); err != nil {
			return fmt.Errorf("issue certificate: %w", err)
		}
		if j.joined.Present() {
			return nil
		}
		used = j.token
		rec.At = time.Now().UTC()
		_, err = g.deps.Record(ctx, store.Txn{
			Conditions: []store.Condition{
				j.token.Unchanged(), j.instance.Unchanged(),
				store.Absent(g.cfg.Keys.Joined(rec.Instance)),
			},
			Writes: []store.Write{
				store.Put(g.cfg.Keys.Joined(rec.Instance), store.Encode(rec)),
				store.Delete(j.token.Key),
			},
		}, store.JournalEntry{
			Rule: "SEC-2", What: "machine joined", Why: "it used its token", Group: in.Group, Instance: in.ID,
			Slot:     in.Place(),
			Facts:    []store.Fact{{Kind: store.FactFrom, Name: address}, {Kind: store.FactKey, Name: rec.Key}},
			Revision: j.instance.Modified,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if used.Present() {
		if used.Lease != 0 { // nothing is on it any longer; otherwise it expires by itself
			g.goDo(func(ctx context.Context) { _ = g.deps.Store.Revoke(ctx, used.Lease) })
		}
		g.deps.Logger.Info("machine joined", "instance", rec.Instance, "from", address, "key", rec.Key)
	}
	return chain, nil
}

// readJoining reads the token first: if it is used meanwhile, the records read later show that.
func (g *Gateway) readJoining(ctx context.Context, rec store.Joined) (j joining, err error) {
	if j.token, err = readRecord[store.JoinToken](ctx, g.deps.Store, g.cfg.Keys.Token(rec.Token)); err != nil {
		return j, err
	}
	if j.joined, err = readRecord[store.Joined](ctx, g.deps.Store, g.cfg.Keys.Joined(rec.Instance)); err != nil {
		return j, err
	}
	j.instance, err = readRecord[store.Instance](ctx, g.deps.Store, g.cfg.Keys.Instance(rec.Instance))
	j.instance.Record.ID = rec.Instance
	return j, err
}

// readRecord reads a record; an absent one is not Present.
func readRecord[T any](ctx context.Context, s store.Store, key string) (store.Versioned[T], error) {
	kv, err := s.Get(ctx, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Versioned[T]{}, nil
	case err != nil:
		return store.Versioned[T]{}, err
	}
	return store.Decode[T](kv)
}

// How often to read tokens from etcd that the cache does not show: tokens of machines that are
// faster than our watch, and guesses (SEC-5).
const (
	guessRate     = 5 // a second, from one address
	guessBurst    = 20
	allGuessRate  = 50 // from all together
	allGuessBurst = 100
	guessPaces    = 1024 // buckets, which addresses share
)

// guesses limits them, in memory that does not grow.
type guesses struct {
	seed maphash.Seed
	all  *rate.Limiter

	mu   sync.Mutex
	each [guessPaces]*rate.Limiter
}

func newGuesses() *guesses {
	return &guesses{seed: maphash.MakeSeed(), all: rate.NewLimiter(allGuessRate, allGuessBurst)}
}

func (g *guesses) allow(host string) bool {
	i := maphash.String(g.seed, host) % guessPaces
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.each[i] == nil {
		g.each[i] = rate.NewLimiter(guessRate, guessBurst)
	}
	return g.each[i].Allow() && g.all.Allow()
}
