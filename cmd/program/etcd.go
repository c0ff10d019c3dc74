package program

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcdstore"
)

// Connection is how to reach etcd, and how to authenticate.
type Connection struct {
	Endpoints         []string
	CACert, Cert, Key string
	Username          string
	Password          string
	Logger            *slog.Logger // nil: silent
}

// NoAddress returns the first endpoint that cannot be an address of etcd. An empty list counts as
// one empty endpoint.
func NoAddress(endpoints []string) (wrong string, found bool) {
	if len(endpoints) == 0 {
		return "", true
	}
	for _, e := range endpoints {
		if !isAddress(strings.TrimSpace(e)) {
			return e, true
		}
	}
	return "", false
}

func isAddress(address string) bool {
	for _, scheme := range []string{"http://", "https://"} {
		address = strings.TrimSuffix(strings.TrimPrefix(address, scheme), "/")
	}
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 1 && n <= 65535
}

// withoutAdvice returns an error without what to do about it: the command says that itself, in its
// own flags.
func withoutAdvice(err error) error {
	if dial := (*etcdstore.DialError)(nil); errors.As(err, &dial) {
		return dial.What
	}
	return err
}

// OpenEtcd connects to etcd. The function that it returns closes the store.
func OpenEtcd(ctx context.Context, c Connection) (store.Store, func() error, error) {
	conf, err := c.Config()
	if err != nil {
		return nil, nil, err
	}
	st, err := etcdstore.Open(ctx, conf)
	if err != nil {
		return nil, nil, withoutAdvice(err)
	}
	return st, st.Close, nil
}

// OpenEtcdAs connects to etcd as a user with a password: see etcdstore.OpenAs.
func OpenEtcdAs(ctx context.Context, c Connection, user, password string) (store.Store, func() error, error) {
	conf, err := c.Config()
	if err != nil {
		return nil, nil, err
	}
	st, err := etcdstore.OpenAs(ctx, conf, user, password)
	if err != nil {
		return nil, nil, withoutAdvice(err)
	}
	return st, st.Close, nil
}

// AskEtcd asks etcd's members for their state.
func AskEtcd(ctx context.Context, c Connection) (store.Members, error) {
	conf, err := c.Config()
	if err != nil {
		return store.Members{}, err
	}
	return etcdstore.AskMembers(ctx, conf)
}

// Config returns the connection in the form of the etcd client.
func (c Connection) Config() (etcdstore.Config, error) {
	secure, err := c.tls()
	return etcdstore.Config{
		Endpoints: c.Endpoints, TLS: secure, Username: c.Username, Password: c.Password,
		Logger: c.Logger,
	}, err
}

// FileError is about a file of a certificate or key that cannot be used.
type FileError struct{ err error }

func (e *FileError) Error() string { return e.err.Error() }
func (e *FileError) Unwrap() error { return e.err }

// tls returns the TLS configuration; nil without TLS flags.
func (c Connection) tls() (*tls.Config, error) {
	if c.CACert == "" && c.Cert == "" && c.Key == "" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CACert != "" {
		pem, err := os.ReadFile(c.CACert)
		if err != nil {
			return nil, &FileError{fmt.Errorf("read --cacert: %w", err)}
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &FileError{fmt.Errorf("read --cacert: %s has no certificate in PEM form", c.CACert)}
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, fmt.Errorf("--cert and --key go together: give both or neither")
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, &FileError{fmt.Errorf("read --cert and --key: %w", err)}
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// Caller is the user that etcd identifies us as: from --user, or the one that the certificate
// names, in etcd's order; "" if neither is given.
func (c Connection) Caller() string {
	if c.Username != "" || c.Cert == "" {
		return c.Username
	}
	text, err := os.ReadFile(c.Cert)
	if err != nil {
		return ""
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return ""
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	return cert.Subject.CommonName
}
