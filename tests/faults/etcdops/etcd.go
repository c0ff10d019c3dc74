package etcdops

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Member is one of an etcd.
type Member struct {
	Name   string
	Client string      // host:port where it serves clients
	TLS    *tls.Config // of etcd's root; nil: not encrypted, and without authentication
}

// Etcd is all members of one.
type Etcd []Member

// patience is how long a member that may be frozen or alone is waited for before it counts as one
// that does not answer.
const patience = 2 * time.Second

// pause is how long what could not be done yet is left before it is tried again.
const pause = 50 * time.Millisecond

// Status is how a member is doing.
type Status struct {
	Member string
	// Silent is why nothing else is known of it; nil if it answers.
	Silent error
	// Sick is why it serves no reads that all members agree on; nil if it does.
	Sick error

	ID       uint64 // its own
	Leads    bool
	Term     uint64
	Revision int64
	Keys     int64    // all that there are, if it is not sick
	Size     int64    // of its file, in bytes
	InUse    int64    // of that
	Alarms   []string // any member's, as this one knows
	Version  string
}

// Status is how each member is doing, in their order. All are asked at once, and none for long.
func (e Etcd) Status(ctx context.Context) []Status {
	out := make([]Status, len(e))
	var all sync.WaitGroup
	for i, m := range e {
		all.Go(func() { out[i] = m.status(ctx) })
	}
	all.Wait()
	return out
}

func (m Member) status(ctx context.Context) Status {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	st := Status{Member: m.Name}
	st.Silent = m.ask(func(conn *grpc.ClientConn) error {
		answer, err := pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
		if err != nil {
			return err
		}
		st.ID, st.Term, st.Revision = answer.Header.MemberId, answer.RaftTerm, answer.Header.Revision
		st.Leads = answer.Leader == answer.Header.MemberId
		st.Size, st.InUse, st.Version = answer.DbSize, answer.DbSizeInUse, answer.Version
		for _, said := range answer.Errors {
			// memberID:1 alarm:NOSPACE, among others
			if _, alarm, found := strings.Cut(said, "alarm:"); found {
				st.Alarms = append(st.Alarms, strings.TrimSpace(alarm))
			}
		}
		st.Keys, st.Sick = count(ctx, conn)
		return nil
	})
	return st
}

// count is how many keys there are, by a read that takes a quorum.
func count(ctx context.Context, conn *grpc.ClientConn) (int64, error) {
	all := []byte{0} // as a key and as the end of a range
	answer, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: all, RangeEnd: all, CountOnly: true})
	if err != nil {
		return 0, err
	}
	return answer.Count, nil
}

// Leader is the member that leads, by its place. It waits until there is one. Of two that say so,
// one of which has not heard of its end, it is the one that was elected last.
func (e Etcd) Leader(ctx context.Context) (int, error) {
	leads := -1
	err := until(ctx, func() error {
		term := uint64(0)
		var silent []error
		for i, st := range e.Status(ctx) {
			if st.Silent != nil {
				silent = append(silent, fmt.Errorf("%s: %w", st.Member, st.Silent))
			} else if st.Leads && st.Term > term {
				leads, term = i, st.Term
			}
		}
		if leads < 0 {
			return &notYetError{errors.Join(append(silent, errors.New("no member leads"))...)}
		}
		return nil
	})
	if err != nil {
		return -1, fmt.Errorf("find etcd's leader: %w", err)
	}
	return leads, nil
}

// askLeader asks the member that leads, and does so again when that could not do it yet, or does
// not answer. So a question may be asked twice and more.
func (e Etcd) askLeader(ctx context.Context,
	question func(ctx context.Context, leads int, conn *grpc.ClientConn) error,
) error {
	return until(ctx, func() error {
		leads, err := e.Leader(ctx)
		if err != nil {
			return err
		}
		once, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err = e[leads].ask(func(conn *grpc.ClientConn) error { return question(once, leads, conn) })
		if passing(err) {
			return &notYetError{fmt.Errorf("ask %s, which leads: %w", e[leads].Name, err)}
		}
		return err
	})
}

// passing reports whether etcd refused something, or did not answer, for a reason that goes away.
func passing(err error) bool {
	code := status.Code(err)
	// no leader, no connection, members that know each other for too short a time
	return code == codes.Unavailable || code == codes.DeadlineExceeded ||
		errors.Is(err, rpctypes.ErrGRPCNotLeader) || errors.Is(err, rpctypes.ErrGRPCMemberNotEnoughStarted)
}

// idOf is a member's ID, which it tells itself.
func (e Etcd) idOf(ctx context.Context, member int) (uint64, error) {
	st := e[member].status(ctx)
	if st.Silent != nil {
		return 0, fmt.Errorf("ask %s who it is: %w", e[member].Name, st.Silent)
	}
	return st.ID, nil
}

// ask connects to a member and asks it something.
func (m Member) ask(question func(conn *grpc.ClientConn) error) error {
	secure := insecure.NewCredentials()
	if m.TLS != nil {
		secure = credentials.NewTLS(m.TLS)
	}
	conn, err := grpc.NewClient("passthrough:///"+m.Client, grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return err
	}
	defer conn.Close()
	return question(conn)
}

// notYetError is why something could not be done yet.
type notYetError struct{ error }

func (e *notYetError) Unwrap() error { return e.error }

// until does something again and again while it says that it could not be done yet.
func until(ctx context.Context, do func() error) error {
	again := time.NewTicker(pause)
	defer again.Stop()
	for {
		err := do()
		if later := (*notYetError)(nil); !errors.As(err, &later) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
