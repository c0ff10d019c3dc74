package libvirt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/libvirt/libvirttest"
)

// authority issues certificates into a directory.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.write("ca", &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *authority) issue(name string, usage x509.ExtKeyUsage) {
	a.t.Helper()
	a.write(name, &x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		BasicConstraintsValid: true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

// write writes a certificate, of its own if there is no authority yet, and its key.
func (a *authority) write(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	issuer, signer := a.cert, a.key
	if issuer == nil {
		issuer, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(filepath.Join(a.dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return parsed, key
}

// freePort is one that the kernel gives to no outgoing connection.
func freePort(t *testing.T) string {
	t.Helper()
	const from, to = 20000, 32000
	for range to - from {
		port := strconv.Itoa(from + mathrand.IntN(to-from))
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Over TLS it is as over the socket; who has no certificate of the hypervisor's authority is
// refused, and so is a hypervisor without one of ours.
func overTLS(t *testing.T, _ *libvirttest.Libvirt) {
	ours, strange := newAuthority(t), newAuthority(t)
	ours.issue("server", x509.ExtKeyUsageServerAuth)
	ours.issue("client", x509.ExtKeyUsageClientAuth)
	strange.issue("client", x509.ExtKeyUsageClientAuth)
	port := freePort(t)
	address := net.JoinHostPort("127.0.0.1", port)
	l, err := libvirttest.Start(port, ours.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := l.Blank("blank"); err != nil {
		t.Fatal(err)
	}
	with := func(client, server *authority) *Provider {
		return onReal(t, l, func(c *Config) {
			c.Zones["a"] = Zone{URI: "qemu+tls://" + address + "/system"}
			c.Cert, c.Key = filepath.Join(client.dir, "client.pem"), filepath.Join(client.dir, "client.key")
			c.CA = filepath.Join(server.dir, "ca.pem")
		})
	}
	const shard = "sh-tls"
	p := with(ours, ours)
	m := mustCreate(t, p, request(shard, "web-0-a", "a", small()))
	if now := listed(t, p, shard, m.Instance); now.State != provider.StateRunning {
		t.Errorf("%+v", now)
	}
	if _, err := with(strange, ours).List(t.Context(), shard); !errors.Is(err, provider.ErrCredentials) {
		t.Errorf("with a certificate of another authority: %v", err)
	}
	if _, err := with(ours, strange).List(t.Context(), shard); err == nil || errors.Is(err, provider.ErrCredentials) {
		t.Errorf("a hypervisor that cannot be believed: %v", err)
	}
}
