package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// coordinate is one replica of the coordinator: the command of the product, with one provider more than that has.
func coordinate(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("coordinator", flag.ContinueOnError)
	id := flags.String("id", "", "the replica")
	listen := flags.String("listen", "", "where it serves agents")
	advertise := flags.String("advertise", "", "where agents find it")
	endpoints := flags.String("endpoints", "", "where etcd is")
	socket := flags.String("swarm", "", "the swarm's socket")
	pki := flags.String("pki", "", "where its certificate authorities are")
	dir := flags.String("dir", "", "a place for machines of the process provider, of which there are none")
	ttl := flags.Duration("session-ttl", 5*time.Second, "of its session")
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
			st, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: strings.Split(*endpoints, ","), Logger: log, DialTimeout: time.Minute})
			if err != nil {
				return nil, nil, err
			}
			return st, st.Close, nil
		},
		Allowed:   func(context.Context, store.Role) error { return nil },
		Providers: map[string]provider.Provider{"swarm": swarm.NewProvider(*socket)},
	}
	command := services.Coordinator{
		Listen: *listen, Advertise: *advertise, ID: *id, PKI: *pki, Machines: filepath.Join(*dir, "machines-of-"+*id), Agent: self, Zones: []string{"local"},
		SessionTTL: *ttl, LogLevel: "debug",
	}
	return command.Run(ctx, host)
}

// liveTogether is the swarm.
func liveTogether(ctx context.Context, args []string, log *slog.Logger) error {
	flags := flag.NewFlagSet("swarm", flag.ContinueOnError)
	socket := flags.String("socket", "", "where it is found")
	dir := flags.String("dir", "", "what its agents keep")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return swarm.Serve(ctx, swarm.Config{Socket: *socket, Dir: *dir, Logger: log})
}
