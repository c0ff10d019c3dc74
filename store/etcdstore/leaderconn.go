package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	every  time.Duration
	logger *slog.Logger
	kick   chan struct{} // look again now; holds one

	mu      sync.Mutex
	members []member // replaced as a whole
	pin     *pin
}

type member struct {
	endpoint string
	conn     *grpc.ClientConn
}

// dialMembers makes a connection for each endpoint. None is opened before it is used.
func dialMembers(client *clientv3.Client, cfg Config) (*leaderConn, error) {
	l := &leaderConn{every: cfg.LeaderCheck, logger: cfg.Logger, kick: make(chan struct{}, 1)}
	if err := l.use(client.Dial, cfg.Endpoints); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// use makes connections to endpoints that are new, and closes those to endpoints that have gone. If
// the member that renewals go to has gone, they move.
func (l *leaderConn) use(dial func(endpoint string) (*grpc.ClientConn, error), endpoints []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var members, opened []member
	for _, endpoint := range endpoints {
		if i := slices.IndexFunc(l.members, func(m member) bool { return m.endpoint == endpoint }); i >= 0 {
			members = append(members, l.members[i])
			continue
		}
		conn, err := dial(endpoint)
		if err != nil {
			for _, m := range opened {
				_ = m.conn.Close() // nothing has used it
			}
			return fmt.Errorf("dial etcd member %s: %w", endpoint, err)
		}
		opened = append(opened, member{endpoint: endpoint, conn: conn})
		members = append(members, opened[len(opened)-1])
	}
	old := l.members
	l.members = members
	switch {
	case l.pin == nil: // until the first look
		l.pin = newPin(members[0])
	case !slices.Contains(endpoints, l.pin.endpoint):
		close(l.pin.moved)
		l.pin = newPin(members[0])
	}
	for _, m := range old {
		if !slices.Contains(endpoints, m.endpoint) {
			_ = m.conn.Close() // what ran on it has moved
		}
	}
	l.recheck()
	return nil
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

// run asks which member leads, at once, regularly and on request, until ctx ends.
func (l *leaderConn) run(ctx context.Context) {
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		l.mu.Lock()
		members := l.members
		l.mu.Unlock()
		l.repin(members, look(ctx, members))
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

// look asks every member for its status at the same time. The answer of a member that takes longer
// than statusTimeout is nil.
func look(ctx context.Context, members []member) []*pb.StatusResponse {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	answers := make([]*pb.StatusResponse, len(members))
	var asked sync.WaitGroup
	for i, m := range members {
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
func (l *leaderConn) repin(members []member, answers []*pb.StatusResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(members, l.members) {
		return // they changed meanwhile: the next look is soon
	}
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
