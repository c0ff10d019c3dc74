package adapters

import (
	"log/slog"

	"github.com/leasehold/leasehold/cmd/providerfile"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/discovery"
	"github.com/leasehold/leasehold/coordinator/discovery/xdsserver"
)

// All are all adapters.
func All() services.Adapters {
	return services.Adapters{
		Kinds: providerfile.Kinds{Providers: providers, Balancers: balancers},
		XDS:   xds,
	}
}

func xds(listen string, files access.Config, d *discovery.Directory, log *slog.Logger,
) (services.DiscoveryServer, error) {
	return xdsserver.New(xdsserver.Config{Listen: listen, Access: files}, d, log)
}
