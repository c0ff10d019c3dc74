package etcdops

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// elsewhere is a key that belongs to no shard.
const elsewhere = "/elsewhere"

// MoveLeader makes a member the leader, and returns once it says so itself.
func (e Etcd) MoveLeader(ctx context.Context, to int) error {
	err := e.askLeader(ctx, func(ctx context.Context, leads int, conn *grpc.ClientConn) error {
		if leads == to {
			return nil
		}
		id, err := e.idOf(ctx, to)
		if err != nil {
			return err
		}
		if _, err := pb.NewMaintenanceClient(conn).MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: id}); err != nil {
			return err
		}
		return &notYetError{errors.New("it does not say yet that it leads")}
	})
	if err != nil {
		return fmt.Errorf("make %s etcd's leader: %w", e[to].Name, err)
	}
	return nil
}

// Write writes a key that belongs to no shard so many times, each time another value of so many
// bytes, and returns the last revision.
func (e Etcd) Write(ctx context.Context, times, bytes int) (revision int64, err error) {
	value := make([]byte, bytes)
	for n := range times {
		copy(value, strconv.Itoa(n))
		err := e.askLeader(ctx, func(ctx context.Context, _ int, conn *grpc.ClientConn) error {
			answer, err := pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte(elsewhere), Value: value})
			revision = answer.GetHeader().GetRevision()
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("write %s: %w", elsewhere, err)
		}
	}
	return revision, nil
}

// Compact has etcd forget all that was before now, or before the last of so many writes elsewhere,
// and returns that revision.
func (e Etcd) Compact(ctx context.Context, writes int) (int64, error) {
	if writes > 0 {
		if _, err := e.Write(ctx, writes, 1); err != nil {
			return 0, err
		}
	}
	var revision int64
	err := e.askLeader(ctx, func(ctx context.Context, _ int, conn *grpc.ClientConn) error {
		kv := pb.NewKVClient(conn)
		now, err := kv.Range(ctx, &pb.RangeRequest{Key: []byte(elsewhere)})
		if err != nil {
			return err
		}
		revision = now.Header.Revision
		_, err = kv.Compact(ctx, &pb.CompactionRequest{Revision: revision, Physical: true})
		if errors.Is(err, rpctypes.ErrGRPCCompacted) {
			return nil // nothing was written since the last time, or the answer of that was lost
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("compact etcd's history: %w", err)
	}
	return revision, nil
}

// Defragment has a member write its file again, without unused pages. It serves no client
// meanwhile.
func (e Etcd) Defragment(ctx context.Context, member int) error {
	err := e[member].ask(func(conn *grpc.ClientConn) error {
		_, err := pb.NewMaintenanceClient(conn).Defragment(ctx, &pb.DefragmentRequest{})
		return err
	})
	if err != nil {
		return fmt.Errorf("defragment %s: %w", e[member].Name, err)
	}
	return nil
}

// RaiseNoSpace has etcd believe that a member has used up its quota: it grants no leases and takes
// no writes, but deletes and renews, until the alarm is taken back.
func (e Etcd) RaiseNoSpace(ctx context.Context, member int) error {
	id, err := e.idOf(ctx, member)
	if err == nil {
		err = e.askLeader(ctx, func(ctx context.Context, _ int, conn *grpc.ClientConn) error {
			_, err := pb.NewMaintenanceClient(conn).Alarm(ctx,
				&pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: id, Alarm: pb.AlarmType_NOSPACE})
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("raise the alarm NOSPACE for %s: %w", e[member].Name, err)
	}
	return nil
}

// Disarm takes back the alarms NOSPACE of all members.
func (e Etcd) Disarm(ctx context.Context) error {
	err := e.askLeader(ctx, func(ctx context.Context, _ int, conn *grpc.ClientConn) error {
		api := pb.NewMaintenanceClient(conn)
		raised, err := api.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_GET, Alarm: pb.AlarmType_NOSPACE})
		if err != nil {
			return err
		}
		for _, a := range raised.Alarms { // each by itself: no member stands for all
			if _, err := api.Alarm(ctx, &pb.AlarmRequest{
				Action: pb.AlarmRequest_DEACTIVATE, MemberID: a.MemberID,
				Alarm: a.Alarm,
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("take back the alarm NOSPACE: %w", err)
	}
	return nil
}
