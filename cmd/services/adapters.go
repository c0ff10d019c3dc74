package services

import (
	"context"
	"log/slog"

	"github.com/leasehold/leasehold/cmd/providerfile"
	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/discovery"
)

// Adapters are what a coordinator can talk to besides etcd and agents. A program chooses them,
// because they link large modules. The zero value has none, and suffices for a coordinator without
// a file of providers and without xDS.
type Adapters struct {
	// Kinds are the kinds that the file of providers may name.
	Kinds providerfile.Kinds
	// XDS creates an xDS server, which does not listen yet; nil: this program has none.
	XDS func(listen string, files access.Config, d *discovery.Directory, log *slog.Logger) (DiscoveryServer, error)
}

// DiscoveryServer tells clients which instances are in service.
type DiscoveryServer interface {
	// Listen opens the address, and fails with an access.UnsafeError if strangers could reach it.
	Listen(ctx context.Context) error
	Address() string
	Run(ctx context.Context) error
}
