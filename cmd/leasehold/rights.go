package main

import (
	"context"

	"github.com/leasehold/leasehold/cmd/cli"
	"github.com/leasehold/leasehold/cmd/rights"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// openRights connects to etcd's users and roles.
func openRights(ctx context.Context, c cli.Connection) (rights.Etcd, func() error, error) {
	conf, err := c.Config()
	if err != nil {
		return nil, nil, err
	}
	r, err := etcdstore.OpenRights(ctx, conf)
	if err != nil {
		return nil, nil, err
	}
	return r, r.Close, nil
}
