// The cast is the programs of a scenario, in one binary, so that each can be a process of its own,
// to be killed and paused:
//
//	cast etcd         a member of an etcd, alone or of a cluster
//	cast coordinator  a replica, wired as leasehold coordinator is, with one more provider
//	cast server       a host of leasehold server, whose replica has that provider as well
//	cast swarm        the machines, with their agents, and that provider
//	cast relay        a way between two of them that can be stopped, or be slow
//	cast agent        the product's agent, which finds what it needs in its environment
//	cast keeper       ends the machines of a test that ended otherwise than in order
//
// A cast whose standard input ends ends too: nothing outlives the test, however that ends.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "keeper" {
		keep(os.Args[2])
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := make(chan error, 2)
	if !isPart(os.Args) {
		go func() { ended <- followOrders(os.Stdin) }()
	}
	go func() { ended <- run(ctx, os.Args[1:]) }()
	if err := <-ended; err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("cast: which part? etcd, coordinator, server, swarm, relay, agent or keeper")
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	switch part, args := args[0], args[1:]; part {
	case "etcd":
		return serveEtcd(ctx, args)
	case "coordinator":
		return coordinate(ctx, args)
	case "server":
		return serve(ctx, args)
	case "swarm":
		return liveTogether(ctx, args, log)
	case "agent":
		return beAgent(ctx, args, log)
	case "relay":
		return relay(ctx, args)
	default:
		return fmt.Errorf("cast: %s: no such part", part)
	}
}

// followOrders reads offsets of the wall clock, and returns when the sender has ended.
func followOrders(from io.Reader) error {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var seconds int64
		if _, err := fmt.Sscanf(lines.Text(), "clock %d", &seconds); err != nil {
			return fmt.Errorf("order %q: %w", lines.Text(), err)
		}
		if err := setClock(seconds); err != nil {
			return err
		}
	}
	return errors.New("the sender of orders has ended")
}
