package lxd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
)

// Over HTTPS, LXD identifies a client by its certificate.
func overHTTPS(t *testing.T, l *lxdtest.LXD) {
	dir := t.TempDir()
	cert, key := makeCertificate(t, dir)
	const host = "127.0.0.1:18443"
	err := l.Do(http.MethodPatch, "/1.0", map[string]any{"config": map[string]string{"core.https_address": host}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A restricted project, and a certificate that is good in it alone, are all that is needed.
	if err := l.Do(http.MethodPost, "/1.0/projects", map[string]any{
		"name": "fenced", "config": map[string]string{"features.images": "false", "restricted": "true"},
	}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Do(http.MethodDelete, "/1.0/projects/fenced", nil, nil); err != nil {
			t.Error(err)
		}
	})
	p := onReal(t, l, func(c *Config) {
		c.Socket, c.URL, c.Cert, c.Key, c.ServerCert = "", "https://"+host, cert, key, filepath.Join(l.Dir, "server.crt")
		c.Project = "fenced"
	})
	if all, err := p.List(t.Context(), realShard); !errors.Is(err, provider.ErrCredentials) &&
		provider.KindOf(err) != provider.Credentials {
		t.Errorf("List with a certificate that LXD does not know: %+v, %v", all, err)
	}
	if _, err := p.Create(t.Context(), realRequest("https-1", nil)); provider.KindOf(err) != provider.Credentials {
		t.Errorf("Create with a certificate that LXD does not know: %v", err)
	}
	trusted := trust(t, l, cert)
	mustCreate(t, p, "https-1", nil)
	if m, is := find(t, p, "https-1"); !is || m.State != provider.StateRunning || m.BootID == "" {
		t.Errorf("listed: %v, as %+v", is, m)
	}
	if err := errors.Join(p.Restart(t.Context(), realShard, "https-1", ""),
		p.Stop(t.Context(), realShard, "https-1", time.Second)); err != nil {
		t.Error(err)
	}
	if _, err := p.Console(t.Context(), realShard, "https-1"); err != nil {
		t.Error(err)
	}
	// A certificate that is renewed is used without a restart, once the old one is refused.
	makeCertificate(t, dir)
	trust(t, l, cert)
	if err := l.Do(http.MethodDelete, "/1.0/certificates/"+trusted, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := p.List(t.Context(), realShard); err != nil && provider.KindOf(err) != provider.Credentials {
		t.Errorf("List with a certificate that is no longer trusted: %v", err)
	}
	if all, err := p.List(t.Context(), realShard); err != nil || len(all) != 1 {
		t.Errorf("List with the renewed certificate: %+v, %v", all, err)
	}
	beyond := onReal(t, l, func(c *Config) {
		c.Socket, c.URL, c.Cert, c.Key, c.ServerCert = "", "https://"+host, cert, key, filepath.Join(l.Dir, "server.crt")
	})
	if all, err := beyond.List(t.Context(), realShard); err == nil {
		t.Errorf("the certificate is good in another project: %+v", all)
	}
	wrong := onReal(t, l, func(c *Config) {
		c.Socket, c.URL, c.Cert, c.Key, c.ServerCert = "", "https://"+host, cert, key, cert
	})
	if _, err := wrong.List(t.Context(), realShard); err == nil {
		t.Error("a server with another certificate is trusted")
	}
}

// trust has LXD trust a client in one project, and returns the fingerprint of its certificate.
func trust(t *testing.T, l *lxdtest.LXD, cert string) (fingerprint string) {
	t.Helper()
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	sum := sha256.Sum256(block.Bytes)
	fingerprint = hex.EncodeToString(sum[:])
	if err := l.Do(http.MethodPost, "/1.0/certificates", map[string]any{
		"type": "client", "name": "leasehold-" + fingerprint[:8],
		"certificate": base64.StdEncoding.EncodeToString(block.Bytes),
		"restricted":  true, "projects": []string{"fenced"},
	}, nil); err != nil {
		t.Fatal(err)
	}
	return fingerprint
}

func makeCertificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "leasehold"}, DNSNames: []string{"leasehold"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
