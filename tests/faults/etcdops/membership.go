package etcdops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// Readmit takes a member in again that has lost its data: the one that it was is removed, and a new
// one is added that the others find where that was. The member must not run (etcd 3.7.3 panics when
// a member that was removed is asked how it is doing), and must not have data. It is then started,
// with the state of the cluster `existing` and with the initial cluster that is returned.
func (e Etcd) Readmit(ctx context.Context, member int) (cluster string, err error) {
	name := e[member].Name
	peers, err := e.remove(ctx, name)
	if err != nil {
		return "", fmt.Errorf("remove %s from etcd: %w", name, err)
	}
	if cluster, err = e.add(ctx, name, peers); err != nil {
		return "", fmt.Errorf("add %s to etcd again: %w", name, err)
	}
	return cluster, nil
}

// remove removes a member by its name, and returns where the others found it.
func (e Etcd) remove(ctx context.Context, name string) (peers []string, err error) {
	err = e.askLeader(ctx, func(ctx context.Context, _ int, conn *grpc.ClientConn) error {
		api := pb.NewClusterClient(conn)
		all, err := api.MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all.Members, func(m *pb.Member) bool { return m.Name == name })
		switch {
		case i < 0 && peers == nil:
			return errors.New("there is no member of that name")
		case i < 0:
			return nil // by the try before, whose answer was lost
		}
		peers = all.Members[i].PeerURLs
		_, err = api.MemberRemove(ctx, &pb.MemberRemoveRequest{ID: all.Members[i].ID})
		return err
	})
	return peers, err
}

// add adds a member, and returns all members as it has to know them.
func (e Etcd) add(ctx context.Context, name string, peers []string) (cluster string, err error) {
	err = e.askLeader(ctx, func(ctx context.Context, _ int, conn *grpc.ClientConn) error {
		api := pb.NewClusterClient(conn)
		all, err := api.MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
		if err != nil {
			return err
		}
		members := all.Members
		if !slices.ContainsFunc(members, func(m *pb.Member) bool { return slices.Equal(m.PeerURLs, peers) }) {
			added, err := api.MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: peers})
			if err != nil {
				return err
			}
			members = added.Members
		}
		var out []string
		for _, m := range members {
			for _, url := range m.PeerURLs {
				called := m.Name
				if slices.Equal(m.PeerURLs, peers) {
					called = name // it gets its name when it starts
				}
				out = append(out, called+"="+url)
			}
		}
		cluster = strings.Join(out, ",")
		return nil
	})
	return cluster, err
}
