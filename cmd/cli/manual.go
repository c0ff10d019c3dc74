package cli

import (
	"github.com/alecthomas/kong"
	"github.com/leasehold/leasehold/cmd/manual"
)

// Manual is the hidden command man, which packages are built with.
type Manual struct{}

// Run prints the manual page.
func (*Manual) Run(s *Session, parsed *kong.Context) error {
	return manual.Write(s.env.Stdout, parsed.Model, s.env.Version)
}
