package crowd

import (
	"crypto/ecdsa"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/pki"
)

// lifetime is the validity of certificates: longer than any bench.
const lifetime = 7 * 24 * time.Hour

// certificates are the agents' certificates and trusted authorities. All certificates have one key,
// which saves generating thousands of them: replicas do not compare the keys of different
// instances.
type certificates struct {
	shard     string
	authority *pki.Authority
	key       *ecdsa.PrivateKey
	request   []byte
	trust     identity.Trust
	digest    string // trusted authorities
}

// identification is an agent's certificate.
type identification struct {
	certificate *tls.Certificate
	ends        time.Time
}

func openPapers(dir, shard string) (*certificates, error) {
	p := &certificates{shard: shard}
	var err error
	if p.authority, err = pki.Open(dir, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	p.trust = p.authority.Trust()
	p.digest = p.trust.Digest()
	if p.key, err = identity.NewKey(); err != nil {
		return nil, err
	}
	if p.request, err = identity.NewRequest(p.key); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *certificates) of(instance string) (*identification, error) {
	chain, ends, err := p.authority.Issue(p.request,
		identity.Identity{Shard: p.shard, Role: identity.Agent, Name: instance}, lifetime)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", instance, err)
	}
	chain[1] = p.trust.Authorities[len(p.trust.Authorities)-1].Raw // the same memory for all
	return &identification{&tls.Certificate{Certificate: chain, PrivateKey: p.key}, ends}, nil
}
