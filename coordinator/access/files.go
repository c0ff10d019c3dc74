package access

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/leasehold/leasehold/coordinator/reload"
)

const (
	minToken = 16
	maxFile  = 1 << 20
)

// identityFiles are the texts of a server's certificate, its key, and the authorities of clients.
type identityFiles struct{ chain, key, authorities string }

// followed is what some files say.
type followed[R comparable, T any] = reload.Files[R, T]

func follow[R comparable, T any](log *slog.Logger, read func() (R, error), parse func(R) (T, error)) (
	*followed[R, T], error,
) {
	return reload.Open(reload.Config[R, T]{
		Read: read, Parse: func(raw R, _ T) (T, error) { return parse(raw) },
		Failed: func(err error) {
			log.Error("http credentials cannot be read again: the previous ones stay in force", "error", err)
		},
	})
}

// parseToken finds the token that callers show.
func parseToken(name, text string) (string, error) {
	token := strings.TrimSpace(text)
	if len(token) < minToken || strings.ContainsAny(token, " \t\r\n") {
		return "", &UnsafeError{
			fmt.Sprintf("--http-token-file: %s: must be one word of at least %d characters", name, minToken),
			fmt.Sprintf("head -c 32 /dev/urandom | base64 > %s", name),
		}
	}
	return token, nil
}

func readIdentity(cfg Config) (f identityFiles, err error) {
	if f.chain, err = readFile("--http-cert", cfg.CertFile, false); err != nil {
		return f, err
	}
	if f.key, err = readFile("--http-key", cfg.KeyFile, true); err != nil {
		return f, err
	}
	if cfg.ClientCAFile != "" {
		f.authorities, err = readFile("--http-client-ca", cfg.ClientCAFile, false)
	}
	return f, err
}

// parseIdentity makes a configuration of TLS of the files.
func parseIdentity(cfg Config, protocol string, f identityFiles) (*tls.Config, error) {
	pair, err := tls.X509KeyPair([]byte(f.chain), []byte(f.key))
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
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven // load balancers come without
		if !c.ClientCAs.AppendCertsFromPEM([]byte(f.authorities)) {
			return nil, &UnsafeError{
				fmt.Sprintf("--http-client-ca: %s: no certificate in it", cfg.ClientCAFile),
				"give the certificates of authorities, as PEM",
			}
		}
	}
	return c, nil
}

// readFile reads a file. One that is secret no other user may read.
func readFile(flag, name string, secret bool) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", &UnsafeError{fmt.Sprintf("%s: %s", flag, err), "name a file that can be read"}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", flag, err)
	case !info.Mode().IsRegular():
		return "", &UnsafeError{fmt.Sprintf("%s: %s is no file", flag, name), "name a file that can be read"}
	case secret && info.Mode().Perm()&0o077 != 0:
		return "", &UnsafeError{
			fmt.Sprintf("%s: %s: others may use it (mode %04o)", flag, name, info.Mode()&fs.ModePerm),
			"chmod 600 " + name,
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return "", fmt.Errorf("%s: read %s: %w", flag, name, err)
	}
	return string(text), nil
}
