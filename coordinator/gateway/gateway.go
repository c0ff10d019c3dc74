package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
)

// Config is the configuration of a gateway.
type Config struct {
	Replica string
	ShardID string // the shard's random ID
	Keys    store.Keys
}

// Deps are a gateway's dependencies.
type Deps struct {
	Store  store.Store
	Cache  *cache.Cache
	Logger *slog.Logger
	// Secrets are the keys for secrets; nil: none.
	Secrets SecretKeys
	// Disturbed is called when renewals fail or come late (SAFE-1).
	Disturbed func(what string)
	// Journal writes an entry of the journal without waiting, or drops it.
	Journal func(ctx context.Context, entry store.JournalEntry)
	// Record commits a transaction together with its journal entry. Required with an authority.
	Record func(ctx context.Context, txn store.Txn, entry store.JournalEntry) (store.Revision, error)
	// Authority certifies agents and knows the trusted authorities; nil: streams are not secured,
	// for networks in memory only.
	Authority Authority
	// Authorities certify workloads' keys; nil: none.
	Authorities Authorities
	// Meter counts; nil: nothing is counted.
	Meter Meter
}

// The gateway's own times.
const (
	persistEvery   = time.Minute            // DET-16, and less often
	loadEvery      = 30 * time.Second       // DET-16, of a group whose size follows its load
	maxOldNews     = 400                    // bounds reports without news per second
	strayTTL       = 7 * 24 * time.Hour     // also of an agent that falls silent: its machine still is no orphan
	conflictEvery  = 10 * time.Minute       // how often the journal repeats that a second boot keeps trying
	callTimeout    = protocol.AnswerTimeout // one exchange with the store: an agent waits no longer for a welcome
	partingTime    = 2 * time.Second        // for agents to learn that this replica stops
	restoresAtOnce = 64
	// bounds state writes when many streams are late, on time again, or lost
	statesAtOnce = 64
	stateAgain   = time.Second // and up to twice that, until a late one is looked at again
)

// Gateway serves agents' streams.
type Gateway struct {
	protocol.UnimplementedGatewayServer
	cfg  Config
	deps Deps

	mu         sync.Mutex
	sessions   map[string]*session // the newest of each instance
	closing    bool
	blind      bool                 // the cache is interrupted
	failing    time.Time            // since when every renewal has failed; zero: renewals work
	strays     map[string]stray     // noted strays
	strayCount map[bool]int         // number of strays, by whether there is a claim
	unnoted    map[string]time.Time // agents without a record beyond the bound, and when each was last seen
	strayOn    store.Lease          // the lease of new strays; strayLock guards it
	refused    map[string]time.Time // boot conflicts in the journal already

	reports     reportWriter
	senders     senders
	peers       peers
	releases    atomic.Pointer[releases]
	timeouts    callTimeouts // for renewals by reports
	timers      sync.Pool    // pool of *sendTimer
	stateWriter stateWriter
	clients     *guard.Clients
	refusals    *guard.Refusals
	undelivered undelivered
	restores    *semaphore.Weighted // keys and records being looked at again
	states      *semaphore.Weighted // stream states being written
	strayLock   *semaphore.Weighted // a lock
	strayPace   *rate.Limiter
	wrongShard  atomic.Bool      // see isWrongShard
	admission   *guard.Admission // sessions that begin, and agents that join
	guesses     *guesses         // tokens that the cache does not show
	work        sync.WaitGroup   // goroutines of sessions beyond their streams
	life        context.Context
	end         context.CancelFunc
}

// New returns a gateway that serves no agent yet.
func New(cfg Config, deps Deps) (*Gateway, error) {
	switch {
	case cfg.Replica == "" || cfg.ShardID == "":
		return nil, errors.New("gateway needs a replica's and a shard's ID")
	case deps.Store == nil || deps.Cache == nil || deps.Logger == nil || deps.Disturbed == nil || deps.Journal == nil:
		return nil,
			errors.New("gateway needs a store, a cache, a logger, a journal and a receiver of disturbances")
	}
	if deps.Authority != nil && deps.Record == nil {
		return nil, errors.New("gateway needs a function that records who joins")
	}
	if own := (identity.Identity{
		Shard: cfg.ShardID, Role: identity.Coordinator,
		Name: cfg.Replica,
	}); deps.Authority != nil && own.Validate() != nil {
		return nil, fmt.Errorf("gateway: no certificate can carry the name of this replica: %w", own.Validate())
	}
	if deps.Meter == nil {
		deps.Meter = Unmetered{}
	}
	if deps.Authorities == nil {
		deps.Authorities = (*authority.Set)(nil)
	}
	g := &Gateway{
		cfg: cfg, deps: deps, sessions: map[string]*session{}, strays: map[string]stray{}, strayCount: map[bool]int{},
		unnoted: map[string]time.Time{}, refused: map[string]time.Time{},
		restores: semaphore.NewWeighted(restoresAtOnce), states: semaphore.NewWeighted(statesAtOnce),
		strayLock: semaphore.NewWeighted(1),
		strayPace: rate.NewLimiter(strayRate, strayBurst), admission: guard.NewAdmission(),
		refusals: guard.NewRefusals(deps.Logger, deps.Journal), guesses: newGuesses(), clients: guard.NewClients(),
	}
	g.reports.g, g.stateWriter.g, g.senders.g = g, g, g
	g.undelivered.log = deps.Logger
	g.peers.g, g.peers.views = g, map[viewOf]*view{}
	g.life, g.end = context.WithCancel(context.Background())
	g.timeouts.life = g.life
	return g, nil
}

// Run maintains the sessions until ctx ends; then it sends the agents away and waits for everything
// that it started.
func (g *Gateway) Run(ctx context.Context) error {
	stop := g.deps.Cache.Listen((*watcher)(g))
	defer stop()
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { g.refusals.Run(ctx) })
	parts.Go(func() { g.undelivered.run(ctx) })
	parts.Go(func() { g.followTrust(ctx) })
	parts.Go(func() { g.followAuthorities(ctx) })
	<-ctx.Done()
	g.mu.Lock()
	g.closing = true
	g.mu.Unlock()
	g.admission.End()
	for _, s := range g.all() {
		s.enqueue(
			&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Move{Move: &protocol.Move{Reason: "this replica stops"}}},
		)
	}
	return context.Cause(ctx)
}

// Drain waits until no agent is left or ctx ends, then ends every stream. It leaves the keys in
// etcd: the agents will be back, here or elsewhere, before their leases end.
func (g *Gateway) Drain(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil && (g.Streams() > 0 || g.reports.busy()) {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	for _, s := range g.all() {
		s.close(errReplicaStops)
	}
	g.mu.Lock()
	g.end() // under the lock, so that nothing begins after the wait
	g.mu.Unlock()
	unread := time.AfterFunc(partingTime, func() {
		for _, s := range g.all() {
			s.cancel(errReplicaStops)
		}
	})
	defer unread.Stop()
	g.work.Wait()
}

// Refusals returns the record of what this replica refuses.
func (g *Gateway) Refusals() *guard.Refusals { return g.refusals }

// Streams returns the number of agents that are served now.
func (g *Gateway) Streams() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sessions)
}

// OtherVersions counts the agents of another version than the given one, and returns some of their
// versions. An agent may report any text.
func (g *Gateway) OtherVersions(version string) (n int, some []string) {
	const most = 5
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		if s.agent == version {
			continue
		}
		n++
		if len(some) < most && !slices.Contains(some, s.agent) {
			some = append(some, s.agent)
		}
	}
	slices.Sort(some)
	return n, some
}

// ShortestLease returns the shortest lease of the agents that this replica serves; 0: it serves
// none.
func (g *Gateway) ShortestLease() (shortest time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.sessions {
		if shortest == 0 || s.ttl < shortest {
			shortest = s.ttl
		}
	}
	return shortest
}

// all lists the sessions.
func (g *Gateway) all() []*session {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]*session, 0, len(g.sessions))
	for _, s := range g.sessions {
		out = append(out, s)
	}
	return out
}

// Session returns an agent's stream.
func (g *Gateway) Session(stream grpc.BidiStreamingServer[protocol.AgentMessage, protocol.GatewayMessage]) error {
	s, err := g.begun(stream)
	if s == nil {
		return err
	}
	defer g.forget(s)
	return s.serve()
}

// begun begins a session on another goroutine. Beginning takes twice the stack that serving does,
// and a grown stack is seldom given back: with a hundred thousand streams it would dominate memory.
func (g *Gateway) begun(stream agentStream) (s *session, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, err = g.begin(stream)
	}()
	<-done
	return s, err
}

// begin begins a session, up to the welcome; nil if there is none.
func (g *Gateway) begin(stream agentStream) (*session, error) {
	end := endOf(stream.Context())
	if end == nil {
		return nil, status.Error(codes.Internal, "this server was made without the gateway's options")
	}
	hello, err := firstHello(stream, end)
	if err != nil {
		return nil, g.recordNoHello(stream.Context(), err)
	}
	s := newSession(g, stream, end, hello)
	if refusal := s.register(stream.Context()); refusal != nil {
		g.deps.Meter.StreamRefused(refusal.GetReason().String())
		g.deps.Logger.Debug("agent refused", "instance", s.instance, "reason", refusal.GetReason().String(),
			"why", refusal.GetMessage())
		return nil, s.stream.Send(refusedMessage(refusal))
	}
	// what changed before we were listed among the sessions
	g.deps.Cache.View(func(c *cache.Content) { g.check(c, s) })
	g.deps.Meter.StreamOpened()
	g.deps.Logger.Info("agent registered", "instance", s.instance, "epoch", s.epoch, "boot", s.bootID, "from", s.from())
	if err := s.greet(); err != nil {
		s.ended(err, nil)
		g.forget(s)
		return nil, err
	}
	return s, nil
}

// admit makes s the session of its instance and ends the previous one: the session that wrote alive
// earlier.
func (g *Gateway) admit(s *session) bool {
	older, ok := g.enter(s)
	if older != nil {
		older.close(errSuperseded)
	}
	return ok
}

// enter is admit, but returns the older session instead of ending it.
func (g *Gateway) enter(s *session) (older *session, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return nil, false
	}
	older = g.sessions[s.instance]
	if older != nil && older.openedAfter(s) {
		return s, true
	}
	g.sessions[s.instance] = s
	return older, true
}

func (g *Gateway) forget(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions[s.instance] == s {
		delete(g.sessions, s.instance)
	}
}

// letIn waits until a session may begin; the caller calls leave once it has begun.
func (g *Gateway) letIn(ctx context.Context, p guard.Patience) (leave func(), err error) {
	return g.admission.Enter(ctx, p, g.settings().ReconnectMax.D())
}

// renewed records whether a renewal worked. If none has worked for a third of a lease, agents
// should go elsewhere (DET-14).
func (g *Gateway) renewed(ok bool, ttl time.Duration) (sendAway bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ok {
		g.failing = time.Time{}
		return false
	}
	if g.failing.IsZero() {
		g.failing = time.Now()
	}
	return time.Since(g.failing) >= ttl/3
}

// leaving reports whether this replica no longer takes agents.
func (g *Gateway) leaving() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closing
}

// settings returns the shard's present settings.
func (g *Gateway) settings() store.ShardSettings {
	settings, _ := g.known()
	return settings
}

// known returns the shard's settings, or the defaults until they have been read.
func (g *Gateway) known() (settings store.ShardSettings, known bool) {
	settings = store.DefaultShardSettings()
	g.deps.Cache.View(func(c *cache.Content) {
		if known = c.Shard.Present(); known {
			settings = c.Shard.Record.Settings
		}
	})
	return settings, known
}

// addresses lists where agents find the replicas that serve now.
func (g *Gateway) addresses() []string {
	var out []string
	g.deps.Cache.View(func(c *cache.Content) { out = replicaAddresses(c) })
	return out
}

func replicaAddresses(c *cache.Content) []string {
	out := make([]string, 0, len(c.Replicas))
	for _, r := range c.Replicas {
		if r.Record.Address != "" { // a replica that waits for its shard serves no agent yet
			out = append(out, r.Record.Address)
		}
	}
	sort.Strings(out)
	return out
}

// goDo runs a function that outlives a stream's goroutine; the gateway waits for it when it ends.
// It reports false if the gateway is ending.
func (g *Gateway) goDo(do func(ctx context.Context)) bool {
	return g.spawn(func() {
		ctx, cancel := context.WithTimeout(g.life, 2*callTimeout)
		defer cancel()
		do(ctx)
	})
}

// spawn starts a goroutine that the gateway waits for when it ends. It reports false if the gateway
// is ending.
func (g *Gateway) spawn(do func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.life.Err() != nil {
		return false
	}
	g.work.Go(do)
	return true
}
