package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/cmd/supervised"
	"github.com/leasehold/leasehold/store/embedetcd"
)

// forEver is how long a member may wait until it serves: it waits for a majority of the others.
const forEver = 365 * 24 * time.Hour

// runMember is the part that is an etcd member.
func runMember(ctx context.Context, place Place, r Record, log *slog.Logger, ready func(string),
	service supervised.Service,
) (err error) {
	// The data may have vanished since the server started, with the file system they were on.
	if err := place.lostData(r); err != nil {
		return err
	}
	initial := map[string]string{}
	for _, m := range append(r.Members, r.self()) {
		initial[m.Name] = m.Peer
	}
	etcd, err := embedetcd.Start(ctx, embedetcd.Config{
		DataDir: place.etcd(), Listen: r.listen(r.EtcdPort), TLS: place.credentials().Server(), Logger: log,
		StartTimeout: forEver,
		Cluster: &embedetcd.Cluster{
			Name: r.Name, ClientURL: r.self().Client, PeerURL: r.self().Peer, PeerListen: r.listen(r.PeerPort),
			PeerName: services.EtcdName, Initial: initial, Token: r.Cluster, New: r.Phase == beginning,
		},
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return problem("leasehold server run --help", "%s", err)
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	ready(r.at(r.EtcdPort))
	watching, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer end()
	watch.Go(func() { service.Watch(watching, etcd.Working) })
	select {
	case <-ctx.Done():
		return nil
	case <-etcd.Stopped():
		return errors.New("etcd has stopped by itself: its log says why")
	}
}

// lostData returns why a member that the cluster knows must not start: it would vote without what
// it has confirmed to the others. A learner may vote as soon as its promotion was asked for, and
// the others may believe that it still has what it has lost.
func (p Place) lostData(r Record) error {
	if r.Phase != joined && r.Phase != learning || embedetcd.HasLog(p.etcd()) {
		return nil
	}
	return problem(fmt.Sprintf("on another host: leasehold server replace %s; if there is none, restore %s from a "+
		"backup", r.Name, p.etcd()),
		"the data of this host's etcd is gone from %s: it is not made anew, since the cluster knows it", p.etcd())
}
