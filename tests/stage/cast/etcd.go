package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
)

// serveEtcd is one member of an etcd.
func serveEtcd(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	name := flags.String("name", "m1", "the member")
	dir := flags.String("dir", "", "its data")
	client := flags.String("client", "", "where it serves clients")
	peer := flags.String("peer", "", "where it serves other members")
	cluster := flags.String("cluster", "", "all members: name=url,…")
	if err := flags.Parse(args); err != nil {
		return err
	}
	conf := embed.NewConfig()
	conf.Name, conf.Dir, conf.InitialCluster = *name, *dir, *cluster
	conf.ListenClientUrls = []url.URL{{Scheme: "http", Host: *client}}
	conf.AdvertiseClientUrls = conf.ListenClientUrls
	conf.ListenPeerUrls = []url.URL{{Scheme: "http", Host: *peer}}
	conf.AdvertisePeerUrls = conf.ListenPeerUrls
	conf.LogLevel, conf.LogOutputs = "warn", []string{"stderr"}
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
