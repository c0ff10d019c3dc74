package pki

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/reload"
)

// Authority is the agents' authority at work in a coordinator. It is safe for concurrent use.
type Authority struct {
	followed *reload.Files[raw, Files]
	log      *slog.Logger
	began    time.Time
	wall     func() time.Time // reads the wall clock

	mu      sync.Mutex
	files   Files
	trust   identity.Trust
	changed chan struct{} // closed when trust changes
	own     map[identity.Identity]ownCertificate
	seen    offsets // of the wall clock
}

// Open reads the authority that issues to agents in the directory of certificates. It must be able
// to issue now.
func Open(dir string, log *slog.Logger) (*Authority, error) {
	followed, err := follow(filepath.Join(dir, string(Agents)), log,
		func(source raw) (Files, error) { return forAgents(dir, source) })
	if err != nil {
		return nil, err
	}
	files := followed.Latest()
	return &Authority{
		followed: followed, log: log, files: files, trust: files.Trust(), changed: make(chan struct{}),
		own: map[identity.Identity]ownCertificate{}, began: time.Now(),
		wall: func() time.Time { return time.Now().Round(0) },
	}, nil
}

// forAgents returns the agents' authority in these files in the form that a coordinator needs.
func forAgents(dir string, source raw) (Files, error) {
	files, err := source.parse()
	if err != nil {
		return files, err
	}
	if files.Issuer.Key == nil {
		return files, problem(nil, "copy it from where the authority was made, and chmod 600 it",
			"%s is missing: a coordinator issues the agents' certificates", filepath.Join(files.Dir, caKey))
	}
	if err := files.Issuer.works(); err != nil {
		return files, problem(err, "leasehold pki show says more; leasehold pki rotate --force replaces it",
			"%s cannot be used: %s", filepath.Join(files.Dir, caCert), err)
	}
	// The operators' authority may not be on this host, and its problems do not concern the
	// coordinator.
	if other, err := readStable(filepath.Join(dir, string(Operators))); err == nil {
		if operators, err := other.certificates(caCert); err == nil && oneOf(files.Trust().Authorities, operators) {
			return files, problem(nil, "give each an authority of its own: leasehold pki init --only agents",
				"%s and %s are one authority: etcd would believe what any coordinator issues", files.Dir, other.dir)
		}
	}
	return files, nil
}

// oneOf reports whether the two sets have a key in common.
func oneOf(agents, operators []*x509.Certificate) bool {
	return slices.ContainsFunc(agents, func(a *x509.Certificate) bool {
		return slices.ContainsFunc(operators,
			func(o *x509.Certificate) bool { return sameKey(a.PublicKey, o.PublicKey) })
	})
}

// Run follows the files until ctx ends.
func (a *Authority) Run(ctx context.Context) error {
	a.followed.Run(ctx, a.takeUp)
	return context.Cause(ctx)
}

// takeUp applies changed files.
func (a *Authority) takeUp() {
	files := a.followed.Latest()
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.trust
	a.files, a.trust = files, files.Trust()
	if a.trust.Digest() != before.Digest() {
		a.log.Info("certificate authorities changed", "issuer", a.trust.Issuer, "believed", len(a.trust.Authorities),
			"before", len(before.Authorities))
		close(a.changed)
		a.changed = make(chan struct{})
	}
}

// Trust returns the trusted authorities and the issuer.
func (a *Authority) Trust() identity.Trust {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trust
}

// Changed returns a channel that is closed at the next change of Trust. Call it before Trust, so
// that no change is missed.
func (a *Authority) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

// Issue certifies the key of a request for the given identity, for at most the lifetime, and never
// for longer than the authority lasts.
func (a *Authority) Issue(request []byte, to identity.Identity, lifetime time.Duration) (chain [][]byte, ends time.Time,
	err error,
) {
	if to.Role != identity.Agent {
		return nil, time.Time{}, fmt.Errorf("issue certificate of %s: only agents ask for theirs", to)
	}
	return a.issuer().Issue(request, to, lifetime)
}

func (a *Authority) issuer() Signer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.files.Issuer
}
