package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/leasehold/leasehold/tests/faults/network"
)

// relay accepts connections and forwards both directions. When it is stopped, it is a silent
// network: the kernel accepts bytes and connections, and nothing arrives. With a delay it is a slow
// network, and a lossy one.
func relay(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	from := flags.String("from", "", "listening address")
	to := flags.String("to", "", "target address")
	var rule network.Rule
	flags.DurationVar(&rule.Delay, "delay", 0, "delay in each direction")
	flags.DurationVar(&rule.Jitter, "jitter", 0, "maximum of the additional random delay")
	flags.Float64Var(&rule.Loss, "loss", 0, "share of the data that is retransmitted")
	if err := flags.Parse(args); err != nil {
		return err
	}
	n := network.New()
	defer n.Close()
	n.Impose(rule)
	if _, err := n.Listen(network.Way{To: *to, At: *from, Leads: *to}); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "ready")
	<-ctx.Done()
	return nil
}
