package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// pin is the member that renewals go to for now.
type pin struct {
	endpoint string
	conn     *grpc.ClientConn // to this member alone
	moved    chan struct{}    // closed when another member takes its place
}

// leaderConn knows which of the endpoints is etcd's leader. A follower forwards each renewal in an
// HTTP request of its own, one after the other: 24 times slower.
//
// If no endpoint is the leader's, any member that answers is taken, and the one that was is kept as
// long as it does.
type leaderConn struct {
	members []member
	every   time.Duration
	logger  *slog.Logger
	kick    chan struct{} // look again now; holds one

	mu  sync.Mutex
	pin *pin
}

type member struct {
	endpoint string
	conn     *grpc.ClientConn
}

// dialMembers makes a connection for each endpoint. None is opened before it is used.
func dialMembers(client *clientv3.Client, cfg Config) (*leaderConn, error) {
	l := &leaderConn{every: cfg.LeaderCheck, logger: cfg.Logger, kick: make(chan struct{}, 1)}
	for _, endpoint := range cfg.Endpoints {
		conn, err := client.Dial(endpoint)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("dial etcd member %s: %w", endpoint, err), l.close())
		}
		l.members = append(l.members, member{endpoint: endpoint, conn: conn})
	}
	l.pin = newPin(l.members[0]) // until the first look
	return l, nil
}

func newPin(m member) *pin {
	return &pin{endpoint: m.endpoint, conn: m.conn, moved: make(chan struct{})}
}

func (l *leaderConn) close() error {
	var errs []error
	for _, m := range l.members {
		errs = append(errs, m.conn.Close())
	}
	return errors.Join(errs...)
}

func (l *leaderConn) current() *pin {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pin
}

// recheck asks for a look at the members soon: a stream has failed.
func (l *leaderConn) recheck() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// run looks which member leads, at once, regularly and when asked to, until ctx ends.
func (l *leaderConn) run(ctx context.Context) {
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		l.repin(l.look(ctx))
		// However many streams fail at once, the members are not asked more often than this.
		select {
		case <-ctx.Done():
			return
		case <-time.After(statusPause):
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.kick:
		}
	}
}

const (
	statusTimeout = time.Second
	statusPause   = 100 * time.Millisecond
)

// look asks every member for its status at the same time. Who does not answer within statusTimeout
// has nil.
func (l *leaderConn) look(ctx context.Context) []*pb.StatusResponse {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	answers := make([]*pb.StatusResponse, len(l.members))
	var asked sync.WaitGroup
	for i, m := range l.members {
		asked.Go(func() {
			if st, err := pb.NewMaintenanceClient(m.conn).Status(ctx, &pb.StatusRequest{}); err == nil {
				answers[i] = st
			}
		})
	}
	asked.Wait()
	return answers
}

// repin moves to the best member there is. If none answered it stays where it is.
func (l *leaderConn) repin(answers []*pb.StatusResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	current := -1
	for i, m := range l.members {
		if m.endpoint == l.pin.endpoint {
			current = i
		}
	}
	best, leads := choose(answers, current)
	if best < 0 || best == current {
		return
	}
	l.logger.Info("renewals move to another etcd member", "from", l.pin.endpoint, "to", l.members[best].endpoint,
		"leader", leads)
	close(l.pin.moved)
	l.pin = newPin(l.members[best])
}

// choose picks the leader, or else a member that answers, the current one rather than another. -1:
// none answered. A member that was deposed while it was frozen still takes itself for the leader:
// its term is an old one.
func choose(answers []*pb.StatusResponse, current int) (best int, leads bool) {
	var term uint64
	for _, a := range answers {
		if a != nil {
			term = max(term, a.RaftTerm)
		}
	}
	best = -1
	for i, a := range answers {
		switch {
		case a == nil:
		case a.RaftTerm == term && a.Leader != 0 && a.Leader == a.Header.GetMemberId():
			return i, true
		case best < 0 || i == current:
			best = i
		}
	}
	return best, false
}
