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
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/fake/socket"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/faults/witness"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// coordinate runs one replica of the coordinator: the product's command, with one more provider.
func coordinate(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("coordinator", flag.ContinueOnError)
	id := flags.String("id", "", "the replica")
	listen := flags.String("listen", "", "address for agents")
	advertise := flags.String("advertise", "", "address that agents use")
	endpoints := flags.String("endpoints", "", "address of etcd")
	path := flags.String("swarm", "", "the swarm's socket")
	zones := flags.String("zones", "a,b", "zones of the swarm")
	pki := flags.String("pki", "", "directory of the certificate authorities")
	dir := flags.String("dir", "", "directory of the process provider, which has no machines here")
	ttl := flags.Duration("session-ttl", 5*time.Second, "TTL of its session")
	timeout := flags.Duration("call-timeout", 0, "time limit of calls of the swarm; 0: the default")
	kept := flags.String("history", "", "file for its commits; empty: none")
	front := flags.String("balancer", "", "name of the load balancer at the swarm's socket; empty: there is none")
	authorityDir := flags.String("authority", "", "directory of an authority for workloads, and its name; empty: none")
	http := flags.String("http", "", "address for metrics; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	machines := socket.NewProvider(*id, *path, strings.FieldsFunc(*zones, func(r rune) bool { return r == ',' })...)
	machines.CallTimeout = *timeout
	host := &services.Host{
		Stdout: os.Stdout, Stderr: os.Stderr, Version: "test", Shard: "default",
		Open: func(ctx context.Context, log *slog.Logger) (store.Store, func() error, error) {
			st, err := etcdstore.Open(ctx,
				etcdstore.Config{Endpoints: strings.Split(*endpoints, ","), Logger: log, DialTimeout: time.Minute})
			if err != nil {
				return nil, nil, err
			}
			if *kept == "" {
				return st, st.Close, nil
			}
			file, err := history.Append(*kept)
			if err != nil {
				return nil, nil, errors.Join(err, st.Close())
			}
			shutDown := func() error { return errors.Join(st.Close(), file.Close()) }
			return witness.Record(st, witness.Recording{
				Replica: *id, Process: os.Getpid(),
				Keys: store.KeysOf("default"), File: file,
			}), shutDown, nil
		},
		Allowed:   func(context.Context, store.Role) error { return nil },
		Providers: map[string]provider.Provider{"swarm": machines},
	}
	if *front != "" {
		host.Balancers = map[string]balancer.Balancer{*front: swarm.NewBalancer(*id, *path)}
	}
	if *authorityDir != "" {
		web, err := authority.NewOwn(authority.OwnConfig{
			Dir: *authorityDir, Limits: authority.Limits{Domains: []string{"internal"}},
		}, *pki, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		host.Authorities = map[string]authority.Authority{filepath.Base(*authorityDir): web}
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
