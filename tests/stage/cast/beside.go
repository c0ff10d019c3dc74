package main

import (
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
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/faults/witness"
	"github.com/leasehold/leasehold/tests/stage/swarm"
)

// beside are what a replica of a test has that the product's has not: a provider and a load
// balancer of the test's, an authority for workloads, and a record of its commits.
type beside struct {
	swarm, zones, front, authority, kept string
	callTimeout                          time.Duration
}

func besideOf(flags *flag.FlagSet) *beside {
	b := &beside{}
	flags.StringVar(&b.swarm, "swarm", "", "the swarm's socket")
	flags.StringVar(&b.zones, "zones", "a,b", "zones of the swarm")
	flags.StringVar(&b.front, "balancer", "", "name of the load balancer at the swarm's socket; empty: there is none")
	flags.StringVar(&b.authority, "authority", "",
		"directory of an authority for workloads, and its name; empty: none")
	flags.StringVar(&b.kept, "history", "", "file for its commits, to which its process ID is added; empty: none")
	flags.DurationVar(&b.callTimeout, "call-timeout", 0, "time limit of calls of the swarm; 0: the default")
	return b
}

// join gives a replica all of these but the record. pki is its directory of authorities.
func (b *beside) join(host *services.Host, id, pki string) error {
	machines := socket.NewProvider(id, b.swarm, strings.FieldsFunc(b.zones, func(r rune) bool { return r == ',' })...)
	machines.CallTimeout = b.callTimeout
	host.Providers = map[string]provider.Provider{"swarm": machines}
	if b.front != "" {
		host.Balancers = map[string]balancer.Balancer{b.front: swarm.NewBalancer(id, b.swarm)}
	}
	if b.authority == "" {
		return nil
	}
	web, err := authority.NewOwn(authority.OwnConfig{
		Dir: b.authority, Limits: authority.Limits{Domains: []string{"internal"}},
	}, pki, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	host.Authorities = map[string]authority.Authority{filepath.Base(b.authority): web}
	return nil
}

// record records the commits of a replica. It returns the store and what closes the record.
func (b *beside) record(st store.Store, id string) (store.Store, func() error, error) {
	if b.kept == "" {
		return st, func() error { return nil }, nil
	}
	file, err := history.Append(fmt.Sprintf("%s-%d", b.kept, os.Getpid()))
	if err != nil {
		return nil, nil, err
	}
	return witness.Record(st, witness.Recording{
		Replica: id, Process: os.Getpid(), Keys: store.KeysOf("default"), File: file,
	}), file.Close, nil
}
