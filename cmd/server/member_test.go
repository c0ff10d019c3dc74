package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/cmd/supervised"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/embedetcd"
	"github.com/leasehold/leasehold/store/etcdstore"
	"github.com/leasehold/leasehold/tests/ports"
)

var addresses = ports.Between(30000, 31900)

// local is a first host whose parts listen on free ports of loopback.
func local(t *testing.T) (Place, Record) {
	t.Helper()
	p, r := first(t)
	r.Address, r.Bind = "127.0.0.1", "127.0.0.1"
	for _, port := range []*int{&r.Port, &r.EtcdPort, &r.PeerPort} {
		_, text, err := net.SplitHostPort(addresses.FreeAddress(t))
		if err == nil {
			*port, err = strconv.Atoi(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := p.begin(r); err != nil {
		t.Fatal(err)
	}
	r, err := p.load()
	if err != nil {
		t.Fatal(err)
	}
	return p, r
}

// start runs a member until the test ends, and returns when it is ready.
func start(t *testing.T, p Place, r Record) context.Context {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- runMember(ctx, p, r, slog.New(slog.DiscardHandler), func(at string) { ready <- at }, supervised.Service{})
	}()
	select {
	case <-ready:
	case err := <-ended:
		end()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return ctx
}

// proves DAY-1: the port of etcd's members is for members; a user's certificate of the same
// authority opens it as little as none
func TestMembersBelieveMembersAlone(t *testing.T) {
	p, r := local(t)
	start(t, p, r)
	files, err := pki.Load(p.credentials().Dir, pki.Operators)
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) error {
		secure := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: files.Trust().Pool()}
		if name != "" {
			pair, err := tls.LoadX509KeyPair(p.credentials().Of(name))
			if err != nil {
				t.Fatal(err)
			}
			secure.Certificates = []tls.Certificate{pair}
		}
		client := &http.Client{
			Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true},
			Timeout:   30 * time.Second,
		}
		answer, err := client.Get("https://" + r.local(r.PeerPort) + "/members")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	if err := get(services.EtcdName); err != nil {
		t.Errorf("a member: %v", err)
	}
	for _, name := range []string{"", store.RoleRoot, string(store.RoleViewer)} {
		if err := get(name); err == nil {
			t.Errorf("%q was answered", name)
		}
	}
}

// proves DAY-1: history is compacted by the shard's own setting, which takes etcd's root; a
// coordinator's certificate alone may not
func TestTheReplicaMayCompact(t *testing.T) {
	p, r := local(t)
	ctx := start(t, p, r)
	if err := p.found(ctx, r, true); err != nil {
		t.Fatal(err)
	}
	st, err := p.store(ctx, r.endpoints(), nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.Vitals(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Compact(ctx, v.Revision); err != nil {
		t.Errorf("compact: %v", err)
	}
	if _, err := st.List(ctx, store.KeysOf(r.Shard).Served(), 1); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("list of what was compacted: %v", err)
	}
	if err := st.Compact(ctx, 1); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("compact again: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	secure, err := p.credentials().Client(string(store.RoleCoordinator))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: r.endpoints(), TLS: secure})
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.Compact(ctx, v.Revision); !errors.Is(err, store.ErrDenied) {
		t.Errorf("compact as a coordinator: %v", err)
	}
	if err := plain.Close(); err != nil {
		t.Error(err)
	}
}

// A member whose data vanish while the server runs does not come back as an empty voter: neither
// where nothing is left, nor on what a start leaves there before it looks for its log.
//
// proves DAY-1, SAFE-15
func TestAMemberThatLostItsDataDoesNotStart(t *testing.T) {
	p, r := local(t)
	t.Run("first", func(t *testing.T) { start(t, p, r) })
	r.Phase = joined
	t.Run("with its data", func(t *testing.T) { start(t, p, r) })
	for _, left := range []string{"", "member", filepath.Join("member", "wal")} {
		if err := os.RemoveAll(p.etcd()); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(p.etcd(), left), 0o700); err != nil {
			t.Fatal(err)
		}
		serves := func(string) { t.Errorf("%q: it serves", left) }
		err := runMember(t.Context(), p, r, slog.New(slog.DiscardHandler), serves, supervised.Service{})
		var refused *services.Problem
		if !errors.As(err, &refused) || !strings.Contains(refused.Next, "leasehold server replace a") {
			t.Errorf("%q: %v", left, err)
		}
		if _, err := os.Stat(filepath.Join(p.etcd(), "member", "snap")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: etcd made data anew: %v", left, err)
		}
	}
}

// What a host that joins knows of itself says that it may vote before it asks for that: if its data
// are lost before it hears that it does, its member is not made anew.
//
// proves DAY-1, SAFE-15
func TestAMemberThatLostItsDataAsItWasPromotedDoesNotStart(t *testing.T) {
	p, r := local(t)
	t.Run("first", func(t *testing.T) { start(t, p, r) })
	r.Phase = joining
	if err := p.save(r); err != nil {
		t.Fatal(err)
	}
	// The host dies as it asks: it hears no answer, and the promotion may have been done.
	ctx, dies := context.WithCancel(t.Context())
	dies()
	c := &Command{}
	c.LogLevel = "error"
	if _, err := c.complete(ctx, &services.Host{Stderr: io.Discard}, p, r); !errors.Is(err, context.Canceled) {
		t.Fatalf("the promotion: %v", err)
	}
	r, err := p.load()
	if err != nil || r.Phase != learning {
		t.Fatalf("phase %q, %v", r.Phase, err)
	}
	t.Run("with its data", func(t *testing.T) { start(t, p, r) })
	if err := p.lostData(r); err != nil {
		t.Errorf("the server does not start with its data: %v", err)
	}
	if err := os.RemoveAll(p.etcd()); err != nil {
		t.Fatal(err)
	}
	serves := func(string) { t.Error("it serves") }
	var refused *services.Problem
	for what, err := range map[string]error{
		"the member": runMember(t.Context(), p, r, slog.New(slog.DiscardHandler), serves, supervised.Service{}),
		"the server": p.lostData(r),
	} {
		if !errors.As(err, &refused) || !strings.Contains(refused.Next, "leasehold server replace a") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if embedetcd.HasLog(p.etcd()) {
		t.Error("etcd made data anew")
	}
}

// A first start that reached no other host leaves a directory, and no data: the next start asks the
// cluster again who is in it.
//
// proves DAY-1
func TestAFirstStartThatFailedLeavesNoData(t *testing.T) {
	p, r := local(t)
	r.Phase = joining
	r.Members = []Peer{{Name: "b", Peer: "https://" + addresses.FreeAddress(t)}}
	err := runMember(t.Context(), p, r, slog.New(slog.DiscardHandler), func(string) { t.Error("it serves") },
		supervised.Service{})
	if err == nil || strings.Contains(err.Error(), "restore a snapshot") {
		t.Errorf("the start: %v", err)
	}
	if !embedetcd.HasData(p.etcd()) || embedetcd.HasLog(p.etcd()) {
		t.Errorf("data %t, log %t", embedetcd.HasData(p.etcd()), embedetcd.HasLog(p.etcd()))
	}
}

// proves DAY-2: a cluster that is made for a shard of a backup has the authorities that its agents
// know; --init alone takes over no certificates
func TestAClusterForABackupKeepsItsAuthorities(t *testing.T) {
	lost, r := first(t)
	place := Place{Dir: t.TempDir()}
	if err := os.Chmod(place.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	was := map[pki.Kind]string{}
	for _, kind := range []pki.Kind{pki.Agents, pki.Operators} {
		was[kind] = authority(t, lost, kind)
	}
	if err := os.Rename(lost.credentials().Dir, place.credentials().Dir); err != nil {
		t.Fatal(err)
	}
	err := (&Command{Init: true}).first(t.Context(), place, r)
	var refused *services.Problem
	if !errors.As(err, &refused) || !strings.Contains(refused.Next, "--no-shard") {
		t.Fatalf("--init over certificates: %v", err)
	}
	if err := (&Command{Init: true, NoShard: true}).first(t.Context(), place, r); err != nil {
		t.Fatal(err)
	}
	r, err = place.load()
	if err != nil {
		t.Fatal(err)
	}
	if err := place.prepare(r); err != nil {
		t.Fatal(err)
	}
	for kind, before := range was {
		if authority(t, place, kind) != before {
			t.Errorf("the authority of %s is another one", kind)
		}
	}
}

func authority(t *testing.T, p Place, kind pki.Kind) string {
	t.Helper()
	a, err := pki.Load(p.credentials().Dir, kind)
	if err != nil {
		t.Fatal(err)
	}
	return a.Issuer.Fingerprint()
}
