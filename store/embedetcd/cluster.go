package embedetcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Cluster is the configuration of a member of a cluster. Members show each other the certificate
// that they show clients, so Config.TLS must be set.
type Cluster struct {
	Name       string // unique
	ClientURL  string // where clients reach the member
	PeerListen string // IP:port to listen on for other members
	PeerURL    string // where other members reach it
	// PeerName is the common name of members' certificates. Others that the same authority issued
	// are for clients, and open no member's port.
	PeerName string

	// Initial are names and peer URLs of all members, this one too, at its first start. Once it has
	// data it knows them, and this is ignored.
	Initial map[string]string
	// Token is a text that no other cluster has; the same for all members.
	Token string
	// New makes a new cluster where there is no data. Otherwise such a member joins the others.
	New bool
	// Alone makes a member continue as the only one: the others are lost.
	Alone bool
}

func (c *Cluster) check(secured *TLS) error {
	if secured == nil {
		return errors.New("start embedded etcd: a member of a cluster needs TLS")
	}
	if _, _, err := splitListen(c.PeerListen); err != nil {
		return err
	}
	for _, text := range []string{c.PeerURL, c.ClientURL} {
		if u, err := url.Parse(text); err != nil || u.Scheme != "https" || u.Port() == "" {
			return fmt.Errorf("start embedded etcd: address of a member: %q: must be https://HOST:PORT", text)
		}
	}
	return nil
}

// apply completes the settings of a member that is alone. c has been checked.
func (c *Cluster) apply(e *embed.Config, secured TLS) {
	e.Name = c.Name
	peer, _ := url.Parse(c.PeerURL)
	client, _ := url.Parse(c.ClientURL)
	e.AdvertisePeerUrls, e.AdvertiseClientUrls = []url.URL{*peer}, []url.URL{*client}
	e.ListenPeerUrls = []url.URL{{Scheme: "https", Host: c.PeerListen}}
	e.PeerTLSInfo = transport.TLSInfo{
		CertFile: secured.Cert, KeyFile: secured.Key, TrustedCAFile: secured.ClientCA, ClientCertAuth: true,
		AllowedCNs: []string{c.PeerName},
		// A host with several addresses may connect from one that its certificate does not have.
		SkipClientSANVerify: true,
	}
	e.InitialCluster = ""
	for name, at := range c.Initial {
		if e.InitialCluster != "" {
			e.InitialCluster += ","
		}
		e.InitialCluster += name + "=" + at
	}
	e.InitialClusterToken = c.Token
	e.ClusterState = embed.ClusterStateFlagExisting
	if c.New {
		e.ClusterState = embed.ClusterStateFlagNew
	}
	e.ForceNewCluster = c.Alone
	e.GRPCAdditionalServerOptions = append(e.GRPCAdditionalServerOptions, grpc.ChainUnaryInterceptor(outliveRemoval))
}

// outliveRemoval answers what etcd would panic on: a client that asks a member for its status in
// the moment in which the member learns that it was removed.
func outliveRemoval(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (_ any, err error) {
	defer func() {
		switch p := recover(); {
		case p == nil:
		case strings.Contains(fmt.Sprint(p), "failed to find local ID in cluster members"):
			err = status.Error(codes.Unavailable, "this member was removed")
		default:
			panic(p)
		}
	}()
	return handle(ctx, req)
}
