package pki

import (
	"context"
	"crypto"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reload"
)

// Workloads is an authority for workloads' certificates at work in a coordinator. It is safe for
// concurrent use.
type Workloads struct {
	followed *reload.Files[raw, Files]
	log      *slog.Logger
}

// WorkloadsKind returns the kind of a workloads' authority with a name, in a directory of
// certificates.
func WorkloadsKind(name string) Kind { return Kind("workloads/" + name) }

// OpenWorkloads reads the authority in a directory of its own. Its key must not be a key of the
// shard's own authorities in the directory of certificates: what a group asks for must not open
// etcd or the agents' streams.
func OpenWorkloads(dir, certificates string, log *slog.Logger) (*Workloads, error) {
	followed, err := follow(dir, log, func(source raw) (Files, error) { return forWorkloads(source, certificates) })
	if err != nil {
		return nil, err
	}
	return &Workloads{followed, log}, nil
}

func forWorkloads(source raw, certificates string) (Files, error) {
	files, err := source.parse()
	if err != nil {
		return files, err
	}
	if files.Issuer.Key == nil {
		return files, problem(nil, "copy it from where the authority was made, and chmod 600 it",
			"%s is missing: a coordinator issues the workloads' certificates", filepath.Join(files.Dir, caKey))
	}
	if err := files.Issuer.usable(at(time.Now())); err != nil {
		return files, problem(err, "replace it", "%s cannot be used: %s", filepath.Join(files.Dir, caCert), err)
	}
	for _, kind := range []Kind{Agents, Operators} {
		other, err := readStable(filepath.Join(certificates, string(kind)))
		if err != nil {
			continue // that authority is not on this host
		}
		if theirs, err := other.certificates(caCert); err == nil && oneOf(files.Trust().Authorities, theirs) {
			return files, problem(nil, "leasehold pki init --workloads NAME makes one of its own",
				"%s and %s are one authority: a group could ask for what opens the shard", files.Dir, other.dir)
		}
	}
	return files, nil
}

// Run follows the files until ctx ends, and calls changed when other files are in force.
func (w *Workloads) Run(ctx context.Context, changed func()) error {
	w.followed.Run(ctx, func() {
		files := w.followed.Latest()
		w.log.Info("authority for workloads changed", "dir", files.Dir, "issuer", files.Issuer.Fingerprint())
		changed()
	})
	return context.Cause(ctx)
}

// Bundle returns the certificates to trust, as PEM, and the issuer's fingerprint: certificates of
// another issuer must be replaced. Unlike agents, workloads trust all certificates in ca.crt: many
// programs trust only roots.
func (w *Workloads) Bundle() (bundle []byte, issuer string) {
	files := w.followed.Latest()
	var all []*x509.Certificate
	add := func(list ...*x509.Certificate) {
		for _, c := range list {
			if !slices.ContainsFunc(all, c.Equal) {
				all = append(all, c)
			}
		}
	}
	add(files.Issuer.Certificate)
	add(files.Issuer.Above...)
	if files.Next != nil {
		add(files.Next.Certificate)
		add(files.Next.Above...)
	}
	add(files.Old...)
	return certificatePEM(all...), files.Issuer.Fingerprint()
}

// Issue certifies a key for host names and addresses. The certificate has no subject, so it cannot
// be taken for a user's.
func (w *Workloads) Issue(key crypto.PublicKey, hosts []string, addresses []netip.Addr,
	lifetime time.Duration) (chain [][]byte,
	ends time.Time, err error,
) {
	issuer := w.followed.Latest().Issuer
	c := &x509.Certificate{
		DNSNames: hosts, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, a := range addresses {
		c.IPAddresses = append(c.IPAddresses, a.AsSlice())
	}
	der, ends, err := issuer.sign(c, key, at(time.Now()), lifetime)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("issue certificate of %v: %w", hosts, err)
	}
	chain = [][]byte{der}
	for _, above := range issuer.between() {
		chain = append(chain, above.Raw)
	}
	return chain, ends, nil
}
