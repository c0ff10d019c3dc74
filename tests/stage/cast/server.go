package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/server"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/cmd/supervised"
	"github.com/leasehold/leasehold/store"
)

// isPart reports whether this process is a part of a server: its standard input is its supervisor's
// and brings no orders.
func isPart(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--part=") })
}

// serve runs a host of leasehold server, or one part of it: the product's command, whose replica
// has what every replica of a test has.
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	id := flags.String("name", "", "the host")
	dir := flags.String("dir", "", "its data directory")
	address := flags.String("address", "", "where others reach it")
	bind := flags.String("bind", "", "where it listens")
	port := flags.Int("port", 0, "for agents")
	etcdPort := flags.Int("etcd-port", 0, "for clients of etcd")
	peerPort := flags.Int("peer-port", 0, "for etcd's members")
	begins := flags.Bool("init", false, "the first host")
	join := flags.String("join", "", "a host of the cluster")
	token := flags.String("token", "", "of that")
	part := flags.String("part", "", "one part of it")
	ttl := flags.Duration("session-ttl", 3*time.Second, "TTL of its replica's session")
	clock := flags.String("clock", "", "file with how many seconds the host's wall clock is ahead")
	memberFrom := flags.String("member-source", "", "source IP address of the member's connections")
	from := flags.String("source", "", "source IP address of all other connections")
	more := besideOf(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	source := *from
	if *part == "member" {
		source = *memberFrom
	}
	if err := setSource(source); err != nil {
		return err
	}
	go followClock(ctx, *clock)
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	host := &services.Host{
		Stdout: os.Stdout, Stderr: os.Stderr, Version: "test", Shard: "default", Args: os.Args[1:],
		Service: supervised.Open(),
	}
	if *part == "replica" {
		if err := more.join(host, *id, filepath.Join(*dir, "pki")); err != nil {
			return err
		}
		host.Around = func(st store.Store) store.Store {
			recorded, _, err := more.record(st, *id) // the file is closed with the process
			if err != nil {
				panic(err)
			}
			return recorded
		}
	}
	command := server.Command{
		Name: *id, Init: *begins, Join: *join, Token: *token, Address: *address, Bind: *bind, Port: *port,
		EtcdPort: *etcdPort, PeerPort: *peerPort, DataDir: *dir, Part: *part, HangLimit: 2 * time.Minute,
		Replica: services.Replica{
			Agent: self, Zones: []string{"local"}, SessionTTL: *ttl, LogLevel: "info", HTTP: services.HTTP{HTTP: "off"},
		},
	}
	return command.Run(ctx, host)
}

// followClock sets the wall clock as a file says, until ctx ends: all processes of a host have one
// clock, also those that start while it is wrong.
func followClock(ctx context.Context, file string) {
	last := int64(0)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		var seconds int64
		text, err := os.ReadFile(file)
		if err == nil {
			_, err = fmt.Sscan(string(text), &seconds)
		}
		if err == nil && seconds != last {
			last = seconds
			if err := setClock(seconds); err != nil {
				panic(err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}
