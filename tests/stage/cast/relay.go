package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/leasehold/leasehold/tests/faults/network"
)

// relay takes connections and passes on what is said, both ways. Stopped, it is a network that has
// gone silent: the kernel takes bytes and connections, and nothing arrives. With a delay it is a
// slow network, and one that loses.
func relay(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	from := flags.String("from", "", "where it listens")
	to := flags.String("to", "", "where it leads")
	var rule network.Rule
	flags.DurationVar(&rule.Delay, "delay", 0, "how long everything takes, each way")
	flags.DurationVar(&rule.Jitter, "jitter", 0, "how much longer it may take")
	flags.Float64Var(&rule.Loss, "loss", 0, "of all that is said, so much is said again")
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
