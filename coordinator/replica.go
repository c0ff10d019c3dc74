package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/download"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/coordinator/query/source"
	"github.com/leasehold/leasehold/coordinator/tracing"
	"github.com/leasehold/leasehold/coordinator/webhook"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
	"google.golang.org/grpc"
)

// Config holds the values that a replica needs.
type Config struct {
	Shard      string        // its name
	ID         string        // of this replica; unique among all that ever ran beside it
	Listen     string        // the address to serve agents on; port 0 picks a free one
	Advertise  string        // the address that agents receive; empty: Listen
	SessionTTL time.Duration // ELECT-2; 0: store.DefaultSessionTTL
	Version    string
	// Downloads is the address to serve agent programs on, and the address that machines receive;
	// empty: they are not served.
	Downloads, AdvertiseDownloads string
	// StateFile is where the replica keeps what it knows of its shard and etcd (SAFE-15); empty: in
	// memory only.
	StateFile string
	// OwnEtcd: etcd is a part of Leasehold, and nothing but the leader compacts it.
	OwnEtcd bool
	// AwaitsBackup: etcd was made for a shard from a backup, and none may be created.
	AwaitsBackup bool

	// StreamsPerConnection bounds the agents' streams per connection; 0: what one agent needs. A
	// bench has many agents on one connection.
	StreamsPerConnection uint32
}

// Deps holds the parts that a replica works with.
type Deps struct {
	Store     store.Store
	Providers map[string]provider.Provider
	Balancers map[string]balancer.Balancer // load balancers, by name
	Webhooks  []*webhook.Hook              // to which decisions are sent while the replica leads
	Traces    *tracing.Sender              // to which healings are sent while the replica leads; nil: nowhere
	Logger    *slog.Logger
	// Authority secures the agents' streams and certifies agents; nil: streams are not secured, for
	// networks that exist in memory only.
	Authority gateway.Authority
	// Authorities issue workloads' certificates; nil: none.
	Authorities *authority.Set
	// Sources provide numbers from outside, such as metrics; nil: none.
	Sources *source.Set
	// Agents are the agent programs that Config.Downloads serves.
	Agents download.Agents
	// Secrets holds the keys for secrets; nil: none.
	Secrets SecretKeys
	// Listen opens the listener for agents; nil: TCP.
	Listen func(ctx context.Context, address string) (net.Listener, error)
	// Register adds services to the agents' port, for clients without a certificate; may be nil.
	Register func(grpc.ServiceRegistrar)
	// Ready is called once, with the address, when agents are served.
	Ready func(address string)
	// Ended returns which parts of this host's server ended by themselves; nil: there are no parts.
	Ended func() []store.PartEnds
	// Meter receives what is worth counting; nil: nothing is counted.
	Meter Meter
	// Before, if set, is called at each boundary between a transaction and a provider call, and
	// around each transaction of a plan, with the name of the boundary and the instance. Tests end
	// the leader there.
	Before func(boundary, instance string)
}

// SecretKeys are the keys for secrets.
type SecretKeys interface {
	gateway.SecretKeys
	// Follow reports changes of the keys until the context ends.
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

	cache        *cache.Cache
	capabilities map[string]store.ProviderCapabilities // of its providers
	journal      *journal

	mu           sync.Mutex
	term         *term // while this replica leads
	gateway      *gateway.Gateway
	status       ReplicaStatus // except what is read from its source
	disturbances int
	last         *store.Disturbance
	goesOn       map[string]time.Time // disturbances that are logged, and when each was noted last
	endSessions  context.CancelFunc
	sessionsGone chan struct{}
	publish      chan struct{} // signals a disturbance, another trust, or a reason to wait that is to be published

	clock  *clock
	known  *knowledge
	pulse  pulse
	page   string        // where browsers reach it; "": nowhere
	waits  *store.Waits  // why nothing is decided; nil: the store holds the shard
	served chan struct{} // closed and replaced when waits changes
}

// New returns a replica that has not started yet.
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
		cfg.SessionTTL = store.DefaultSessionTTL
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
		cache: cache.New(keys), publish: make(chan struct{}, 1), sessionsGone: make(chan struct{}),
		served: make(chan struct{}), capabilities: capabilitiesOf(deps.Providers),
	}
	r.journal, r.clock = newJournal(r), &clock{r: r}
	for _, p := range deps.Providers {
		if user, ok := p.(provider.SecretUser); ok {
			user.UseSecrets(r.secret)
		}
	}
	deps.Authorities.UseSecrets(r.secret)
	deps.Sources.UseSecrets(r.secret)
	for _, b := range deps.Balancers {
		if user, ok := b.(balancer.SecretUser); ok {
			user.UseSecrets(r.secret)
		}
	}
	return r, nil
}

// Run serves until ctx ends. Then it sends agents away and resigns; nothing is left running when it
// returns. It fails if it cannot listen, and waits for an etcd that is out of reach.
func (r *Replica) Run(ctx context.Context) error {
	listener, err := r.deps.Listen(ctx, r.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for agents on %s: %w", r.cfg.Listen, err)
	}
	defer listener.Close()
	downloads, err := r.listenForDownloads(ctx)
	if err != nil {
		return err
	}
	if downloads != nil {
		defer downloads.Close()
	}
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
	return r.serve(ctx, shard, listener, downloads)
}

// serve serves agents, and agent programs unless downloads is nil, until ctx ends or a part fails.
// Meanwhile the replica stands for election.
func (r *Replica) serve(ctx context.Context, shard store.Shard, listener, downloads net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gw, err := r.newGateway(shard.ID)
	if err != nil {
		return err
	}
	server, callers, err := r.agentsServer(gw, listener)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.gateway, r.status.ShardID = gw, shard.ID
	r.mu.Unlock()

	// The cache outlives the rest, so that the other parts still see changes while they stop.
	cacheCtx, endCache := context.WithCancel(context.WithoutCancel(ctx))
	var following sync.WaitGroup
	following.Go(func() { _ = r.cache.Run(cacheCtx, r.deps.Store) })
	defer following.Wait()
	defer endCache()

	var parts sync.WaitGroup
	parts.Go(func() {
		if err := server.Serve(callers); err != nil {
			cancel(fmt.Errorf("serve agents: %w", err))
		}
	})
	parts.Go(func() { _ = gw.Run(ctx) })
	if downloads != nil {
		parts.Go(func() {
			if err := r.serveDownloads(ctx, downloads, shard.ID); err != nil {
				cancel(fmt.Errorf("serve agent programs: %w", err))
			}
		})
	}
	defer r.cache.Listen(&shardWatcher{r: r, id: shard.ID, end: cancel})()
	defer r.cache.Listen(ownRecord{r})()
	defer r.cache.Listen(r.clock)()
	r.startWatchers(ctx, gw, &parts)
	defer r.startSessions(ctx, shard, &parts)()
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

func (r *Replica) newGateway(shardID string) (*gateway.Gateway, error) {
	return gateway.New(gateway.Config{Replica: r.cfg.ID, ShardID: shardID, Keys: r.keys}, gateway.Deps{
		Store: r.deps.Store, Cache: r.cache, Logger: r.log, Disturbed: r.disturbed, Journal: r.journal.write,
		Record: func(ctx context.Context, txn store.Txn, entry store.JournalEntry) (store.Revision, error) {
			return r.journal.commit(ctx, txn, entry)
		},
		Authority: r.deps.Authority,
		Secrets:   r.deps.Secrets,
		Meter:     r.deps.Meter,

		Authorities: r.deps.Authorities,
	})
}

// startSessions takes part in elections until ctx ends, the returned function is called or the
// replica abdicates.
func (r *Replica) startSessions(ctx context.Context, shard store.Shard, parts *sync.WaitGroup) (end func()) {
	sessions, end := context.WithCancel(ctx)
	r.mu.Lock()
	r.endSessions = end
	r.mu.Unlock()
	parts.Go(func() {
		defer close(r.sessionsGone)
		r.sessions(sessions, shard)
	})
	return end
}

// startWatchers starts what watches the replica itself, its files and its keys until ctx ends.
func (r *Replica) startWatchers(ctx context.Context, gw *gateway.Gateway, parts *sync.WaitGroup) {
	parts.Go(func() { r.pulse.run(ctx, r.stoodStill) })
	parts.Go(func() { r.watchVitals(ctx, gw.ShortestLease) })
	parts.Go(func() { r.publishTrust(ctx) })
	parts.Go(func() { r.publishAuthorities(ctx) })
	parts.Go(func() { r.watchCertificates(ctx) })
	parts.Go(func() { r.deps.Authorities.Run(ctx) })
	if r.deps.Secrets != nil {
		parts.Go(func() {
			r.deps.Secrets.Follow(ctx, func() {
				gw.SecretsChanged()
				r.pokePublish()
			})
		})
	}
}

// Abdicate gives up leadership forever and returns once that is done; agents are still served. It
// is for a program that stops its machines when it ends: its own actions must not look like
// failures to heal.
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

// sessions keeps a session with etcd, and stands for election within each, until ctx ends.
func (r *Replica) sessions(ctx context.Context, shard store.Shard) {
	sessions := store.NewSessions(r.deps.Store, r.cfg.SessionTTL)
	wait := 100 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := sessions.Run(ctx, func(ctx context.Context, lease store.Lease) error {
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

// session announces the replica and stands for election again and again while the lease holds.
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
		err = r.campaign(serving, lease, shard, since)
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
			r.log.Warn("term ended", "error", err)
		}
		// Candidates must not race when each term ends at once, as with an unreadable shard record.
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
	shortestPause = 100 * time.Millisecond // before the next election after a term that failed
	longestPause  = 2 * time.Second
	longTerm      = 10 * time.Second // a longer term did not fail at once
)

// errElection means that the election failed, so the session is of no further use.
var errElection = errors.New("election failed")

// campaign stands for election, leads once it has won, and resigns.
func (r *Replica) campaign(ctx context.Context, lease store.Lease, shard store.Shard, since time.Time) error {
	fence, err := store.Elect(ctx, r.deps.Store, r.keys, lease,
		store.Leader{Schema: store.Schema, Replica: r.cfg.ID, Since: since})
	if err != nil {
		return fmt.Errorf("%w: %w", errElection, err)
	}
	t := newTerm(r, fence, lease.ID, shard)
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

// claim updates the key in the election with the time at which leadership began: the key was
// created when the replica began to stand. The fence is the creation revision, which does not
// change.
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

func (r *Replica) lead(t *term) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = t
}
