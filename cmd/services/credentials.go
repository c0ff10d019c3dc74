package services

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/cmd/rights"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// Credentials are the certificates of an etcd that we run ourselves: the authorities in a
// directory, and the certificates of etcd and its users.
type Credentials struct{ Dir string }

// EtcdName is the name in the certificates of etcd's members: not a user.
const EtcdName = "etcd"

// etcdUsers are etcd's users besides root, each with the role of that name.
var etcdUsers = []store.Role{store.RoleCoordinator, store.RoleOperator, store.RoleViewer}

// renewBefore is how long before its expiry a certificate is renewed.
const renewBefore = 60 * 24 * time.Hour

// MakeAuthorities creates the authorities that do not exist.
func (c Credentials) MakeAuthorities() error {
	for kind, lifetime := range map[pki.Kind]time.Duration{
		pki.Agents:    pki.AgentsLifetime,
		pki.Operators: pki.OperatorsLifetime,
	} {
		if err := pki.Init(c.Dir, map[pki.Kind]time.Duration{kind: lifetime}); err != nil &&
			!errors.Is(err, pki.ErrExists) {
			return err
		}
	}
	return nil
}

// Issue issues the certificates of etcd, for these hosts, and of its users, if they are missing,
// about to expire, or not valid yet because a clock was ahead (SAFE-13).
func (c Credentials) Issue(hosts []string) error {
	issued, _, err := pki.ListIssued(c.Dir)
	if err != nil {
		return err
	}
	orders := []pki.Order{{Name: EtcdName, Hosts: hosts}, {Name: store.RoleRoot}}
	for _, u := range etcdUsers {
		orders = append(orders, pki.Order{Name: string(u)})
	}
	for _, o := range orders {
		if lasts(issued, o) {
			continue
		}
		o.Renew = true
		if _, err := pki.IssueOperator(c.Dir, o); err != nil {
			return err
		}
	}
	return nil
}

// lasts reports whether a certificate exists, names the hosts, is valid and stays so for a while.
func lasts(issued []pki.Issued, o pki.Order) bool {
	for _, i := range issued {
		if i.Name() != o.Name {
			continue
		}
		_, err := os.Stat(i.Key)
		now := time.Now()
		good := err == nil && i.Certificate.NotAfter.Sub(now) > renewBefore && !i.Certificate.NotBefore.After(now)
		for _, host := range o.Hosts {
			good = good && i.Certificate.VerifyHostname(host) == nil
		}
		return good
	}
	return false
}

// localHosts returns the names by which this host reaches its own etcd, and the address that it
// listens on.
func localHosts(listens string) []string {
	hosts := []string{"127.0.0.1", "localhost"}
	if ip := net.ParseIP(listens); ip != nil && !ip.IsUnspecified() && listens != hosts[0] {
		hosts = append(hosts, listens)
	}
	return hosts
}

// credentialsProblem explains why certificates could not be made in a data directory.
func credentialsProblem(err error) error {
	var known *pki.Problem
	if errors.As(err, &known) {
		return problem(known.Next, "%s", known.What)
	}
	return problem(DirectoryNext(err), "certificates: %s", err)
}

// CA returns the file with the certificate of an authority.
func (c Credentials) CA(kind pki.Kind) string {
	return filepath.Join(c.Dir, string(kind), "ca.crt")
}

// Of returns the files of a certificate and its key.
func (c Credentials) Of(name string) (cert, key string) {
	file := filepath.Join(c.Dir, "issued", name)
	return file + ".crt", file + ".key"
}

// Server returns how the etcd listens.
func (c Credentials) Server() *embedetcd.TLS {
	cert, key := c.Of(EtcdName)
	return &embedetcd.TLS{Cert: cert, Key: key, ClientCA: c.CA(pki.Operators)}
}

// Client returns the configuration of a client of the etcd. A certificate that is renewed takes
// effect with the next connection.
func (c Credentials) Client(name string) (*tls.Config, error) {
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.Of(name))
		return &pair, err
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	files, err := pki.Load(c.Dir, pki.Operators)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:           tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() },
		RootCAs:              files.Trust().Pool(),
	}, nil
}

// GiveRights gives etcd's users the roles of their names in a shard, and enables authentication.
func (c Credentials) GiveRights(ctx context.Context, endpoint, shard string) (err error) {
	secure, err := c.Client(store.RoleRoot)
	if err != nil {
		return err
	}
	etcd, err := etcdstore.OpenRights(ctx, etcdstore.Config{Endpoints: []string{endpoint}, TLS: secure})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	st, err := rights.Read(ctx, etcd)
	if err != nil {
		return err
	}
	w := rights.Wanted{Shard: shard}
	steps := w.Steps(st)
	for _, u := range etcdUsers {
		steps = append(steps, w.Add(st, string(u), u)...)
	}
	if err := rights.Do(ctx, etcd, steps, func(rights.Step) {}); err != nil {
		return err
	}
	if st.Enabled {
		return nil
	}
	return etcd.Enable(ctx) // this etcd authenticates by certificate, so root can log in
}
