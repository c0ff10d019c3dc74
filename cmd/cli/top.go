package cli

import (
	"context"

	"github.com/leasehold/leasehold/cmd/top"
	"github.com/leasehold/leasehold/store"
)

// Top is the command top.
type Top struct {
	Every Interval `help:"How often etcd is asked if the output is not a terminal (default: ${default})." default:"2s" placeholder:"DURATION"`
}

// Run shows the shard live in a terminal; elsewhere it prints a line for each change.
func (c *Top) Run(ctx context.Context, s *Session) error {
	if !s.env.StdoutTerminal || !s.env.StdinTerminal || s.flags.Output != "table" {
		return s.watchStatus(ctx, c.Every.D())
	}
	// Errors of the first read are reported as by every other command.
	if _, err := s.find(ctx, s.keys().Shard()); err != nil {
		return err
	}
	cfg := top.Config{Shard: s.flags.Shard, Now: s.env.Now, Colour: s.screen().Colour, In: s.env.Stdin, Out: s.env.Stdout}
	if in, ok := cfg.In.(*input); ok {
		cfg.In = in.from // the terminal itself, to change its mode
	}
	if ask := s.env.Members; ask != nil {
		cfg.Members = func(ctx context.Context) (store.Members, error) { return ask(ctx, s.connection(nil)) }
	}
	return top.Run(ctx, cfg, s.st)
}
