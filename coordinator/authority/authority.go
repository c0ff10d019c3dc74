package authority

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/store"
)

// Authority signs certificates. Its methods can be called at any time.
type Authority interface {
	// Run follows the authority's state until the context ends, and calls changed at each change.
	Run(ctx context.Context, changed func())
	// Trusted returns the certificates to trust, as PEM, and a text that changes when everything
	// must be issued again; or why neither is known.
	Trusted() (bundle []byte, issuer string, err error)
	// Sign certifies a key. keyOf has accepted the request.
	sign(ctx context.Context, key crypto.PublicKey, request []byte, o Order) (chain [][]byte, err error)
	limits() *Limits
}

// SecretUser is an authority that uses secrets of the shard.
type SecretUser interface {
	UseSecrets(lookup func(name string) (string, error))
}

// signWithin is the timeout of a signature. A program that hangs is then killed.
const signWithin = 30 * time.Second

// Set holds the authorities of a replica, by name. A nil Set has none.
type Set struct {
	by map[string]Authority

	mu      sync.Mutex
	changed chan struct{}
}

// NewSet returns a set that follows nothing yet.
func NewSet(by map[string]Authority) *Set {
	return &Set{by: by, changed: make(chan struct{})}
}

// Names returns the names of the authorities, in order.
func (s *Set) Names() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.by))
}

// Limits returns what each authority may be asked for, by name.
func (s *Set) Limits() map[string]store.AuthorityLimits {
	all := map[string]store.AuthorityLimits{}
	for _, name := range s.Names() {
		l := s.by[name].limits()
		limits := store.AuthorityLimits{Domains: l.Domains, MaxLifetime: l.MaxLifetime}
		for _, n := range l.Networks {
			limits.Networks = append(limits.Networks, n.String())
		}
		all[name] = limits
	}
	return all
}

// maxNoted is how much of a text from outside a replica's record has, in bytes.
const maxNoted = 200

// States returns the present state of each authority, by name.
func (s *Set) States() map[string]store.AuthorityState {
	all := map[string]store.AuthorityState{}
	for _, name := range s.Names() {
		bundle, issuer, err := s.by[name].Trusted()
		if err != nil {
			all[name] = store.AuthorityState{Problem: clip.Marked(err.Error(), maxNoted)}
			continue
		}
		st := store.AuthorityState{Issuer: issuer}
		for {
			var block *pem.Block
			if block, bundle = pem.Decode(bundle); block == nil {
				break
			}
			if c, err := x509.ParseCertificate(block.Bytes); err == nil && st.Trust == 0 {
				st.Name, st.Begins, st.Ends = clip.Marked(c.Subject.String(), maxNoted), c.NotBefore, c.NotAfter
			}
			st.Trust++
		}
		all[name] = st
	}
	return all
}

// UseSecrets sets where the values of the shard's secrets are read.
func (s *Set) UseSecrets(lookup func(name string) (string, error)) {
	for _, name := range s.Names() {
		if user, ok := s.by[name].(SecretUser); ok {
			user.UseSecrets(lookup)
		}
	}
}

// Run follows all authorities until the context ends.
func (s *Set) Run(ctx context.Context) {
	var parts sync.WaitGroup
	for _, name := range s.Names() {
		parts.Go(func() {
			s.by[name].Run(ctx, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				close(s.changed)
				s.changed = make(chan struct{})
			})
		})
	}
	parts.Wait()
}

// Changed returns a channel that is closed at the next change of an authority. Call it before
// Trusted, so that no change is missed.
func (s *Set) Changed() <-chan struct{} {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Trusted returns the bundle of an authority and the text that identifies its issuer.
func (s *Set) Trusted(name string) (bundle []byte, issuer string, err error) {
	a, err := s.of(name)
	if err != nil {
		return nil, "", err
	}
	if bundle, issuer, err = a.Trusted(); err != nil {
		return nil, "", fmt.Errorf("authority %s: %w", name, err)
	}
	return bundle, issuer, nil
}

// Allowed returns why an authority would not sign an order, or nil.
func (s *Set) Allowed(name string, o Order) error {
	a, err := s.of(name)
	if err != nil {
		return err
	}
	if err := a.limits().allow(o); err != nil {
		return fmt.Errorf("authority %s: %w", name, err)
	}
	return nil
}

// Validate returns what is wrong with a group's use of an authority, as far as the group alone
// shows it.
func (s *Set) Validate(c *store.FileCertificate) error {
	a, err := s.of(c.Authority)
	if err == nil && c.Lifetime > a.limits().MaxLifetime {
		err = fmt.Errorf("authority %s: lifetime: %s: it allows at most %s", c.Authority, c.Lifetime,
			a.limits().MaxLifetime)
	}
	return err
}

func (s *Set) of(name string) (Authority, error) {
	if s != nil && s.by[name] != nil {
		return s.by[name], nil
	}
	return nil, fmt.Errorf("authority %s: this coordinator does not have it, it has %s: "+
		"name it in the file of --providers",
		name, listed(s.Names()))
}

// Sign certifies the key of a request that asks for exactly what the order says. It takes as long
// as the authority does, within bounds.
func (s *Set) Sign(ctx context.Context, name string, o Order, request []byte) (chain [][]byte, ends time.Time,
	err error,
) {
	a, err := s.of(name)
	if err != nil {
		return nil, ends, err
	}
	if err := a.limits().allow(o); err != nil {
		return nil, ends, fmt.Errorf("authority %s: %w", name, err)
	}
	key, err := o.keyOf(request)
	if err != nil {
		return nil, ends, err
	}
	ctx, cancel := context.WithTimeout(ctx, signWithin)
	defer cancel()
	chain, err = a.sign(ctx, key, request, o)
	if err != nil {
		return nil, ends, fmt.Errorf("authority %s: %w", name, err)
	}
	bundle, _, err := a.Trusted()
	if err == nil {
		ends, err = o.check(chain, key, bundle, time.Now())
	}
	if err != nil {
		return nil, ends, fmt.Errorf("authority %s: %w", name, err)
	}
	return chain, ends, nil
}
