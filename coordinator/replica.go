package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/coordinator/picture"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// Config are the values that a replica needs.
type Config struct {
	Shard      string        // its name
	ID         string        // of this replica, different from all others that ever ran beside it
	Listen     string        // where agents are served; port 0 takes a free one
	Advertise  string        // where agents find us; empty: the address listened on
	SessionTTL time.Duration // ELECT-2; 0: 5s
	Version    string

	// StreamsPerConnection is how many agents' streams one connection may have; 0: what one agent needs. A bench has many agents on one.
	StreamsPerConnection uint32
}

// Deps are the parts that a replica works with.
type Deps struct {
	Store     store.Store
	Providers map[string]provider.Provider
	Logger    *slog.Logger
	// Authority secures the agents' streams and certifies agents; nil: they are not secured, which is for networks that exist in memory alone.
	Authority gateway.Authority
	// Secrets are the keys for secrets; nil: none.
	Secrets SecretKeys
	// Listen takes the address on which agents are served; nil is TCP.
	Listen func(ctx context.Context, address string) (net.Listener, error)
	// Ready is called once, when agents are served, with the address.
	Ready func(address string)
	// Meter is told what is worth counting; nil: nothing is.
	Meter Meter
	// Before, if set, is called at each boundary between a transaction and a provider call, and around each transaction of
	// a plan, with the name of the boundary and the instance. Tests die there.
	Before func(boundary, instance string)
}

// SecretKeys are the keys for secrets.
type SecretKeys interface {
	gateway.SecretKeys
	// Follow tells, until the context ends, when they are others.
	Follow(ctx context.Context, changed func())
}

// drainTime is how long agents get to leave a replica that stops.
const drainTime = 2 * time.Second

// Replica is one coordinator process.
type Replica struct {
	cfg  Config
	deps Deps
	keys store.Keys
	log  *slog.Logger

	picture *picture.Picture
	journal *journal

	mu           sync.Mutex
	tenure       *tenure // while we lead
	gateway      *gateway.Gateway
	standing     Standing // but for what is read where it is
	disturbances int
	last         *store.Disturbance
	endSessions  context.CancelFunc
	sessionsGone chan struct{}
	publish      chan struct{} // poked when there is a disturbance, or another trust, to publish
}

// New makes a replica that does nothing yet.
func New(cfg Config, deps Deps) (*Replica, error) {
	switch {
	case cfg.Shard == "" || cfg.ID == "":
		return nil, errors.New("coordinator needs the name of a shard and an ID of its own")
	case cfg.Listen == "":
		return nil, errors.New("coordinator needs an address to listen on for agents")
	case deps.Store == nil || deps.Logger == nil:
		return nil, errors.New("coordinator needs a store and a logger")
	case len(deps.Providers) == 0:
		return nil, errors.New("coordinator needs at least one provider")
	}
	if cfg.SessionTTL == 0 {
		cfg.SessionTTL = 5 * time.Second
	}
	if deps.Listen == nil {
		deps.Listen = func(ctx context.Context, address string) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", address)
		}
	}
	if deps.Ready == nil {
		deps.Ready = func(string) {}
	}
	if deps.Meter == nil {
		deps.Meter = Unmetered{}
	}
	if deps.Before == nil {
		deps.Before = func(string, string) {}
	}
	keys := store.KeysOf(cfg.Shard)
	r := &Replica{
		cfg: cfg, deps: deps, keys: keys, log: deps.Logger.With("replica", cfg.ID),
		picture: picture.New(keys), publish: make(chan struct{}, 1), sessionsGone: make(chan struct{}),
	}
	r.journal = newJournal(r)
	return r, nil
}

// Run serves until ctx ends: then agents are sent away, leadership is resigned, and everything of the replica is gone
// when it returns. It fails if it cannot listen; an etcd that is out of reach it waits for.
func (r *Replica) Run(ctx context.Context) error {
	listener, err := r.deps.Listen(ctx, r.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for agents on %s: %w", r.cfg.Listen, err)
	}
	defer listener.Close()
	if r.cfg.Advertise == "" {
		r.cfg.Advertise = listener.Addr().String()
	}
	shard, err := r.findShard(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gw, err := gateway.New(gateway.Config{Replica: r.cfg.ID, ShardID: shard.ID, Keys: r.keys}, gateway.Deps{
		Store: r.deps.Store, Picture: r.picture, Logger: r.log, Disturbed: r.disturbed, Journal: r.journal.write,
		Record: func(ctx context.Context, txn store.Txn, entry store.JournalEntry) (store.Revision, error) {
			return r.journal.commit(ctx, txn, entry)
		},
		Authority: r.deps.Authority,
		Secrets:   r.deps.Secrets,
		Meter:     r.deps.Meter,
	})
	if err != nil {
		return err
	}
	server, callers, err := r.agentsServer(gw, listener)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.gateway, r.standing.ShardID = gw, shard.ID
	r.mu.Unlock()

	// The picture outlives the rest, so that those who wind down still see what happens.
	pictureCtx, endPicture := context.WithCancel(context.WithoutCancel(ctx))
	var following sync.WaitGroup
	following.Go(func() { _ = r.picture.Run(pictureCtx, r.deps.Store) })
	defer following.Wait()
	defer endPicture()

	var parts sync.WaitGroup
	parts.Go(func() {
		if err := server.Serve(callers); err != nil {
			cancel(fmt.Errorf("serve agents: %w", err))
		}
	})
	parts.Go(func() { _ = gw.Run(ctx) })
	parts.Go(func() { r.watchVitals(ctx) })
	parts.Go(func() { r.publishTrust(ctx) })
	parts.Go(func() { r.watchCertificates(ctx) })
	if r.deps.Secrets != nil {
		parts.Go(func() {
			r.deps.Secrets.Follow(ctx, func() {
				gw.SecretsChanged()
				r.pokePublish()
			})
		})
	}
	sessions, endSessions := context.WithCancel(ctx)
	defer endSessions()
	r.mu.Lock()
	r.endSessions = endSessions
	r.mu.Unlock()
	parts.Go(func() {
		defer close(r.sessionsGone)
		r.sessions(sessions, shard)
	})
	r.log.Info("serving agents", "address", r.cfg.Advertise, "shard", r.cfg.Shard, "shard_id", shard.ID)
	r.nowServing(r.cfg.Advertise)
	r.deps.Ready(r.cfg.Advertise)
	<-ctx.Done()
	r.nowServing("")

	drain, done := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	gw.Drain(drain)
	done()
	server.Stop()
	parts.Wait()
	r.log.Info("stopped")
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Abdicate gives up leadership for good and returns once it has; agents are served on. It is for a program that
// takes its machines down with it: nothing it does to them may look like a failure to be healed.
func (r *Replica) Abdicate() {
	r.mu.Lock()
	end := r.endSessions
	r.mu.Unlock()
	if end == nil {
		return
	}
	end()
	<-r.sessionsGone
}

// findShard reads the shard's record, making it if we are the first (the random ID is made once and for all).
func (r *Replica) findShard(ctx context.Context) (store.Shard, error) {
	wait := 100 * time.Millisecond
	for told := false; ; told = true {
		shard, err := r.tryShard(ctx)
		if err == nil || errors.Is(err, store.ErrSchema) || errors.Is(err, store.ErrDenied) {
			return shard, err
		}
		if !told {
			r.log.Error("etcd does not answer, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return shard, context.Cause(ctx)
		case <-time.After(wait):
			wait = min(2*wait, 2*time.Second)
		}
	}
}

func (r *Replica) tryShard(ctx context.Context) (store.Shard, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	key := r.keys.Shard()
	kv, err := r.deps.Store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		id := make([]byte, 8)
		if _, err := rand.Read(id); err != nil {
			return store.Shard{}, err
		}
		shard := store.Shard{Schema: store.Schema, ID: hex.EncodeToString(id), Name: r.cfg.Shard, Created: time.Now().UTC(), Settings: store.DefaultShardSettings()}
		var why string
		if why, err = r.orphaned(ctx); err != nil {
			return store.Shard{}, err
		}
		if why != "" {
			shard.Hold = &store.Hold{By: "leasehold", Why: why, At: time.Now().UTC()}
			r.log.Warn("shard put on hold", "why", why)
		}
		_, err = r.deps.Store.Commit(ctx, store.Txn{Conditions: []store.Condition{store.Absent(key)}, Writes: []store.Write{store.Put(key, store.Encode(shard))}})
		if err == nil {
			return shard, nil
		}
		kv, err = r.deps.Store.Get(ctx, key) // another replica was first, or our answer was lost
	}
	if err != nil {
		return store.Shard{}, fmt.Errorf("read %s: %w", key, err)
	}
	v, err := store.Decode[store.Shard](kv)
	if err == nil && v.Record.ID == "" {
		err = fmt.Errorf("read %s: it has no ID", key)
	}
	v.Record.Settings = v.Record.Settings.WithDefaults()
	return v.Record, err
}

// sessions keeps a session with etcd, and within each stands for election, until ctx ends.
func (r *Replica) sessions(ctx context.Context, shard store.Shard) {
	wait := 100 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := store.RunSession(ctx, r.deps.Store, r.cfg.SessionTTL, func(ctx context.Context, lease store.Lease) error {
			return r.session(ctx, lease, shard)
		})
		if ctx.Err() != nil {
			return
		}
		r.log.Error("session with etcd ended, beginning another", "error", err)
		if time.Since(began) > 10*time.Second {
			wait = 100 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			wait = min(2*wait, 2*time.Second)
		}
	}
}

// session announces the replica and stands for election, again and again, for as long as the lease is ours.
func (r *Replica) session(ctx context.Context, lease store.Lease, shard store.Shard) error {
	since := time.Now().UTC()
	if err := r.announce(ctx, lease, since); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var announcing sync.WaitGroup
	announcing.Go(func() { r.keepAnnouncing(ctx, lease, since) })
	defer announcing.Wait()
	defer cancel()
	for {
		fence, err := store.Elect(ctx, r.deps.Store, r.keys, lease, store.Leader{Schema: store.Schema, Replica: r.cfg.ID, Since: since})
		if err != nil {
			return err
		}
		t := newTenure(r, fence, lease.ID, shard)
		r.lead(t)
		r.deps.Meter.Led(true)
		if err = r.claim(ctx, lease, fence); err == nil {
			err = r.checkStore(ctx, fence)
		}
		if err == nil {
			err = t.run(ctx)
		}
		r.lead(nil)
		r.deps.Meter.Led(false)
		if resignErr := r.resign(ctx, fence); resignErr != nil && err == nil {
			err = resignErr
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.log.Warn("tenure ended", "error", err)
	}
}

// claim writes into our key in the election since when we lead: it was made when we began to stand. The fence is the key's
// creation, which this does not change.
func (r *Replica) claim(ctx context.Context, lease store.Lease, fence store.Fence) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	rec := store.Leader{Schema: store.Schema, Replica: r.cfg.ID, Since: time.Now().UTC()}
	_, err := r.deps.Store.Commit(ctx, store.Txn{
		Conditions: []store.Condition{fence.Condition()},
		Writes:     []store.Write{store.PutLeased(fence.Key, store.Encode(rec), lease.ID)},
	})
	if err != nil {
		return fmt.Errorf("claim leadership: %w", err)
	}
	return nil
}

func (r *Replica) resign(ctx context.Context, fence store.Fence) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return fence.Resign(ctx, r.deps.Store)
}

func (r *Replica) lead(t *tenure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tenure = t
}
