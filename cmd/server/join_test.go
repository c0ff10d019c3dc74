package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// first is the directory of a first host, with its authorities.
func first(t *testing.T) (Place, Record) {
	t.Helper()
	p := Place{Dir: t.TempDir()}
	if err := os.Chmod(p.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := Record{Name: "a", Address: "a", Bind: "0.0.0.0", Port: 7420, EtcdPort: 2379, PeerPort: 2380, Shard: "default"}
	if err := p.begin(r); err != nil {
		t.Fatal(err)
	}
	r, err := p.load()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.prepare(r); err != nil {
		t.Fatal(err)
	}
	return p, r
}

// The supervisor prepares the directory again every few seconds. The settings file is written only
// when it changes.
//
// proves DAY-1
func TestSettingsAreNotWrittenAgain(t *testing.T) {
	p, r := first(t)
	written := func() os.FileInfo {
		t.Helper()
		if err := p.prepare(r); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(p.Settings())
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	before := written()
	if !os.SameFile(before, written()) {
		t.Error("unchanged settings were written again")
	}
	r.Members = append(r.Members, Peer{Name: "b", Peer: "https://b:2380", Client: "https://b:2379"})
	if os.SameFile(before, written()) {
		t.Error("changed settings were not written")
	}
}

func request(t *testing.T) []byte {
	t.Helper()
	key, err := identity.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := identity.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// proves DAY-1: a token admits one host with one key, however often that asks, and no other
func TestTokenIsForOneHost(t *testing.T) {
	p, r := first(t)
	clock := memstore.NewManualClock(time.Now())
	db := memstore.New(memstore.Config{Clock: clock})
	defer db.Close()
	st := db.Connect()
	text, err := p.invite(t.Context(), st, r.Shard, "eva")
	if err != nil {
		t.Fatal(err)
	}
	token, err := parseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	use := func(secret, host string, request []byte) error {
		return redeem(t.Context(), st, r.Shard, secret, host, request)
	}
	b, other := request(t), request(t)
	for what, c := range map[string]struct{ secret string }{"made up": {store.NewToken()}, "none": {""}} {
		if err := use(c.secret, "b", b); !errors.Is(err, errToken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := use(token.secret, "b", []byte("no request")); err == nil || errors.Is(err, errToken) {
		t.Errorf("what is no request: %v", err)
	}
	for range 2 { // an answer may be lost
		if err := use(token.secret, "b", b); err != nil {
			t.Errorf("its host: %v", err)
		}
	}
	if err := use(token.secret, "b", other); !errors.Is(err, errToken) {
		t.Errorf("with another key: %v", err)
	}
	if err := use(token.secret, "c", b); !errors.Is(err, errToken) {
		t.Errorf("another host: %v", err)
	}
	kv, err := st.Get(t.Context(), store.KeysOf(r.Shard).Host(store.TokenHash(token.secret)))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(kv.Value), token.secret) {
		t.Error("the token itself is stored")
	}
	clock.Advance(tokenTime + time.Minute)
	if err := use(token.secret, "b", b); !errors.Is(err, errToken) {
		t.Errorf("after an hour: %v", err)
	}
}

// proves DAY-1: a host gives its token only to a coordinator of the authority that the token names
func TestWhoMustAnswer(t *testing.T) {
	p, _ := first(t)
	stranger, _ := first(t)
	shows := func(of Place, role identity.Role) tls.ConnectionState {
		files, err := pki.Load(of.credentials().Dir, pki.Agents)
		if err != nil {
			t.Fatal(err)
		}
		chain, _, err := files.Issuer.Issue(request(t), identity.Identity{Shard: "s", Role: role, Name: "x"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		certificates, err := identity.ReadChain(chain)
		if err != nil {
			t.Fatal(err)
		}
		return tls.ConnectionState{PeerCertificates: certificates}
	}
	files, err := pki.Load(p.credentials().Dir, pki.Agents)
	if err != nil {
		t.Fatal(err)
	}
	pin := files.Issuer.Fingerprint()
	if err := verify(shows(p, identity.Coordinator), pin); err != nil {
		t.Errorf("a coordinator: %v", err)
	}
	mixed := shows(stranger, identity.Coordinator)
	mixed.PeerCertificates = []*x509.Certificate{mixed.PeerCertificates[0], files.Issuer.Certificate}
	for who, state := range map[string]tls.ConnectionState{
		"an agent":                           shows(p, identity.Agent),
		"a stranger":                         shows(stranger, identity.Coordinator),
		"a stranger who shows our authority": mixed,
		"the authority's certificate alone, without keys": {PeerCertificates: []*x509.Certificate{files.Issuer.Certificate}},
	} {
		if err := verify(state, pin); !errors.Is(err, errAuthority) {
			t.Errorf("%s: %v", who, err)
		}
	}
}

func TestTokensAreRead(t *testing.T) {
	long := strings.Repeat("A", 52)
	for _, bad := range []string{"", "x", long, long + ".short", "." + strings.Repeat("a", 32)} {
		if _, err := parseToken(bad); err == nil {
			t.Errorf("%q is taken for a token", bad)
		}
	}
}

func TestNamesOfFurtherHosts(t *testing.T) {
	for name, want := range map[string]string{
		"a": "b c", "db-1": "db-2 db-3", "h8": "h8-2 h8-3", "host": "host-2 host-3", "site-a": "site-b site-c",
		"z": "z-2 z-3",
	} {
		if got := strings.Join(following(name), " "); got != want {
			t.Errorf("after %s: %s, want %s", name, got, want)
		}
	}
}

// What a host was set up with stays: the others know it by that.
func TestFlagsThatChangeAHostAreRefused(t *testing.T) {
	_, r := first(t)
	if err := (&Command{Name: "a", Port: 7420}).agrees(r); err != nil {
		t.Error(err)
	}
	if err := (&Command{}).agrees(r); err != nil {
		t.Error(err)
	}
	for what, c := range map[string]Command{"name": {Name: "b"}, "port": {Port: 1}, "address": {Address: "10.0.0.1"}} {
		if err := c.agrees(r); err == nil || !strings.Contains(err.Error(), "--"+what) {
			t.Errorf("another %s: %v", what, err)
		}
	}
}
