package cli

import (
	"github.com/alecthomas/kong"
	"github.com/leasehold/leasehold/cmd/manual"
)

// Manual is the hidden command man, which packages are built with.
type Manual struct{}

// Run prints the manual page.
func (*Manual) Run(inv *Invocation, parsed *kong.Context) error {
	return manual.Write(inv.env.Stdout, parsed.Model, inv.env.Version)
}
