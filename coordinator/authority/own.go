package authority

import (
	"context"
	"crypto"
	"errors"
	"log/slog"

	"github.com/leasehold/leasehold/coordinator/pki"
)

// OwnConfig configures an authority whose key is on the replica's host, as leasehold pki creates
// it.
type OwnConfig struct {
	Dir string `json:"dir"`
	Limits
}

type own struct {
	allowed Limits
	files   *pki.Workloads
}

// NewOwn opens an authority. certificates is the directory of the shard's own authorities, which
// this one must not be.
func NewOwn(c OwnConfig, certificates string, log *slog.Logger) (Authority, error) {
	if c.Dir == "" {
		return nil, errors.New("dir: is missing: name the directory with ca.crt and ca.key; " +
			"leasehold pki init --workloads NAME makes one")
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	files, err := pki.OpenWorkloads(c.Dir, certificates, log)
	if err != nil {
		return nil, err
	}
	return &own{c.Limits, files}, nil
}

func (a *own) limits() *Limits { return &a.allowed }

func (a *own) Run(ctx context.Context, changed func()) { _ = a.files.Run(ctx, changed) } // it ends with its context

func (a *own) Trusted() (bundle []byte, issuer string, err error) {
	bundle, issuer = a.files.Bundle()
	return bundle, issuer, nil
}

func (a *own) sign(_ context.Context, key crypto.PublicKey, _ []byte, o Order) (chain [][]byte, err error) {
	hosts, addresses := o.split()
	chain, _, err = a.files.Issue(key, hosts, addresses, o.Lifetime)
	return chain, err
}
