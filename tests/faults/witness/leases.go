package witness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/leasehold/leasehold/store"
)

// Leases are all leases of etcd, as etcdctl names them, with the keys on each. The first member
// that answers tells.
func (w *Watcher) Leases(ctx context.Context) (map[string][]string, error) {
	var failed error
	for _, member := range w.cfg.Endpoints {
		leases, err := leasesOf(ctx, member, w.cfg.TLS)
		if err == nil {
			return leases, nil
		}
		failed = errors.Join(failed, fmt.Errorf("ask %s for leases: %w", member, err))
	}
	return nil, failed
}

// leasesOf has patience with each answer, not with all of them: on a starved machine one after
// another takes its time.
func leasesOf(ctx context.Context, member string, secure *tls.Config) (map[string][]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(patience, cancel)
	defer silence.Stop()
	conn, err := dial(member, secure)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // nothing is sent any more
	// A linearizable read first: a member's list of leases is its own, which may be old.
	if _, err := pb.NewKVClient(conn).Range(ctx,
		&pb.RangeRequest{Key: []byte(store.Root), CountOnly: true}); err != nil {
		return nil, err
	}
	silence.Reset(patience)
	client := pb.NewLeaseClient(conn)
	all, err := client.LeaseLeases(ctx, &pb.LeaseLeasesRequest{})
	if err != nil {
		return nil, err
	}
	out := make(map[string][]string, len(all.Leases))
	for _, lease := range all.Leases {
		silence.Reset(patience)
		one, err := client.LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: lease.ID, Keys: true})
		if err != nil {
			return nil, err
		}
		if one.TTL < 0 {
			continue // it has ended meanwhile
		}
		on := make([]string, 0, len(one.Keys))
		for _, key := range one.Keys {
			on = append(on, string(key))
		}
		slices.Sort(on)
		out[store.LeaseID(lease.ID).String()] = on
	}
	return out, nil
}
