package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/cloud"
	"github.com/leasehold/leasehold/cmd/bench/parts"
	"github.com/leasehold/leasehold/cmd/bench/seed"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
)

// Config describes the shard.
type Config struct {
	Shard        string // a unique name
	Agents       int
	Interval     time.Duration
	LeaseTTL     time.Duration // 0: as the interval has it
	GroupSize    int
	Shared       int           // connections of all agents to each replica; 0: each has its own, over TLS
	Rate         float64       // agents that begin per second
	ReconnectMax time.Duration // the longest that an agent waits before it reconnects
	Certificates time.Duration // how long the instances' certificates last; 0: they have none
	Replicas     int           // maximum; with more than one, agents keep a second connection warm
}

// Deps are a trial's collaborators.
type Deps struct {
	Version string
	// Open opens the etcd at an address or, if that is empty, the one that was named. The returned
	// function closes it.
	Open func(ctx context.Context, address string) (store.Store, func() error, error)
	// Env is the environment by which a part finds the etcd that was named.
	Env []string
	// Refuse returns why the etcd that was named cannot be used.
	Refuse func(ctx context.Context, st store.Store) error
	// Own: the etcd is the bench's own.
	Own bool
	// Tell reports progress, about twice a second.
	Tell func(doing, far string)
}

// Trial is a running shard.
type Trial struct {
	cfg  Config
	deps Deps

	dir      string
	etcd     *parts.Part // nil: another's
	address  string      // address of etcd; "": the one that was named
	store    store.Store
	close    func() error
	wrote    bool
	shard    seed.Shard
	seen     *observer
	watching context.CancelFunc
	cloud    *cloud.Cloud
	feeding  sync.WaitGroup
	ended    chan struct{}
	replicas []*replica
	crowds   crowds
	usage    *usage

	mu      sync.Mutex
	problem error // first error of the background goroutines
}

// replica is one of the shard's replicas.
type replica struct {
	*parts.Part
	id, address, http string
	killed            bool
}

// authorityLifetime is longer than any bench.
const authorityLifetime = 30 * 24 * time.Hour

// Begin starts an etcd if needed, writes the shard and starts the first replica. No agent has begun
// when it returns. End must be called, also after an error.
func Begin(ctx context.Context, cfg Config, deps Deps) (*Trial, error) {
	t := &Trial{
		cfg: cfg, deps: deps, ended: make(chan struct{}), watching: func() {},
		close: func() error { return nil }, usage: newUsage(),
	}
	var err error
	if t.dir, err = os.MkdirTemp("", "leasehold-bench-"); err != nil {
		return t, err
	}
	if err := t.findEtcd(ctx); err != nil {
		return t, err
	}
	deps.Tell("writing the shard", "")
	t.wrote = true
	t.shard, err = seed.Write(ctx, t.store, seed.Plan{
		Shard: cfg.Shard, Instances: cfg.Agents, GroupSize: cfg.GroupSize, Provider: cloud.Name, Zone: cloud.Zone,
		Interval: cfg.Interval, LeaseTTL: cfg.LeaseTTL,
		ReconnectMax: cfg.ReconnectMax, Certificates: cfg.Certificates,
	})
	if err != nil {
		return t, err
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.watching = stop
	t.seen = observe(watch, t.store, store.KeysOf(cfg.Shard), t.shard)
	if t.cloud, err = cloud.Open(ctx, filepath.Join(t.dir, "cloud.sock"), t.shard.ID, t.shard.Instances); err != nil {
		return t, err
	}
	if cfg.Shared == 0 {
		if err := pki.Init(filepath.Join(t.dir, "pki"),
			map[pki.Kind]time.Duration{pki.Agents: authorityLifetime}); err != nil {
			return t, err
		}
	}
	if cfg.Certificates > 0 {
		if err := pki.InitWorkloads(filepath.Join(t.dir, "pki"), seed.Authority, authorityLifetime); err != nil {
			return t, err
		}
	}
	for range cfg.Replicas {
		agents, err := freeAddress(ctx)
		if err != nil {
			return t, err
		}
		http, err := freeAddress(ctx)
		if err != nil {
			return t, err
		}
		t.replicas = append(t.replicas,
			&replica{id: "replica-" + string(rune('a'+len(t.replicas))), address: agents, http: http})
	}
	if err := t.startReplica(ctx, t.replicas[0]); err != nil {
		return t, err
	}
	seeing, cancel := context.WithTimeoutCause(ctx, maxBeginning,
		fmt.Errorf("the leader has not seen all groups after %s", maxBeginning))
	defer cancel()
	err = t.await(seeing, "waiting for the leader to see the shard", func() (string, bool) {
		n := t.seen.statuses()
		return of(n, len(t.shard.Groups), "groups"), n == len(t.shard.Groups)
	})
	return t, err
}

// maxBeginning is how long a leader may take to see a shard: with 100,000 instances it needs ten
// seconds.
const maxBeginning = 5 * time.Minute

func (t *Trial) findEtcd(ctx context.Context) error {
	if t.deps.Own {
		t.deps.Tell("starting etcd", "")
		p, err := t.start(ctx, "etcd", nil, "etcd", "--dir", t.dir)
		if err != nil {
			return err
		}
		t.etcd, t.address = p, p.Address
	}
	st, closer, err := t.deps.Open(ctx, t.address)
	if err != nil {
		return err
	}
	t.store, t.close = st, closer
	if t.deps.Own {
		return nil
	}
	return t.deps.Refuse(ctx, st)
}

// start starts a part and measures its usage.
func (t *Trial) start(ctx context.Context, name string, env []string, args ...string) (*parts.Part, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p, err := parts.Start(ctx, parts.Spec{Name: name, Args: append([]string{"part"}, args...), Dir: t.dir, Env: env})
	if err != nil {
		return nil, err
	}
	t.usage.watch(name, p.PID())
	return p, nil
}

func (t *Trial) startReplica(ctx context.Context, r *replica) (err error) {
	t.deps.Tell("starting "+r.id, "")
	args := []string{
		"replica", "--id", r.id, "--listen", r.address, "--http", r.http, "--pki", filepath.Join(t.dir, "pki"), "--dir",
		t.dir,
		"--cloud", filepath.Join(t.dir, "cloud.sock"), "--shard", t.cfg.Shard,
	}
	if t.cfg.Shared > 0 {
		args = append(args, "--streams", strconv.Itoa(t.cfg.Agents))
	}
	if t.cfg.Certificates > 0 {
		args = append(args, "--authority", filepath.Join(t.dir, "pki", string(pki.WorkloadsKind(seed.Authority))))
	}
	if t.address != "" {
		args = append(args, "--etcd", t.address)
	}
	r.Part, err = t.start(ctx, r.id, t.deps.Env, args...)
	return err
}

// freeAddress returns an address on which nothing listens now. If another process takes it
// meanwhile, the part fails to start, and says so.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// startCrowd starts the agents' processes. No agent begins yet.
func (t *Trial) startCrowd(ctx context.Context) error {
	n := 1
	if t.cfg.Shared == 0 {
		each := 1
		if t.cfg.Replicas > 1 {
			each = 2 // the second one is kept warm
		}
		n = (t.cfg.Agents*each + maxConnections - 1) / maxConnections
	}
	var coordinators []string
	for _, r := range t.replicas {
		coordinators = append(coordinators, r.address)
	}
	for i := range n {
		t.deps.Tell("starting agents' processes", of(i, n, ""))
		c, err := t.startCrowdPart(ctx, i, coordinators, t.cfg.Rate/float64(n))
		if err != nil {
			return err
		}
		t.crowds.all = append(t.crowds.all, c)
	}
	t.feeding.Go(t.feed)
	return nil
}

// maxConnections bounds the connections of one process of agents: below the usual limit of
// descriptors of a process.
const maxConnections = 15_000

// MostOwnConnections returns how many agents can have a connection of their own to one replica:
// each uses a descriptor of it.
func MostOwnConnections() (int, error) {
	descriptors, err := guard.Descriptors()
	return guard.DefaultBounds(descriptors).Total, err
}

// feed starts an agent for each machine that is created, and removes the agents of deleted ones.
func (t *Trial) feed() {
	for {
		var err error
		select {
		case id := <-t.cloud.Made:
			err = t.crowds.add([]string{id})
		case id := <-t.cloud.Deleted:
			err = t.crowds.remove([]string{id})
		case <-t.ended:
			return
		}
		if err != nil {
			t.note(err)
		}
	}
}

// note keeps the first error of the background goroutines.
func (t *Trial) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.problem == nil {
		t.problem = err
	}
}

// check returns an error if something ended that should not have.
func (t *Trial) check() error {
	t.mu.Lock()
	err := t.problem
	t.mu.Unlock()
	if err != nil {
		return err
	}
	if err := t.seen.failed(); err != nil {
		return err
	}
	all := []*parts.Part{t.etcd}
	for _, r := range t.replicas {
		if !r.killed {
			all = append(all, r.Part)
		}
	}
	for _, c := range t.crowds.all {
		all = append(all, c.part)
	}
	for _, p := range all {
		if p == nil {
			continue
		}
		select {
		case <-p.Ended():
			return fmt.Errorf("a part of the bench ended: see %s", p.Log())
		default:
		}
	}
	return nil
}

// lookEvery is how often a condition is polled.
const lookEvery = 250 * time.Millisecond

// await polls until a condition holds, and reports progress.
func (t *Trial) await(ctx context.Context, doing string, so func() (far string, done bool)) error {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		far, done := so()
		if done {
			return nil
		}
		t.deps.Tell(doing, far)
		if err := t.check(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}

// pass waits for a duration.
func (t *Trial) pass(ctx context.Context, doing string, length time.Duration) error {
	end := time.Now().Add(length)
	return t.await(ctx, doing, func() (string, bool) {
		left := time.Until(end)
		return "for " + left.Round(time.Second).String(), left <= 0
	})
}

// removing is how long removing the shard from etcd may take.
const removing = 2 * time.Minute

// End stops everything. It keeps the logs after a failure, and the error says where they are.
func (t *Trial) End(failed error) error {
	close(t.ended)
	t.watching()
	var errs []error
	for _, c := range t.crowds.all {
		c.close()
		errs = append(errs, c.part.Kill())
	}
	for _, r := range t.replicas {
		if r.Part != nil {
			errs = append(errs, r.Kill())
		}
	}
	if t.cloud != nil {
		t.cloud.Close()
	}
	t.feeding.Wait()
	t.usage.end()
	if t.seen != nil {
		t.seen.wait()
	}
	if t.store != nil && t.wrote && !t.deps.Own {
		t.deps.Tell("removing the shard from etcd", "")
		ctx, cancel := context.WithTimeout(context.Background(), removing)
		if err := seed.Remove(ctx, t.store, t.cfg.Shard); err != nil {
			errs = append(errs, fmt.Errorf("%w; next: etcdctl del --prefix %s", err,
				store.KeysOf(t.cfg.Shard).Prefix()))
		}
		cancel()
	}
	errs = append(errs, t.close())
	if t.etcd != nil {
		errs = append(errs, t.etcd.Kill())
	}
	if t.dir != "" {
		errs = append(errs, t.clear(failed))
	}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil })...)
}

// clear removes what was written to the disk, except logs, which may be needed.
func (t *Trial) clear(failed error) error {
	if failed == nil || errors.Is(failed, context.Canceled) {
		return os.RemoveAll(t.dir)
	}
	entries, err := os.ReadDir(t.dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".log") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(t.dir, e.Name())))
		}
	}
	_ = os.Remove(t.dir) // fails if there are logs
	return err
}

// Logs returns the directory of the parts' logs.
func (t *Trial) Logs() string { return t.dir }

// of formats how many of all.
func of(n, all int, what string) string {
	return strings.TrimSpace(fmt.Sprintf("%d of %d %s", n, all, what))
}
