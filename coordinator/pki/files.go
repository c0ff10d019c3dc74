package pki

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
)

// Kind is one of the two authorities, and the name of its directory.
type Kind string

// The authorities.
const (
	Agents    Kind = "agents"
	Operators Kind = "operators"
)

// DefaultDir is the default directory of a host's certificates.
const DefaultDir = "/etc/leasehold/pki"

// issuedDir is where certificates of people and servers are put, beside the authorities.
const issuedDir = "issued"

// The files of an authority. Only the agents' has the files of a rotation.
const (
	caCert   = "ca.crt"
	caKey    = "ca.key"
	nextCert = "next.crt"
	nextKey  = "next.key"
	oldCert  = "old.crt"
)

var authorityFiles = [...]string{caCert, caKey, nextCert, nextKey, oldCert}

// Problem is an error about the files, with its remedy.
type Problem struct {
	What, Next string
	Err        error // the wrapped error; may be nil
}

// Error returns what is wrong.
func (p *Problem) Error() string { return p.What }

// Unwrap supports errors.Is.
func (p *Problem) Unwrap() error { return p.Err }

func problem(err error, next, format string, args ...any) *Problem {
	return &Problem{What: fmt.Sprintf(format, args...), Next: next, Err: err}
}

// Signer is a certificate authority, with its key if available.
type Signer struct {
	Certificate *x509.Certificate
	Above       []*x509.Certificate // the file's other certificates: the authorities above it
	Key         crypto.Signer       // nil: not available
}

// Ends returns when the first of the certificates expires: nothing that is issued may be valid for
// longer.
func (s Signer) Ends() time.Time {
	ends := s.Certificate.NotAfter
	for _, c := range s.Above {
		if c.NotAfter.Before(ends) {
			ends = c.NotAfter
		}
	}
	return ends
}

// Fingerprint returns the authority's fingerprint.
func (s Signer) Fingerprint() string { return identity.Fingerprint(s.Certificate) }

// Files is an authority as its directory holds it.
type Files struct {
	Dir    string // the directory of this authority
	Issuer Signer
	Next   *Signer             // introduced: trusted, but does not issue yet
	Old    []*x509.Certificate // trusted, but no longer issuing
	// Unfinished is set if the step in which next becomes the issuer was begun and not completed.
	// The state that it left is valid.
	Unfinished bool
}

// Trust returns the authorities to trust. Certificates in ca.crt after the first are not trusted:
// otherwise every certificate of a company's authority would be.
func (f Files) Trust() identity.Trust {
	t := identity.Trust{Issuer: f.Issuer.Fingerprint()}
	all := append([]*x509.Certificate{}, f.Old...)
	all = append(all, f.Issuer.Certificate)
	if f.Next != nil {
		all = append(all, f.Next.Certificate)
	}
	for _, c := range all {
		if !t.Believes(identity.Fingerprint(c)) {
			t.Authorities = append(t.Authorities, c)
		}
	}
	return t
}

// Load reads an authority. Keys may be missing: callers that need them check that.
func Load(dir string, kind Kind) (Files, error) {
	r, err := readStable(filepath.Join(dir, string(kind)))
	if err != nil {
		return Files{}, err
	}
	return r.parse()
}

// raw is the content of an authority's files. It is comparable.
type raw struct {
	dir   string
	files [len(authorityFiles)]rawFile
}

type rawFile struct {
	there bool
	mode  fs.FileMode
	text  string
}

// readStable reads the files twice, because files in the middle of an exchange are not an intended
// state.
func readStable(dir string) (raw, error) {
	last, err := readRaw(dir)
	for range 10 {
		if err != nil {
			return last, err
		}
		var again raw
		if again, err = readRaw(dir); again == last {
			return last, err
		}
		last = again
	}
	return last, fmt.Errorf("read %s: its files change all the time", dir)
}

func readRaw(dir string) (raw, error) {
	r := raw{dir: dir}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r,
			problem(err,
				"name its directory with --pki or LEASEHOLD_PKI; or copy it from where it was made; "+
					"leasehold pki init makes a new one", "there is no certificate authority in %s", dir)
	case err != nil:
		return r, fmt.Errorf("read certificate authority: %w", err)
	case info.Mode().Perm()&0o022 != 0:
		return r, problem(nil, "chmod 700 "+dir, "%s: others than its owner may write there (mode %04o)", dir,
			info.Mode().Perm())
	}
	for i, name := range authorityFiles {
		if r.files[i], err = readFile(filepath.Join(dir, name)); err != nil {
			return r, err
		}
	}
	return r, nil
}

func readFile(path string) (rawFile, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return rawFile{}, nil
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		return rawFile{}, nil
	}
	if err != nil {
		return rawFile{}, fmt.Errorf("read certificate authority: %w", err)
	}
	return rawFile{there: true, mode: info.Mode().Perm(), text: string(text)}, nil
}

func (r raw) file(name string) (rawFile, string) {
	for i, n := range authorityFiles {
		if n == name {
			return r.files[i], filepath.Join(r.dir, n)
		}
	}
	return rawFile{}, ""
}

// parse parses the files, or returns which of them is wrong.
func (r raw) parse() (Files, error) {
	f := Files{Dir: r.dir}
	ca, err := r.certificates(caCert)
	if err != nil {
		return f, err
	}
	if len(ca) == 0 {
		return f, problem(fs.ErrNotExist,
			"name its directory with --pki or LEASEHOLD_PKI; or copy it from where it was made; "+
				"leasehold pki init makes a new one", "there is no certificate authority: %s is missing", filepath.Join(r.dir,
				caCert))
	}
	f.Issuer = Signer{Certificate: ca[0], Above: ca[1:]}
	// Between the two renames of a step the key of ca.crt is still called next.key.
	own, ownErr := r.key(caKey)
	other, otherErr := r.key(nextKey)
	switch {
	case fits(own, ca[0]):
		f.Issuer.Key = own
	case fits(other, ca[0]):
		f.Issuer.Key, f.Unfinished = other, true
	case ownErr != nil:
		return f, ownErr
	case own != nil:
		return f, problem(nil, "put the key there that ca.crt was made with", "%s is not the key of %s",
			filepath.Join(r.dir, caKey), caCert)
	}
	if f.Old, err = r.certificates(oldCert); err != nil {
		return f, err
	}
	next, err := r.certificates(nextCert)
	if err != nil || len(next) == 0 {
		return f, err
	}
	f.Next = &Signer{Certificate: next[0], Above: next[1:]}
	switch {
	case fits(other, next[0]):
		f.Next.Key = other
	case otherErr != nil:
		return f, otherErr
	case other != nil:
		return f, problem(nil, "put the key there that next.crt was made with", "%s is not the key of %s",
			filepath.Join(r.dir, nextKey), nextCert)
	}
	for _, c := range f.Old {
		f.Unfinished = f.Unfinished || c.Equal(ca[0])
	}
	return f, nil
}

// certificates reads a file of authorities' certificates; none if the file does not exist.
func (r raw) certificates(name string) ([]*x509.Certificate, error) {
	file, path := r.file(name)
	if !file.there {
		return nil, nil
	}
	t, err := identity.TrustOfPEM([]byte(file.text), "")
	if err != nil {
		return nil, problem(err, "put the certificate of a certificate authority there, as PEM", "%s: %s", path, err)
	}
	if c := t.Authorities[0]; c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, problem(nil, "put the certificate of a certificate authority there, as PEM",
			"%s: the certificate of %s may not sign certificates", path, c.Subject)
	}
	return t.Authorities, nil
}

// key reads a private key; nil if the file does not exist.
func (r raw) key(name string) (crypto.Signer, error) {
	file, path := r.file(name)
	if !file.there {
		return nil, nil
	}
	if file.mode&0o077 != 0 {
		return nil, problem(nil, "chmod 600 "+path, "%s: others than its owner may use this key (mode %04o)", path,
			file.mode)
	}
	key, err := parseKey([]byte(file.text))
	if err != nil {
		return nil, problem(err, "put the authority's private key there, as PEM, without a passphrase", "%s: %s", path,
			err)
	}
	return key, nil
}

// parseKey reads a key in any common form.
func parseKey(text []byte) (crypto.Signer, error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return nil, errors.New("it holds no private key that can be read")
		}
		if key := keyOf(block); key != nil {
			return key, nil
		}
		text = rest
	}
}

func keyOf(block *pem.Block) crypto.Signer {
	switch block.Type {
	case "EC PRIVATE KEY":
		if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			return key
		}
	case "RSA PRIVATE KEY":
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return key
		}
	case "PRIVATE KEY":
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if signer, ok := key.(crypto.Signer); ok {
				return signer
			}
		}
	}
	return nil
}

// fits reports whether the key is the certificate's.
func fits(key crypto.Signer, c *x509.Certificate) bool {
	return key != nil && sameKey(key.Public(), c.PublicKey)
}

func sameKey(a, b crypto.PublicKey) bool {
	public, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(b)
}
