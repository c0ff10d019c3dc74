package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

// serveEtcd runs one member of an etcd.
func serveEtcd(ctx context.Context, args []string) error {
	conf, err := memberOf(args)
	if err != nil {
		return err
	}
	etcd, err := embed.StartEtcd(conf)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
		fmt.Fprintln(os.Stdout, "ready")
	case <-ctx.Done():
		return nil
	case err := <-etcd.Err():
		return err
	}
	select {
	case <-ctx.Done():
	case err := <-etcd.Err():
		return err
	case <-etcd.Server.StopNotify():
	}
	return nil
}

// memberOf parses the member's flags.
func memberOf(args []string) (*embed.Config, error) {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	name := flags.String("name", "m1", "the member")
	dir := flags.String("dir", "", "its data")
	client := flags.String("client", "", "address for clients")
	peer := flags.String("peer", "", "address for other members")
	clientsFind := flags.String("advertise-client", "", "address that clients use, if different")
	othersFind := flags.String("advertise-peer", "", "address that other members use, if different")
	source := flags.String("source", "", "source IP address of connections to other members; any if empty")
	cluster := flags.String("cluster", "", "all members: name=url,…")
	existing := flags.Bool("existing", false, "join an existing cluster, without data")
	quota := flags.Int64("quota", 0, "quota of its data in bytes; 0: etcd's default")
	compact := flags.Duration("compact", 0, "revisions of history to keep; 0: all, until a client compacts it")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *source != "" {
		if err := setSource(*source); err != nil {
			return nil, err
		}
	}
	conf := embed.NewConfig()
	conf.Name, conf.Dir, conf.InitialCluster = *name, *dir, *cluster
	if *existing {
		conf.ClusterState = embed.ClusterStateFlagExisting
	}
	at := func(host string) []url.URL { return []url.URL{{Scheme: "http", Host: host}} }
	conf.ListenClientUrls, conf.AdvertiseClientUrls = at(*client), at(cmp.Or(*clientsFind, *client))
	conf.ListenPeerUrls, conf.AdvertisePeerUrls = at(*peer), at(cmp.Or(*othersFind, *peer))
	conf.QuotaBackendBytes = *quota
	if *compact > 0 {
		conf.AutoCompactionMode, conf.AutoCompactionRetention = embed.CompactorModePeriodic, compact.String()
	}
	conf.LogLevel, conf.LogOutputs = "warn", []string{"stderr"}
	return conf, nil
}
