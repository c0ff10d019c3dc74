package access

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

const (
	lookEvery  = time.Second
	leastToken = 16
	mostFile   = 1 << 20
)

// followed is what some files say, as of a second ago at most. While they say nothing that makes
// sense, while half of a new pair is written, it is what they said before.
type followed[T any] struct {
	log  *slog.Logger
	read func() (T, error)

	mu      sync.Mutex
	value   T
	looked  time.Time
	problem string
}

// follow reads for the first time, which must succeed.
func follow[T any](log *slog.Logger, read func() (T, error)) (*followed[T], error) {
	value, err := read()
	return &followed[T]{log: log, read: read, value: value, looked: time.Now()}, err
}

func (f *followed[T]) now() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) < lookEvery {
		return f.value
	}
	f.looked = time.Now()
	value, err := f.read()
	if err != nil {
		if f.problem != err.Error() {
			f.log.Error("http credentials cannot be read anew, those before stay in force", "error", err)
		}
		f.problem = err.Error()
		return f.value
	}
	f.value, f.problem = value, ""
	return value
}

// readToken reads the token that callers show.
func readToken(name string) ([]byte, error) {
	text, err := readSecret("--http-token-file", name)
	if err != nil {
		return nil, err
	}
	token := bytes.TrimSpace(text)
	if len(token) < leastToken || bytes.ContainsAny(token, " \t\r\n") {
		return nil, &UnsafeError{
			fmt.Sprintf("--http-token-file: %s: must be one word of at least %d characters", name, leastToken),
			fmt.Sprintf("head -c 32 /dev/urandom | base64 > %s", name),
		}
	}
	return token, nil
}

// readIdentity reads the certificate, its key, and whose certificates callers may show.
func readIdentity(cfg Config, protocol string) (*tls.Config, error) {
	chain, err := readFile("--http-cert", cfg.CertFile, false)
	if err != nil {
		return nil, err
	}
	key, err := readSecret("--http-key", cfg.KeyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, &UnsafeError{
			fmt.Sprintf("--http-cert: %s: %s", cfg.CertFile, err),
			"give a certificate and the key that belongs to it, as PEM",
		}
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, NextProtos: []string{protocol},
		SessionTicketsDisabled: true, // a ticket would outlive the trust that it was given in
	}
	if cfg.ClientCAFile != "" {
		authorities, err := readFile("--http-client-ca", cfg.ClientCAFile, false)
		if err != nil {
			return nil, err
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven // load balancers come without
		if !c.ClientCAs.AppendCertsFromPEM(authorities) {
			return nil, &UnsafeError{
				fmt.Sprintf("--http-client-ca: %s: no certificate in it", cfg.ClientCAFile),
				"give the certificates of authorities, as PEM",
			}
		}
	}
	return c, nil
}

// readSecret reads a file that no other user may read.
func readSecret(flag, name string) ([]byte, error) { return readFile(flag, name, true) }

func readFile(flag, name string, secret bool) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &UnsafeError{fmt.Sprintf("%s: %s", flag, err), "name a file that can be read"}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	case !info.Mode().IsRegular():
		return nil, &UnsafeError{fmt.Sprintf("%s: %s is no file", flag, name), "name a file that can be read"}
	case secret && info.Mode().Perm()&0o077 != 0:
		return nil, &UnsafeError{
			fmt.Sprintf("%s: %s: others may use it (mode %04o)", flag, name, info.Mode()&fs.ModePerm),
			"chmod 600 " + name,
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, mostFile))
	if err != nil {
		return nil, fmt.Errorf("%s: read %s: %w", flag, name, err)
	}
	return text, nil
}
