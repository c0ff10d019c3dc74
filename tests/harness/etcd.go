package harness

import (
	"context"
	"errors"

	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// Etcd is an etcd in the test's own process, with a store on it.
type Etcd struct {
	Endpoint string
	Store    *etcdstore.Store

	server *embedetcd.Server
}

// StartEtcd starts an etcd without TLS, and opens a store on it.
func StartEtcd(ctx context.Context, cfg embedetcd.Config) (*Etcd, error) {
	server, err := embedetcd.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	st, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: []string{server.Endpoint()}, Logger: cfg.Logger})
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return &Etcd{Endpoint: server.Endpoint(), Store: st, server: server}, nil
}

// Close closes the store and ends etcd.
func (e *Etcd) Close() error { return errors.Join(e.Store.Close(), e.server.Close()) }
