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
func (c *Top) Run(ctx context.Context, inv *Invocation) error {
	if !inv.env.StdoutTerminal || !inv.env.StdinTerminal || inv.flags.Output != "table" {
		return inv.watchStatus(ctx, c.Every.D())
	}
	// Errors of the first read are reported as by every other command.
	if _, err := inv.find(ctx, inv.keys().Shard()); err != nil {
		return err
	}
	cfg := top.Config{
		Shard: inv.flags.Shard, Now: inv.env.Now, Colour: inv.screen().Colour, In: inv.env.Stdin, Out: inv.env.Stdout,
	}
	if in, ok := cfg.In.(*input); ok {
		cfg.In = in.from // the terminal itself, to change its mode
	}
	if ask := inv.env.Members; ask != nil {
		cfg.Members = func(ctx context.Context) (store.Members, error) { return ask(ctx, inv.connection(nil)) }
	}
	return top.Run(ctx, cfg, inv.st)
}
