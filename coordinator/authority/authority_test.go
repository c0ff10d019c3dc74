package authority

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/provider/program"
	"github.com/leasehold/leasehold/store"
)

// one is an order, and a request that asks for it.
var one = Order{
	Instance: "web-0-a", Names: []string{"10.1.2.3", "web-0-a.web.internal"}, KeyType: store.KeyECDSA,
	Lifetime: time.Hour,
}

func request(t testing.TB, key crypto.Signer, change func(*x509.CertificateRequest)) []byte {
	t.Helper()
	r := &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "web-0-a"}, DNSNames: []string{"web-0-a.web.internal"},
		IPAddresses: []net.IP{net.IPv4(10, 1, 2, 3)},
	}
	if change != nil {
		change(r)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, r, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func newKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newOwn makes an authority in a directory of certificates, and returns that too.
func newOwn(t testing.TB) (set *Set, dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := pki.InitWorkloads(dir, "web", 100*time.Hour); err != nil {
		t.Fatal(err)
	}
	a, err := NewOwn(OwnConfig{Dir: filepath.Join(dir, "workloads/web"), Limits: Limits{
		Domains: []string{"web.internal"}, Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
	}}, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return NewSet(map[string]Authority{"web": a}), dir
}

// The signed certificate matches the order, and clients with the bundle trust it.
//
// proves FILE-2
func TestOwnSigns(t *testing.T) {
	set, _ := newOwn(t)
	key := newKey(t, elliptic.P256())
	chain, ends, err := set.Sign(t.Context(), "web", one, request(t, key, nil))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil || !leaf.PublicKey.(*ecdsa.PublicKey).Equal(key.Public()) || leaf.Subject.String() != "" ||
		leaf.IsCA {
		t.Errorf("%v, of %q", err, leaf.Subject)
	}
	if left := time.Until(ends); left > time.Hour || left < 59*time.Minute {
		t.Errorf("it ends in %s", left)
	}
	bundle, issuer, err := set.Trusted("web")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if err != nil || issuer == "" {
		t.Error(issuer, err)
	}
	for _, name := range []string{"web-0-a.web.internal", "10.1.2.3"} {
		for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			if _, err := leaf.Verify(x509.VerifyOptions{
				DNSName: name, Roots: roots,
				KeyUsages: []x509.ExtKeyUsage{use},
			}); err != nil {
				t.Error(err)
			}
		}
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	o := one
	o.KeyType = store.KeyRSA
	if _, _, err := set.Sign(t.Context(), "web", o, request(t, rsaKey, nil)); err != nil {
		t.Error(err)
	}
}

// A request that asks for anything but what was ordered is refused, and so is an order that the
// authority does not allow.
//
// proves FILE-2, SEC-5
func TestRequestsAreRefused(t *testing.T) {
	set, _ := newOwn(t)
	key := newKey(t, elliptic.P256())
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string][]byte{
		"ordered were": request(t, key,
			func(r *x509.CertificateRequest) { r.DNSNames = append(r.DNSNames, "web-1-b.web.internal") }),
		"names [\"10.1.2.3\"], and 0 others": request(t, key, func(r *x509.CertificateRequest) { r.DNSNames = nil }),
		"\"10.1.2.4\"": request(t, key,
			func(r *x509.CertificateRequest) { r.IPAddresses[0] = net.IPv4(10, 1, 2, 4) }),
		"and 1 others: ordered": request(t, key,
			func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"root@web.internal"} }),
		"and 1 others": request(t, key,
			func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }),
		"not of instance web-0-a": request(t, key,
			func(r *x509.CertificateRequest) { r.Subject.CommonName = "web-1-b" }),
		"OU=admins\" and not of": request(t, key,
			func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"admins"} }),
		"has the extension 2.5.29.19": request(t, key, func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: []int{2, 5, 29, 19}, Value: []byte{48, 3, 1, 1, 255}}}
		}),
		"key is not of the type":                request(t, newKey(t, elliptic.P384()), nil),
		"type that was ordered: ecdsa":          request(t, other, nil),
		"cannot be read":                        []byte("garbage"),
		"the request has 9000 bytes, at most 8": make([]byte, 9000),
	} {
		if _, _, err := set.Sign(t.Context(), "web", one, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	forged := request(t, key, nil)
	forged[len(forged)-1] ^= 1
	if _, _, err := set.Sign(t.Context(), "web", one, forged); err == nil || !strings.Contains(err.Error(),
		"not signed by its key") {
		t.Errorf("forged: %v", err)
	}
	for want, change := range map[string]func(*Order){
		"its domains are web.internal":      func(o *Order) { o.Names = []string{"web.internal.evil"} },
		"may not certify \"evilweb.intern":  func(o *Order) { o.Names = []string{"evilweb.internal"} },
		"its networks are 10.1.0.0/16":      func(o *Order) { o.Names = []string{"10.2.0.1"} },
		"a lifetime of 721h0m0s: it allows": func(o *Order) { o.Lifetime = 721 * time.Hour },
		"0 names":                           func(o *Order) { o.Names = nil },
	} {
		o := one
		change(&o)
		if _, _, err := set.Sign(t.Context(), "web", o, request(t, key, nil)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if err := set.Allowed("web", o); err == nil {
			t.Errorf("%s: allowed", want)
		}
	}
	if _, _, err := set.Sign(t.Context(), "corp", one, request(t, key, nil)); err == nil ||
		!strings.Contains(err.Error(), "authority corp: this coordinator does not have it, it has web") {
		t.Error(err)
	}
}

// The shard's own authorities sign nothing that a group asks for.
//
// proves SEC-1, FILE-2
func TestTheShardsAuthoritiesAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := pki.Init(dir, map[pki.Kind]time.Duration{pki.Agents: time.Hour, pki.Operators: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []pki.Kind{pki.Agents, pki.Operators} {
		_, err := NewOwn(OwnConfig{Dir: filepath.Join(dir, string(kind)), Limits: Limits{Domains: []string{"x"}}}, dir,
			slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(),
			"are one authority: a group could ask for what opens the shard") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// An authority that is exchanged is noticed within seconds, and signs from then on. With the
// seconds over which agents ask, that reaches all within a minute. Time is virtual.
//
// proves FILE-2
func TestOwnIsExchanged(t *testing.T) { synctest.Test(t, exchangeOwn) }

func exchangeOwn(t *testing.T) {
	set, dir := newOwn(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); set.Run(ctx) }()
	defer func() { cancel(); <-done }()
	before, first, _ := set.Trusted("web")
	changed := set.Changed()
	other := t.TempDir()
	if err := pki.InitWorkloads(other, "web", time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.key", "ca.crt"} {
		text, err := os.ReadFile(filepath.Join(other, "workloads/web", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "workloads/web", name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	since := time.Now()
	<-changed
	if took := time.Since(since); took > 5*time.Second {
		t.Errorf("it is told %s later", took)
	}
	if after, second, _ := set.Trusted("web"); string(after) == string(before) || second == first {
		t.Error("it is the one before")
	}
}

// script writes a program that answers describe with the bundle of an authority, and sign with
// what the script makes.
func script(t *testing.T, sign string) (ProgramConfig, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "authority.sh")
	text := "#!/bin/sh\nread -r request\ncase \"$request\" in\n*'\"describe\"'*) cat " + dir + "/described;;\n*) " + sign +
		";;\nesac\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	c := ProgramConfig{
		Config: program.Config{Command: []string{path}},
		Limits: Limits{
			Domains:  []string{"web.internal"},
			Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		},
	}
	if os.Geteuid() == 0 {
		c.User = "root"
	}
	return c, dir
}

// authorityOf is a certificate with the names of the order with which others could be issued.
func authorityOf(t testing.TB, key *ecdsa.PrivateKey) string {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: one.Instance}, DNSNames: []string{"web-0-a.web.internal"},
		IPAddresses: []net.IP{net.IPv4(10, 1, 2, 3)}, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(time.Minute), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), "\n", `\n`)
}

// A program's answer is accepted only if it matches the order, is for the key of the request, and
// is trusted by clients with the bundle. A program that hangs affects only the caller that waits
// for it, and is killed.
//
// proves FILE-2, SEC-7
func TestAProgramSigns(t *testing.T) {
	set, _ := newOwn(t)
	bundle, _, _ := set.Trusted("web")
	foreign, _ := newOwn(t)
	key := newKey(t, elliptic.P256())
	asked := request(t, key, nil)
	signedBy := func(s *Set, o Order, r []byte) string {
		chain, _, err := s.Sign(t.Context(), "web", o, r)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain[0]})), "\n",
			`\n`)
	}
	other, long := one, one
	other.Names, long.Lifetime = one.Names[:1], 10*time.Hour
	for name, c := range map[string]struct{ sign, want string }{
		"right": {`printf %s '{"result": {"chain": "` + signedBy(set, one, asked) + `"}}'`, ""},
		"another key": {`printf %s '{"result": {"chain": "` + signedBy(set, one,
			request(t, newKey(t, elliptic.P256()), nil)) + `"}}'`, "for another key"},
		"other names": {`printf %s '{"result": {"chain": "` + signedBy(set, other, request(t, key,
			func(r *x509.CertificateRequest) { r.DNSNames = nil })) + `"}}'`, "ordered were"},
		"too long": {
			`printf %s '{"result": {"chain": "` + signedBy(set, long, asked) + `"}}'`,
			"a lifetime of 1h0m0s was ordered",
		},
		"another's": {
			`printf %s '{"result": {"chain": "` + signedBy(foreign, one, asked) + `"}}'`,
			"would not be trusted by who has the bundle",
		},
		"an authority's own": {
			`printf %s '{"result": {"chain": "` + authorityOf(t, key) + `"}}'`, "the certificate is an authority's",
		},
		"no chain": {`printf %s '{"result": {}}'`, "has 0 certificates"},
		"no PEM":   {`printf %s '{"result": {"chain": "x"}}'`, "is no PEM"},
		"an error": {
			`printf %s '{"error": {"code": "quota", "message": "no more today"}}'`,
			"authority corp: quota",
		},
		"it hangs": {`sleep 1000`, "was killed, since its time was up"},
		"it ends":  {`echo broken >&2; exit 3`, "it says: broken"},
		"a private key": {
			`printf %s '{"result": {"chain": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"}}'`,
			"there is a \"PRIVATE KEY\"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, dir := script(t, c.sign)
			a, err := NewProgram(config)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := a.Trusted(); err == nil {
				t.Error("it is known before it was asked")
			}
			described := fmt.Sprintf(`{"result": {"api": 1, "bundle": %q}}`, bundle)
			if err := os.WriteFile(filepath.Join(dir, "described"), []byte(described), 0o600); err != nil {
				t.Fatal(err)
			}
			p := a.(*byProgram)
			if !p.describe(t.Context()) || p.describe(t.Context()) {
				t.Error("what is new is not told, or what is not is")
			}
			ctx := t.Context()
			if name == "it hangs" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			}
			_, _, err = NewSet(map[string]Authority{"corp": a}).Sign(ctx, "corp", one, asked)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %s", err, c.want)
			}
			// While it fails, what it has said last stays in force.
			if err := os.WriteFile(filepath.Join(dir, "described"), []byte("nothing"), 0o600); err != nil {
				t.Fatal(err)
			}
			if now, _, err := a.Trusted(); p.describe(t.Context()) || err != nil || string(now) != string(bundle) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestSettingsAreRefused(t *testing.T) {
	for want, l := range map[string]Limits{
		"domains: is missing, and so is networks":    {},
		"domains[0]: \"*.web\": must be a host name": {Domains: []string{"*.web"}},
		"max_lifetime: 1s: must be 1m": {
			Domains:     []string{"web"},
			MaxLifetime: store.Duration(time.Second),
		},
	} {
		_, err := NewOwn(OwnConfig{Dir: "/nowhere", Limits: l}, "/nowhere", nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
