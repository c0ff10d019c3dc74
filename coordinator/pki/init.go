package pki

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/provider/durable"
)

// The authorities of init last for years: the agents' authority can be rotated while everything
// runs, and the operators' is only used by hand.
const (
	AgentsLifetime    = 5 * 365 * 24 * time.Hour
	OperatorsLifetime = 10 * 365 * 24 * time.Hour
)

// begins is how far in the past an authority's validity begins, so that agents and coordinators
// with slow clocks trust it. Nothing was issued before, so this is harmless.
const begins = 2 * clocks

// ErrExists means that Init found an existing authority.
var ErrExists = errors.New("there is a certificate authority already")

// Init creates the directory and an authority of each kind in it. If one exists already, it fails
// with [ErrExists] before it creates anything.
func Init(dir string, lifetimes map[Kind]time.Duration) error {
	kinds := []Kind{Agents, Operators}
	for _, kind := range kinds {
		if _, wanted := lifetimes[kind]; !wanted {
			continue
		}
		switch entries, err := os.ReadDir(filepath.Join(dir, string(kind))); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("make certificate authority: %w", err)
		case len(entries) > 0:
			return problem(ErrExists, "leasehold pki show --pki "+dir, "%s: %s, and nothing was made",
				filepath.Join(dir, string(kind)), ErrExists)
		}
	}
	if err := makeDirs(dir, filepath.Join(dir, issuedDir)); err != nil {
		return err
	}
	for _, kind := range kinds {
		if lifetime, wanted := lifetimes[kind]; wanted {
			if err := initOne(dir, kind, lifetime); err != nil {
				return err
			}
		}
	}
	return nil
}

// InitWorkloads creates an authority for workloads' certificates in the directory. If one exists
// already, it fails with [ErrExists].
func InitWorkloads(dir, name string, lifetime time.Duration) error {
	if !identity.IsName(name) || strings.HasPrefix(name, ".") {
		return problem(nil, "leasehold pki init --workloads web",
			"name %q: must be up to 100 letters, digits, dots and dashes", name)
	}
	kind := WorkloadsKind(name)
	if _, err := os.Stat(filepath.Join(dir, string(kind))); !errors.Is(err, fs.ErrNotExist) {
		return problem(errors.Join(ErrExists, err), "choose another name", "%s: %s, and nothing was made",
			filepath.Join(dir, string(kind)), ErrExists)
	}
	if err := makeDirs(filepath.Join(dir, filepath.Dir(string(kind)))); err != nil {
		return err
	}
	return initOne(dir, kind, lifetime)
}

func makeDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return problem(err, "name a directory that you may write to, with --pki", "make directory: %s", err)
		}
	}
	return nil
}

// initOne creates an authority in a directory with a temporary name first, so that an interrupted
// creation leaves no authority.
func initOne(dir string, kind Kind, lifetime time.Duration) error {
	made, err := newSigner(kind, lifetime)
	if err != nil {
		return err
	}
	staged, err := os.MkdirTemp(dir, ".new-*") // 0700
	if err != nil {
		return fmt.Errorf("make certificate authority: %w", err)
	}
	defer func() { _ = os.RemoveAll(staged) }() // by then it is renamed
	if err := made.write(filepath.Join(staged, caCert), filepath.Join(staged, caKey)); err != nil {
		return err
	}
	if err := durable.Rename(staged, filepath.Join(dir, string(kind))); err != nil {
		return fmt.Errorf("make certificate authority: %w", err)
	}
	return nil
}

// write writes the key first: a certificate without a key would be an authority that cannot issue.
func (s Signer) write(certificate, key string) error {
	text, err := keyPEM(s.Key)
	if err != nil {
		return err
	}
	if err := durable.Replace(key, text, 0o600); err != nil {
		return err
	}
	return durable.Replace(certificate, certificatePEM(append([]*x509.Certificate{s.Certificate}, s.Above...)...),
		0o644)
}

// newSigner makes an authority. Its name has a random part, so that two authorities can be
// distinguished where only names are shown.
func newSigner(kind Kind, lifetime time.Duration) (Signer, error) {
	if lifetime < time.Second {
		return Signer{}, fmt.Errorf("make certificate authority: a lifetime of %s", lifetime)
	}
	key, err := identity.NewKey()
	if err != nil {
		return Signer{}, err
	}
	mark := make([]byte, 4)
	if _, err := rand.Read(mark); err != nil {
		return Signer{}, fmt.Errorf("make certificate authority: %w", err)
	}
	now := time.Now().UTC()
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: fmt.Sprintf("leasehold %s CA %s %s", kind, now.Format(time.DateOnly),
			hex.EncodeToString(mark))},
		NotBefore: now.Add(-begins), NotAfter: now.Add(lifetime).Truncate(time.Second),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, // it signs no other authority
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		return Signer{}, fmt.Errorf("make certificate authority: %w", err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return Signer{}, fmt.Errorf("make certificate authority: %w", err)
	}
	return Signer{Certificate: made, Key: key}, nil
}
