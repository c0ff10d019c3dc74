package identity

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Scheme is the scheme of the URI in a certificate.
const Scheme = "leasehold"

// Role is the kind of a certificate's holder.
type Role string

// The roles.
const (
	Agent       Role = "agent"
	Coordinator Role = "coordinator"
)

// Identity is the subject of a certificate.
type Identity struct {
	Shard string // the shard's random ID
	Role  Role
	Name  string // of an agent: its instance ID; of a coordinator: its replica ID
}

// maxName bounds the length of each part of an identity.
const maxName = 100

// ErrNoIdentity means that a certificate has no name of a known form.
var ErrNoIdentity = errors.New("certificate names no identity")

// String returns the URI.
func (i Identity) String() string { return i.URI().String() }

// URI returns the identity in the form that a certificate carries.
func (i Identity) URI() *url.URL {
	return &url.URL{Scheme: Scheme, Host: i.Shard, Path: "/" + string(i.Role) + "/" + i.Name}
}

// Host returns the host name that all servers of this role share.
func (i Identity) Host() string { return Host(i.Shard, i.Role) }

// Host returns the host name in the certificates of a shard's servers.
func Host(shard string, role Role) string { return string(role) + "." + shard + "." + Scheme }

// Validate returns an error if the identity cannot be certified.
func (i Identity) Validate() error {
	switch {
	case !IsName(i.Shard):
		return fmt.Errorf("identity: shard %q is not a name", i.Shard)
	case i.Role != Agent && i.Role != Coordinator:
		return fmt.Errorf("identity: role %q: agent or coordinator", i.Role)
	case !IsName(i.Name):
		return fmt.Errorf("identity: %s %q is not a name", i.Role, i.Name)
	}
	return nil
}

// IsName reports whether a text can be part of an identity: up to 100 letters, digits, dots, dashes
// and underscores, and not only dots.
func IsName(s string) bool {
	if s == "" || len(s) > maxName || strings.Trim(s, ".") == "" {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// Of reads the identity of a certificate. The handshake has verified the certificate.
func Of(c *x509.Certificate) (Identity, error) {
	if len(c.URIs) != 1 {
		return Identity{}, fmt.Errorf("%w: it has %d URIs, not one", ErrNoIdentity, len(c.URIs))
	}
	return Parse(c.URIs[0].String())
}

// Parse reads the URI of an identity, written exactly as String writes it.
func Parse(uri string) (Identity, error) {
	rest, ok := strings.CutPrefix(uri, Scheme+"://")
	if parts := strings.Split(rest, "/"); ok && len(parts) == 3 {
		i := Identity{Shard: parts[0], Role: Role(parts[1]), Name: parts[2]}
		if i.Validate() == nil {
			return i, nil
		}
	}
	return Identity{}, fmt.Errorf("%w: %q", ErrNoIdentity, uri)
}
