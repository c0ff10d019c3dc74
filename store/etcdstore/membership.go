package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/store"
)

// Member is one of etcd's members, and the state that it reports.
type Member struct {
	ID      uint64
	Name    string // "": it was added and has never started
	Peers   []string
	Clients []string
	Learner bool

	Answers bool
	Error   string // why it does not, in a line
	Leads   bool
	Version string
	Index   uint64 // how far it has applied the log
	Bytes   int64  // of its database
	Quota   int64  // at which it refuses writes; 0: unknown
	Alarms  []string
}

// Members administers etcd's members. Changes are for etcd's root alone, once authentication is on.
type Members struct {
	store  *Store // for its configuration: it is not opened
	client *clientv3.Client
}

// OpenMembers makes a connection, and asks nothing yet: members may be listed without a quorum.
func OpenMembers(ctx context.Context, cfg Config) (*Members, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	client, err := s.newClient(ctx)
	if err != nil {
		s.cancel()
		return nil, s.explainDial(ctx, err)
	}
	return &Members{store: s, client: client}, nil
}

// Close closes the connection.
func (m *Members) Close() error {
	m.store.cancel()
	return closeClient(m.client)
}

// answerTime is how long one member may take to report its state.
const answerTime = 2 * time.Second

// List returns the members as one of them knows them: also without a quorum. It asks each of them
// for its state.
func (m *Members) List(ctx context.Context) ([]Member, error) {
	list, err := pb.NewClusterClient(m.client.ActiveConnection()).MemberList(ctx, &pb.MemberListRequest{},
		grpc.WaitForReady(false))
	if err != nil {
		return nil, m.store.explainDial(ctx, err)
	}
	out := make([]Member, len(list.Members))
	var asking sync.WaitGroup
	for i, raw := range list.Members {
		out[i] = Member{
			ID: raw.ID, Name: raw.Name, Peers: raw.PeerURLs, Clients: raw.ClientURLs, Learner: raw.IsLearner,
		}
		asking.Go(func() { m.ask(ctx, &out[i]) })
	}
	asking.Wait()
	return out, nil
}

// ask asks a member for its state.
func (m *Members) ask(ctx context.Context, of *Member) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if len(of.Clients) == 0 {
		of.Error = "it has never started"
		return
	}
	for _, at := range of.Clients {
		st, err := m.client.Status(ctx, at)
		if err != nil {
			of.Error = reason(err)
			continue
		}
		if st.Header.GetMemberId() != of.ID {
			of.Error = "another member answers at " + at
			continue
		}
		of.Answers, of.Error = true, ""
		of.Leads, of.Version, of.Index = st.Leader == of.ID, st.Version, st.RaftAppliedIndex
		of.Bytes, of.Quota, of.Alarms = st.DbSize, st.DbSizeQuota, st.Errors
		return
	}
}

// AddLearner adds a member that counts for no majority, and returns its ID. One that was added at
// this URL already is returned as it is.
func (m *Members) AddLearner(ctx context.Context, peer string) (id uint64, err error) {
	added, err := m.client.MemberAddAsLearner(ctx, []string{peer})
	if err == nil {
		return added.Member.ID, nil
	}
	if errors.Is(rpctypes.Error(err), rpctypes.ErrPeerURLExist) {
		list, err := m.client.MemberList(ctx)
		if err != nil {
			return 0, fmt.Errorf("list etcd's members: %w", readError(ctx, err))
		}
		for _, have := range list.Members {
			if strings.Join(have.PeerURLs, ",") == peer {
				return have.ID, nil
			}
		}
	}
	if err := unsettled(err); errors.Is(err, ErrUnsettled) {
		return 0, fmt.Errorf("add etcd member at %s: %w", peer, err)
	}
	return 0, fmt.Errorf("add etcd member at %s: %w", peer, writeError(ctx, err, true))
}

// ErrUnsettled: etcd changes its members only while those that must agree have been connected for
// five seconds.
var ErrUnsettled = errors.New("the members have been connected for less than five seconds")

// unsettled translates that error of a change.
func unsettled(err error) error {
	if errors.Is(rpctypes.Error(err), rpctypes.ErrUnhealthy) {
		return ErrUnsettled
	}
	return err
}

// ErrBehind: a learner has not caught up with the leader yet.
var ErrBehind = errors.New("it has not caught up yet")

// ErrNoLeader: no member that answers leads the others.
var ErrNoLeader = errors.New("the members have no leader that answers")

// Promote makes a learner a voting member. A member that is one already is left as it is.
//
// Only the leader is asked, and not for long: a follower forwards the request without the name in
// our certificate, is refused, and repeats it without a pause until the request's time is over.
func (m *Members) Promote(ctx context.Context, id uint64) error {
	leader, err := m.leader(ctx)
	if err != nil {
		return fmt.Errorf("promote etcd member: %w", err)
	}
	defer leader.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err = pb.NewClusterClient(leader).MemberPromote(ctx, &pb.MemberPromoteRequest{ID: id})
	switch {
	case err == nil, errors.Is(rpctypes.Error(err), rpctypes.ErrMemberNotLearner):
		return nil
	case errors.Is(rpctypes.Error(err), rpctypes.ErrMemberLearnerNotReady):
		return fmt.Errorf("promote etcd member: %w", ErrBehind)
	case errors.Is(unsettled(err), ErrUnsettled):
		return fmt.Errorf("promote etcd member: %w", ErrUnsettled)
	}
	return fmt.Errorf("promote etcd member: %w", writeError(ctx, err, true))
}

// leader returns a connection to the member that leads. The caller closes it.
func (m *Members) leader(ctx context.Context) (*grpc.ClientConn, error) {
	list, err := m.client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list etcd's members: %w", readError(ctx, err))
	}
	var members []member
	best, leads := -1, false
	defer func() {
		for i, other := range members {
			if !leads || i != best {
				_ = other.conn.Close() // it was only read from
			}
		}
	}()
	for _, one := range list.Members {
		if one.IsLearner || len(one.ClientURLs) == 0 {
			continue
		}
		conn, err := m.client.Dial(one.ClientURLs[0])
		if err != nil {
			return nil, fmt.Errorf("dial etcd member %s: %w", one.ClientURLs[0], err)
		}
		members = append(members, member{endpoint: one.ClientURLs[0], conn: conn})
	}
	if best, leads = choose(look(ctx, members), -1); !leads {
		return nil, ErrNoLeader
	}
	return members[best].conn, nil
}

// Remove removes a member for good. It is no error if there is none of this ID.
func (m *Members) Remove(ctx context.Context, id uint64) error {
	_, err := m.client.MemberRemove(ctx, id)
	if err := unsettled(err); errors.Is(err, ErrUnsettled) {
		return fmt.Errorf("remove etcd member: %w", err)
	}
	err = changed(ctx, "remove etcd member", err, rpctypes.ErrMemberNotFound)
	if errors.Is(err, store.ErrUnknown) && m.gone(ctx, id) {
		return nil
	}
	return err
}

// How often etcd is asked whether a member is gone, and how long after a failure.
const (
	goneTries = 10
	goneAfter = 200 * time.Millisecond
)

// gone reports whether a majority knows no member of this ID. A member that is asked
// to remove itself may end before it can answer: then another one knows.
func (m *Members) gone(ctx context.Context, id uint64) bool {
	for range goneTries {
		asked, cancel := context.WithTimeout(ctx, answerTime)
		list, err := m.client.MemberList(asked)
		cancel()
		if err == nil {
			return !slices.ContainsFunc(list.Members, func(have *pb.Member) bool { return have.ID == id })
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(goneAfter):
		}
	}
	return false
}

// Has reports whether there is a member at a peer URL, as a majority knows it.
func (m *Members) Has(ctx context.Context, peer string) (bool, error) {
	list, err := m.client.MemberList(ctx)
	if err != nil {
		return false, fmt.Errorf("list etcd's members: %w", readError(ctx, err))
	}
	return slices.ContainsFunc(list.Members, func(have *pb.Member) bool {
		return slices.Contains(have.PeerURLs, peer)
	}), nil
}
