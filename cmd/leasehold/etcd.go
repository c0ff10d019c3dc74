package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/leasehold/leasehold/cmd/cli"
	"github.com/leasehold/leasehold/cmd/rights"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// openEtcd connects to etcd.
func openEtcd(ctx context.Context, c cli.Connection) (store.Store, func() error, error) {
	conf, err := configOf(c)
	if err != nil {
		return nil, nil, err
	}
	st, err := etcdstore.Open(ctx, conf)
	if err != nil {
		return nil, nil, err
	}
	return st, st.Close, nil
}

// openRights connects to etcd's users and roles.
func openRights(ctx context.Context, c cli.Connection) (rights.Etcd, func() error, error) {
	conf, err := configOf(c)
	if err != nil {
		return nil, nil, err
	}
	r, err := etcdstore.OpenRights(ctx, conf)
	if err != nil {
		return nil, nil, err
	}
	return r, r.Close, nil
}

func configOf(c cli.Connection) (etcdstore.Config, error) {
	secure, err := tlsOf(c)
	return etcdstore.Config{Endpoints: c.Endpoints, TLS: secure, Username: c.Username, Password: c.Password, Logger: c.Logger}, err
}

// tlsOf is how to encrypt; nil if nothing says that it should be.
func tlsOf(c cli.Connection) (*tls.Config, error) {
	if c.CACert == "" && c.Cert == "" && c.Key == "" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CACert != "" {
		pem, err := os.ReadFile(c.CACert)
		if err != nil {
			return nil, fmt.Errorf("read --cacert: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read --cacert: %s has no certificate in PEM form", c.CACert)
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, fmt.Errorf("--cert and --key go together: give both or neither")
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("read --cert and --key: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}
