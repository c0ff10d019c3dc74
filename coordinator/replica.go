package coordinator

import (
	"context"
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
	// StateFile is where the replica keeps what it knows of its shard and etcd (SAFE-15); empty: in memory alone.
	StateFile string

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
	publish      chan struct{} // poked when there is a disturbance, another trust, or a reason to wait, to publish

	known  *knowledge
	pulse  pulse
	waits  *store.Waits  // why nothing is decided; nil: the store holds our shard
	served chan struct{} // closed, and another made, when waits changes
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
		picture: picture.New(keys), publish: make(chan struct{}, 1), sessionsGone: make(chan struct{}), served: make(chan struct{}),
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
	if r.known, err = openKnowledge(r.cfg.StateFile, r.cfg.Shard); err != nil {
		return err
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
	defer r.picture.Listen(&shardWatcher{r: r, id: shard.ID})()
	defer r.picture.Listen(ownRecord{r})()
	parts.Go(func() { r.pulse.run(ctx) })
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
	wait := shortestPause
	for {
		serving, stop, err := r.whileServing(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		err = r.term(serving, lease, shard, since)
		waits := errors.Is(context.Cause(serving), errWaits)
		stop()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case waits:
			r.log.Warn("no election until etcd holds the shard again")
		case errors.Is(err, errElection):
			return err
		default:
			r.log.Warn("tenure ended", "error", err)
		}
		// What ends each term at once, such as a shard's record that cannot be read, must not make candidates race.
		if time.Since(began) > longTerm {
			wait = shortestPause
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
			wait = min(2*wait, longestPause)
		}
	}
}

const (
	shortestPause = 100 * time.Millisecond // before standing for election again after a term that failed
	longestPause  = 2 * time.Second
	longTerm      = 10 * time.Second // a term that lasted for longer did not fail at once
)

// errElection: standing for election failed, so that the session is of no use any more.
var errElection = errors.New("election failed")

// term stands for election, leads once it has won, and resigns.
func (r *Replica) term(ctx context.Context, lease store.Lease, shard store.Shard, since time.Time) error {
	fence, err := store.Elect(ctx, r.deps.Store, r.keys, lease, store.Leader{Schema: store.Schema, Replica: r.cfg.ID, Since: since})
	if err != nil {
		return fmt.Errorf("%w: %w", errElection, err)
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
	return err
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
