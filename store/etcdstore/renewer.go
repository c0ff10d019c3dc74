package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
)

// errClosed fails the renewals of a store that is closed.
var errClosed = fmt.Errorf("%w: the store is closed", store.ErrUnavailable)

// renewer renews any number of leases over a few keepalive streams to etcd's leader.
//
// etcd answers a stream's renewals one after the other, and one that waits (for a lease that has
// expired to be revoked, for a leader) delays all behind it. Hence several streams, each lease on
// one of them; leases that have ended by our clock on none; and those whose end we do not know,
// because another process was granted them, on a stream of their own.
//
// Nothing runs before the first renewal: a command that only reads starts no stream.
type renewer struct {
	ends   *leaseEnds
	cfg    Config
	client *clientv3.Client
	logger *slog.Logger

	mu      sync.Mutex
	closed  bool
	leader  *leaderConn
	streams []*renewStream // Config.RenewStreams common ones, then the one for leases of unknown end
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newRenewer(cfg Config, client *clientv3.Client) *renewer {
	return &renewer{ends: newLeaseEnds(), cfg: cfg, client: client, logger: cfg.Logger}
}

func (r *renewer) renew(ctx context.Context, id store.LeaseID) (store.Lease, error) {
	if err := ctx.Err(); err != nil {
		return store.Lease{}, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	streams, err := r.started()
	if err != nil {
		return store.Lease{}, err
	}
	end, known := r.ends.of(id)
	if !known {
		return streams[len(streams)-1].renew(ctx, id)
	}
	if !time.Now().Before(end) {
		return store.Lease{}, store.ErrLeaseGone
	}
	return streams[spread(id)%uint64(len(streams)-1)].renew(ctx, id)
}

// started returns the streams, and starts them on the first call.
func (r *renewer) started() ([]*renewStream, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if r.streams != nil {
		return r.streams, nil
	}
	leader, err := dialMembers(r.client, r.cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.leader, r.cancel = leader, cancel
	r.running.Go(func() { leader.run(ctx) })
	for range r.cfg.RenewStreams + 1 {
		s := newRenewStream(r.ends, leader, r.cfg.RenewStall, r.logger)
		r.streams = append(r.streams, s)
		r.running.Go(func() { s.run(ctx) })
	}
	return r.streams, nil
}

// use switches to these endpoints.
func (r *renewer) use(endpoints []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg.Endpoints = endpoints
	if r.closed || r.leader == nil {
		return nil
	}
	return r.leader.use(r.client.Dial, endpoints)
}

// close ends all streams, fails the renewals that wait on them, and waits until everything has
// ended.
func (r *renewer) close() {
	r.mu.Lock()
	already := r.closed
	r.closed = true
	r.mu.Unlock()
	if already || r.cancel == nil {
		return
	}
	r.cancel()
	r.running.Wait()
	if err := r.leader.close(); err != nil && !errors.Is(err, context.Canceled) {
		r.logger.Warn("closing the connections for renewals failed", "error", err)
	}
}
