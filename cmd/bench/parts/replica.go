package parts

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/cmd/bench/cloud"
	"github.com/leasehold/leasehold/cmd/bench/seed"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// ReplicaOrder is the configuration of a replica.
type ReplicaOrder struct {
	Shard  string
	ID     string
	Listen string // address for agents
	HTTP   string // address for metrics
	PKI    string // directory of the shard's authorities
	Dir    string // for the process provider, which has no machines here
	Cloud  string // the socket of the bench's machines
	// Authority is the directory of the authority for the instances' certificates; "": there is
	// none.
	Authority string
	// Streams is how many streams a connection may have, without TLS; 0: the default for agents.
	Streams uint32

	Log     io.Writer
	Version string
	Open    func(context.Context, *slog.Logger) (store.Store, func() error, error)
}

// sessionTTL is the product's own default.
const sessionTTL = store.DefaultSessionTTL

// Replica returns the part that runs a replica: the product's own command, with the bench's
// provider added.
func Replica(ctx context.Context, o ReplicaOrder, ready func(Ready) error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	host := &services.Host{
		Stdout: o.Log, Stderr: o.Log, Version: o.Version, Shard: o.Shard, Open: o.Open,
		Allowed:   func(context.Context, store.Role) error { return nil }, // what is not allowed fails
		Providers: map[string]provider.Provider{cloud.Name: cloud.NewProvider(o.Cloud)},
		Ready: func(address string) {
			if err := ready(Ready{Address: address}); err != nil {
				cancel(err)
			}
		},
	}
	if o.Authority != "" {
		own, err := authority.NewOwn(authority.OwnConfig{
			Dir: o.Authority, Limits: authority.Limits{Domains: []string{seed.Domain}},
		}, o.PKI, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		host.Authorities = map[string]authority.Authority{seed.Authority: own}
	}
	command := services.Coordinator{
		Listen: o.Listen, ID: o.ID, PKI: o.PKI, Machines: filepath.Join(o.Dir, "machines-"+o.ID),
		StateDir: filepath.Join(o.Dir, "known-"+o.ID), StreamsPerConnection: o.Streams,
		Replica: services.Replica{
			Agent: self, Zones: []string{"local"}, SessionTTL: sessionTTL, LogLevel: "info", HTTP: services.HTTP{HTTP: o.HTTP},
		},
	}
	return command.Run(ctx, host)
}
