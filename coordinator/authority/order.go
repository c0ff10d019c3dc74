package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Order describes a certificate that a group wants for one of its instances.
type Order struct {
	Instance string
	Names    []string // host names and IP addresses, sorted, each once
	KeyType  string   // as store.FileCertificate has it
	Lifetime time.Duration
}

// hosts and addresses are the two kinds of names.
func (o Order) split() (hosts []string, addresses []netip.Addr) {
	for _, name := range o.Names {
		if a, err := netip.ParseAddr(name); err == nil {
			addresses = append(addresses, a)
		} else {
			hosts = append(hosts, name)
		}
	}
	return hosts, addresses
}

// Limits restrict the orders to an authority.
type Limits struct {
	// Domains are the host names allowed: these and all below them.
	Domains []string `json:"domains"`
	// Networks are the IP addresses allowed.
	Networks []netip.Prefix `json:"networks"`
	// MaxLifetime of a certificate; default 30 days.
	MaxLifetime store.Duration `json:"max_lifetime"`
}

// MaxLifetime is the default of Limits.MaxLifetime.
const MaxLifetime = 30 * 24 * time.Hour

// check validates the limits and sets defaults.
func (l *Limits) check() error {
	if len(l.Domains)+len(l.Networks) == 0 {
		return errors.New("domains: is missing, and so is networks: name what certificates may be for, " +
			"such as domains: [web.internal]")
	}
	for i, d := range l.Domains {
		if _, err := netip.ParseAddr(d); err == nil || !store.IsCertificateName(d) {
			return fmt.Errorf("domains[%d]: %.100q: must be a host name in lower case without wildcard: "+
				"what is below it is allowed too", i, d)
		}
	}
	switch {
	case l.MaxLifetime == 0:
		l.MaxLifetime = store.Duration(MaxLifetime)
	case l.MaxLifetime < store.MinCertificateLife || l.MaxLifetime > store.MaxCertificateLife:
		return fmt.Errorf("max_lifetime: %s: must be %s to %s", l.MaxLifetime, store.MinCertificateLife,
			store.MaxCertificateLife)
	}
	return nil
}

// allow returns why an order is not allowed, or nil.
func (l *Limits) allow(o Order) error {
	if n := len(o.Names); n == 0 || n > store.MaxCertificateNames {
		return fmt.Errorf("%d names: 1 to %d are allowed", n, store.MaxCertificateNames)
	}
	hosts, addresses := o.split()
	for _, h := range hosts {
		if !store.IsCertificateName(h) || !slices.ContainsFunc(l.Domains, func(d string) bool {
			return h == d ||
				strings.HasSuffix(h, "."+d)
		}) {
			return fmt.Errorf("it may not certify %.100q: its domains are %s", h, listed(l.Domains))
		}
	}
	for _, a := range addresses {
		if !slices.ContainsFunc(l.Networks, func(p netip.Prefix) bool { return p.Contains(a) }) {
			return fmt.Errorf("it may not certify %s: its networks are %s", a, listed(l.Networks))
		}
	}
	if o.Lifetime <= 0 || o.Lifetime > l.MaxLifetime.D() {
		return fmt.Errorf("a lifetime of %s: it allows at most %s", o.Lifetime, l.MaxLifetime)
	}
	return nil
}

func listed[T any](list []T) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Trim(fmt.Sprint(list), "[]")
}

// maxRequest bounds a request; one with sixteen of the longest names and an RSA key has about 5
// KiB.
const maxRequest = 8 << 10

// keyOf returns the key of a request that asks for exactly what the order says and is signed with
// that key.
func (o Order) keyOf(request []byte) (crypto.PublicKey, error) {
	if len(request) > maxRequest {
		return nil, fmt.Errorf("the request has %d bytes, at most %d can be", len(request), maxRequest)
	}
	r, err := x509.ParseCertificateRequest(request)
	if err != nil {
		return nil, fmt.Errorf("the request cannot be read: %w", err)
	}
	if err := o.keyFits(r.PublicKey); err != nil {
		return nil, err
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the request is not signed by its key: %w", err)
	}
	if subject := (pkix.Name{CommonName: o.Instance}); r.Subject.String() != subject.String() {
		return nil, fmt.Errorf("the request is of %.100q and not of instance %s", r.Subject, o.Instance)
	}
	for _, e := range r.Extensions {
		if !e.Id.Equal([]int{2, 5, 29, 17}) { // the names
			return nil, fmt.Errorf("the request has the extension %s, and no other than its names is allowed", e.Id)
		}
	}
	if err := o.namesAre(r.DNSNames, r.IPAddresses, len(r.EmailAddresses)+len(r.URIs)); err != nil {
		return nil, fmt.Errorf("the request %w", err)
	}
	return r.PublicKey, nil
}

func (o Order) keyFits(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if o.KeyType == store.KeyECDSA && k.Curve == elliptic.P256() {
			return nil
		}
	case *rsa.PublicKey:
		if o.KeyType == store.KeyRSA && k.N.BitLen() == 2048 {
			return nil
		}
	}
	return fmt.Errorf("the request's key is not of the type that was ordered: %s", o.KeyType)
}

// namesAre returns an error unless the names are the order's.
func (o Order) namesAre(hosts []string, addresses []net.IP, others int) error {
	names := slices.Clone(hosts)
	for _, ip := range addresses {
		a, _ := netip.AddrFromSlice(ip)
		names = append(names, a.Unmap().String())
	}
	slices.Sort(names)
	if others > 0 || !slices.Equal(names, o.Names) {
		return fmt.Errorf("names %.300q, and %d others: ordered were %q", names, others, o.Names)
	}
	return nil
}

// check returns what is wrong with a certificate that an authority issued for the key.
func (o Order) check(chain [][]byte, key crypto.PublicKey, bundle []byte, now time.Time) (ends time.Time, err error) {
	if len(chain) == 0 || len(chain) > maxChain {
		return ends, fmt.Errorf("the chain has %d certificates: 1 to %d are allowed", len(chain), maxChain)
	}
	var all []*x509.Certificate
	bytes := 0
	for _, der := range chain {
		if bytes += len(der); bytes > maxChainBytes {
			return ends, fmt.Errorf("the chain has more than %d bytes", maxChainBytes)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return ends, fmt.Errorf("the certificate cannot be read: %w", err)
		}
		all = append(all, c)
	}
	leaf := all[0]
	if public, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(key) {
		return ends, errors.New("the certificate is for another key than the request's")
	}
	if err := o.namesAre(leaf.DNSNames, leaf.IPAddresses, len(leaf.EmailAddresses)+len(leaf.URIs)); err != nil {
		return ends, fmt.Errorf("the certificate %w", err)
	}
	switch {
	case leaf.IsCA:
		return ends, errors.New("the certificate is an authority's")
	case leaf.NotAfter.After(now.Add(o.Lifetime + lifeSlack)):
		return ends, fmt.Errorf("the certificate lasts until %s: a lifetime of %s was ordered",
			leaf.NotAfter.UTC().Format(time.RFC3339), o.Lifetime)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	for _, c := range all[1:] {
		between.AddCert(c)
	}
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return ends, fmt.Errorf("the certificate would not be trusted by who has the bundle: %w", err)
	}
	return leaf.NotAfter, nil
}

const (
	maxChain      = 8
	maxChainBytes = 64 << 10        // it is sent to the agent in one message
	lifeSlack     = 5 * time.Minute // an authority may use its own clock
)
