package etcdstore

import (
	"context"
	"errors"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// proves WEB-4: a store that was opened as a user has that user's rights, whatever the certificate
// of the connection names, also when authentication was off and is on again
func TestOpenAs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	cfg := Config{Endpoints: []string{server.Endpoint()}}
	if _, err := OpenAs(ctx, cfg, "coordinator", "c"); !errors.Is(err, ErrOpen) {
		t.Fatalf("without authentication: %v", err)
	}
	protect(ctx, t, server.Endpoint())
	for _, wrong := range [][2]string{{"coordinator", "wrong"}, {"nobody", "c"}, {"", ""}, {"coordinator", ""}} {
		if _, err := OpenAs(ctx, cfg, wrong[0], wrong[1]); !errors.Is(err, store.ErrLogin) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	s, err := OpenAs(ctx, cfg, "coordinator", "c")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	put(ctx, t, s, store.Root+"default/a", "1")
	if _, err := s.Get(ctx, "/other"); !errors.Is(err, store.ErrDenied) {
		t.Errorf("get: %v", err)
	}
	// The login ends, and nothing takes its place.
	admin := openStore(t, Config{Endpoints: []string{server.Endpoint()}, Username: "root", Password: "r"})
	if _, err := admin.data.UserChangePassword(ctx, "coordinator", "other"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, store.Txn{Writes: []store.Write{store.Put(store.Root+"default/a", nil)}}); !errors.Is(err,
		store.ErrDenied) {
		t.Errorf("with a login that ended: %v", err)
	}
}
