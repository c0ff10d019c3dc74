package cli

import "github.com/leasehold/leasehold/cmd/server"

// Servers are the commands about hosts that run leasehold server.
type Servers struct {
	Run server.Command `cmd:"" default:"withargs" help:"Run this host: an etcd member and a replica. The word run may be left out."`
}
