package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/provider/durable"
)

// OperatorLifetime is how long a certificate of the operators' authority lasts by
// default.
const OperatorLifetime = 365 * 24 * time.Hour

// Order describes a certificate that the operators' authority should issue.
type Order struct {
	Name     string        // etcd's user
	Hosts    []string      // host names and addresses, for a server
	Lifetime time.Duration // 0: OperatorLifetime
	Renew    bool          // replace an existing one
}

// Issued is a certificate of the operators' authority, with its files.
type Issued struct {
	Certificate *x509.Certificate
	File, Key   string
}

// Name returns the certificate's common name.
func (i Issued) Name() string { return i.Certificate.Subject.CommonName }

// Server reports whether it is also for a server.
func (i Issued) Server() bool {
	return slices.Contains(i.Certificate.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
}

// IssueOperator makes a key and a certificate that the operators' authority signs: for a person, a
// coordinator towards etcd or, with hosts, a server. The name is etcd's user.
func IssueOperator(dir string, o Order) (Issued, error) {
	if err := o.check(); err != nil {
		return Issued{}, err
	}
	files, err := operatorsIssuer(dir)
	if err != nil {
		return Issued{}, err
	}
	into := filepath.Join(dir, issuedDir)
	issued := Issued{File: filepath.Join(into, o.Name+".crt"), Key: filepath.Join(into, o.Name+".key")}
	switch _, err := os.Stat(issued.File); {
	case err == nil && !o.Renew:
		return Issued{}, problem(ErrExists, "add --renew to replace it", "%s is there already", issued.File)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Issued{}, fmt.Errorf("issue certificate: %w", err)
	}
	c, err := o.template()
	if err != nil {
		return Issued{}, err
	}
	if o.Lifetime == 0 {
		o.Lifetime = OperatorLifetime
	}
	key, err := identity.NewKey()
	if err != nil {
		return Issued{}, err
	}
	der, _, err := files.Issuer.sign(c, &key.PublicKey, at(time.Now()), o.Lifetime)
	if err == nil {
		issued.Certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return Issued{}, fmt.Errorf("issue certificate of %s: %w", o.Name, err)
	}
	if err := makeDirs(into); err != nil {
		return Issued{}, err
	}
	return issued, Signer{Certificate: issued.Certificate, Above: files.Issuer.between(), Key: key}.write(issued.File,
		issued.Key)
}

// SignOperator signs a certificate of the operators' authority for the key of a request, and
// returns it as PEM with the certificates that must be presented beside it. Of the request only the
// key is used.
func SignOperator(dir string, request []byte, o Order) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	files, err := operatorsIssuer(dir)
	if err != nil {
		return nil, err
	}
	c, err := o.template()
	if err != nil {
		return nil, err
	}
	key, err := identity.ReadRequest(request)
	if err != nil {
		return nil, fmt.Errorf("issue certificate of %s: %w", o.Name, err)
	}
	if o.Lifetime == 0 {
		o.Lifetime = OperatorLifetime
	}
	der, _, err := files.Issuer.sign(c, key, at(time.Now()), o.Lifetime)
	if err != nil {
		return nil, fmt.Errorf("issue certificate of %s: %w", o.Name, err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("issue certificate of %s: %w", o.Name, err)
	}
	return certificatePEM(append([]*x509.Certificate{signed}, files.Issuer.between()...)...), nil
}

// Take stores a signed certificate and its key where IssueOperator would store them.
func Take(dir, name string, certificate []byte, key crypto.Signer) error {
	into := filepath.Join(dir, issuedDir)
	if err := makeDirs(into); err != nil {
		return err
	}
	text, err := keyPEM(key)
	if err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(into, name+".key"), text, 0o600); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(into, name+".crt"), certificate, 0o644)
}

func operatorsIssuer(dir string) (Files, error) {
	files, err := Load(dir, Operators)
	if err == nil && files.Issuer.Key == nil {
		err = problem(nil, "run this where the authority was made",
			"%s is missing: it is needed to issue certificates", filepath.Join(files.Dir, caKey))
	}
	return files, err
}

func (o Order) check() error {
	if !identity.IsName(o.Name) || strings.HasPrefix(o.Name, ".") || strings.HasPrefix(o.Name, "-") {
		return problem(nil, "leasehold pki issue alice",
			"name %q: must be up to 100 letters, digits, dots, dashes and underscores, and begin with none of . and -",
			o.Name)
	}
	return nil
}

// template returns the certificate for the order.
func (o Order) template() (*x509.Certificate, error) {
	c := &x509.Certificate{
		Subject:     pkix.Name{CommonName: o.Name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(o.Hosts) > 0 {
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range o.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else if isHost(host) {
			c.DNSNames = append(c.DNSNames, host)
		} else {
			return nil, problem(nil, "name hosts without port: --host etcd1.example --host 10.0.0.1",
				"host %q: is neither a host name nor an address", host)
		}
	}
	return c, nil
}

// between returns the certificates that a peer must see beside the holder's if it trusts a root
// above this authority: the authorities up to that root.
func (s Signer) between() (chain []*x509.Certificate) {
	for _, c := range append([]*x509.Certificate{s.Certificate}, s.Above...) {
		if !bytes.Equal(c.RawIssuer, c.RawSubject) {
			chain = append(chain, c)
		}
	}
	return chain
}

func isHost(host string) bool {
	host = strings.TrimPrefix(host, "*.")
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || !identity.IsName(label) {
			return false
		}
	}
	return true
}

// ListIssued reads the certificates that were issued by hand, by name. It skips and names files
// that are no certificates.
func ListIssued(dir string) (all []Issued, unreadable []string, err error) {
	into := filepath.Join(dir, issuedDir)
	entries, err := os.ReadDir(into) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list issued certificates: %w", err)
	}
	for _, e := range entries {
		name, isCertificate := strings.CutSuffix(e.Name(), ".crt")
		if !isCertificate || strings.HasPrefix(name, ".") {
			continue
		}
		file := filepath.Join(into, e.Name())
		c, err := readCertificate(file)
		if err != nil {
			unreadable = append(unreadable, fmt.Sprintf("%s: %s", file, err))
			continue
		}
		all = append(all, Issued{Certificate: c, File: file, Key: filepath.Join(into, name+".key")})
	}
	return all, unreadable, nil
}

func readCertificate(file string) (*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("holds no certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}
