package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// coordinate runs one replica of the coordinator: the product's command, with one more provider.
func coordinate(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("coordinator", flag.ContinueOnError)
	id := flags.String("id", "", "the replica")
	listen := flags.String("listen", "", "address for agents")
	advertise := flags.String("advertise", "", "address that agents use")
	endpoints := flags.String("endpoints", "", "address of etcd")
	pki := flags.String("pki", "", "directory of the certificate authorities")
	dir := flags.String("dir", "", "directory of the process provider, which has no machines here")
	ttl := flags.Duration("session-ttl", 3*time.Second, "TTL of its session")
	http := flags.String("http", "", "address for metrics; empty: none")
	more := besideOf(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	host := &services.Host{
		Stdout: os.Stdout, Stderr: os.Stderr, Version: "test", Shard: "default",
		Open: func(ctx context.Context, log *slog.Logger) (store.Store, func() error, error) {
			st, err := etcdstore.Open(ctx,
				etcdstore.Config{Endpoints: strings.Split(*endpoints, ","), Logger: log, DialTimeout: time.Minute})
			if err != nil {
				return nil, nil, err
			}
			recorded, closeRecord, err := more.record(st, *id)
			if err != nil {
				return nil, nil, errors.Join(err, st.Close())
			}
			return recorded, func() error { return errors.Join(st.Close(), closeRecord()) }, nil
		},
		Allowed: func(context.Context, store.Role) error { return nil },
	}
	if err := more.join(host, *id, *pki); err != nil {
		return err
	}
	command := services.Coordinator{
		Listen: *listen, Advertise: *advertise, ID: *id, PKI: *pki, Machines: filepath.Join(*dir, "machines-of-"+*id),
		StateDir: filepath.Join(*dir, "known-of-"+*id),
		Replica: services.Replica{
			Agent: self, Zones: []string{"local"}, SessionTTL: *ttl, LogLevel: "debug", HTTP: services.HTTP{HTTP: *http},
		},
	}
	return command.Run(ctx, host)
}

// liveTogether runs the swarm.
func liveTogether(ctx context.Context, args []string, log *slog.Logger) error {
	flags := flag.NewFlagSet("swarm", flag.ContinueOnError)
	socket := flags.String("socket", "", "its socket")
	dir := flags.String("dir", "", "directory of its agents' state")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return swarm.Serve(ctx, swarm.Config{Socket: *socket, Dir: *dir, Logger: log})
}
