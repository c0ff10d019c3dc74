package services

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/rights"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// devCredentials are the certificates of dev: the authorities in its data directory, and what they
// issued.
type devCredentials struct{ dir string }

// devServer is the name in the certificate of dev's etcd: not a user.
const devServer = "etcd"

// devUsers are the users of dev's etcd, besides root.
var devUsers = []store.Role{store.RoleCoordinator, store.RoleOperator, store.RoleViewer}

// renewBefore is how long before its expiry dev renews a certificate.
const renewBefore = 60 * 24 * time.Hour

// makeCredentials creates what is missing or about to expire.
func makeCredentials(dir, etcdHost string) (devCredentials, error) {
	c := devCredentials{dir: filepath.Join(dir, "pki")}
	for kind, lifetime := range map[pki.Kind]time.Duration{
		pki.Agents:    pki.AgentsLifetime,
		pki.Operators: pki.OperatorsLifetime,
	} {
		if err := pki.Init(c.dir, map[pki.Kind]time.Duration{kind: lifetime}); err != nil &&
			!errors.Is(err, pki.ErrExists) {
			return c, credentialsProblem(err)
		}
	}
	issued, _, err := pki.ListIssued(c.dir)
	if err != nil {
		return c, credentialsProblem(err)
	}
	hosts := []string{"127.0.0.1", "localhost"}
	if ip := net.ParseIP(etcdHost); ip != nil && !ip.IsUnspecified() && etcdHost != hosts[0] {
		hosts = append(hosts, etcdHost)
	}
	orders := []pki.Order{{Name: devServer, Hosts: hosts}, {Name: store.RoleRoot}}
	for _, u := range devUsers {
		orders = append(orders, pki.Order{Name: string(u)})
	}
	for _, o := range orders {
		if lasts(issued, o, hosts) {
			continue
		}
		o.Renew = true
		if _, err := pki.IssueOperator(c.dir, o); err != nil {
			return c, credentialsProblem(err)
		}
	}
	return c, nil
}

// lasts reports whether a certificate exists and is valid for a while.
func lasts(issued []pki.Issued, o pki.Order, hosts []string) bool {
	for _, i := range issued {
		if i.Name() != o.Name {
			continue
		}
		_, err := os.Stat(i.Key)
		good := err == nil && time.Until(i.Certificate.NotAfter) > renewBefore
		for _, host := range hosts {
			good = good && (o.Name != devServer || i.Certificate.VerifyHostname(host) == nil)
		}
		return good
	}
	return false
}

func credentialsProblem(err error) error {
	var known *pki.Problem
	if errors.As(err, &known) {
		return problem(known.Next, "%s", known.What)
	}
	return problem("choose a directory that you may write to, with --data-dir", "certificates: %s", err)
}

func (c devCredentials) ca(kind pki.Kind) string {
	return filepath.Join(c.dir, string(kind), "ca.crt")
}

// of returns the files of a user's certificate and key.
func (c devCredentials) of(name string) (cert, key string) {
	file := filepath.Join(c.dir, "issued", name)
	return file + ".crt", file + ".key"
}

// server returns how dev's etcd listens.
func (c devCredentials) server() *embedetcd.TLS {
	cert, key := c.of(devServer)
	return &embedetcd.TLS{Cert: cert, Key: key, ClientCA: c.ca(pki.Operators)}
}

// client returns the configuration of a client of dev's etcd.
func (c devCredentials) client(name string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.of(name))
	if err != nil {
		return nil, err
	}
	files, err := pki.Load(c.dir, pki.Operators)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		RootCAs: files.Trust().Pool(),
	}, nil
}

// giveRights gives dev's users the roles of the same names, and enables authentication in etcd.
func (c devCredentials) giveRights(ctx context.Context, endpoint, shard string) (err error) {
	secure, err := c.client(store.RoleRoot)
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
	for _, u := range devUsers {
		steps = append(steps, w.Add(st, string(u), u)...)
	}
	if err := rights.Do(ctx, etcd, steps, func(rights.Step) {}); err != nil {
		return err
	}
	if st.Enabled {
		return nil
	}
	return etcd.Enable(ctx) // dev's etcd authenticates by certificate, so root can log in
}

// devEtcdctl is the file in the data directory of a running dev with the variables for etcdctl.
func devEtcdctl(dataDir string) string { return filepath.Join(dataDir, "etcdctl.env") }

// tell writes how to reach dev's etcd: settings for leasehold, as an operator, and variables for
// etcdctl, as root, which reads every shard.
func (c devCredentials) tell(dir, endpoint, shard string) error {
	cert, key := c.of(string(store.RoleOperator))
	rootCert, rootKey := c.of(store.RoleRoot)
	ca := c.ca(pki.Operators)
	settings := fmt.Sprintf("# leasehold dev writes this when it starts, and removes it when it stops\nendpoints: "+
		"[%q]\ncacert: %q\ncert: %q\nkey: %q\nshard: %q\n", endpoint, ca, cert, key, shard)
	variables := fmt.Sprintf("export ETCDCTL_ENDPOINTS=%s ETCDCTL_CACERT=%s ETCDCTL_CERT=%s ETCDCTL_KEY=%s\n",
		quoted("https://"+endpoint), quoted(ca), quoted(rootCert), quoted(rootKey))
	return errors.Join(
		os.WriteFile(DevSettings(dir), []byte(settings), 0o600),
		os.WriteFile(devEtcdctl(dir), []byte(variables), 0o600),
	)
}

// forget removes what tell wrote, when the etcd has stopped.
func (c devCredentials) forget(dir string) error {
	return errors.Join(os.Remove(DevSettings(dir)), os.Remove(devEtcdctl(dir)))
}

// quoted quotes a word for a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quotedIfNeeded quotes only what a shell would split: most paths read better without quotes.
func quotedIfNeeded(s string) string {
	if strings.ContainsAny(s, " \t'\"\\$`&;()<>|*?[]#~!") {
		return quoted(s)
	}
	return s
}
