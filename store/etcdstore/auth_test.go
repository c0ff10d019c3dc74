package etcdstore

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
)

// proves SEC-4 for the store's part: rights are etcd's, and a refusal is told from an outage
func TestRightsAreEtcds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	server := startEtcd(t, dir, "127.0.0.1:0")
	root := protect(ctx, t, server.Endpoint())

	_, err := Open(ctx, Config{Endpoints: []string{server.Endpoint()}, Username: "coordinator", Password: "wrong"})
	sayAll(t, err, store.ErrDenied, server.Endpoint(), "check the user name")

	s := openStore(t, Config{
		Endpoints: []string{server.Endpoint()}, Username: "coordinator", Password: "c",
		RenewStall: limit,
	})
	ours := store.Root + "default/a"
	w := s.Watch(ctx, store.Root, 1)
	put(ctx, t, s, ours, "1")
	collect(ctx, t, w, 1)
	l := grant(ctx, t, s, limit)
	if _, err := s.Renew(ctx, l.ID); err != nil {
		t.Errorf("renew: %v", err)
	}
	if _, err := s.Vitals(ctx); err != nil {
		t.Errorf("vitals: %v", err)
	}

	if _, err := s.Get(ctx, "/other"); !errors.Is(err, store.ErrDenied) {
		t.Errorf("get: %v", err)
	}
	if _, err := s.List(ctx, "/other", 0); !errors.Is(err, store.ErrDenied) {
		t.Errorf("list: %v", err)
	}
	if _, err := s.Commit(ctx, store.Txn{Writes: []store.Write{store.Put("/other", nil)}}); !errors.Is(err,
		store.ErrDenied) {
		t.Errorf("commit: %v", err)
	}
	var last store.Batch
	for last = range s.Watch(ctx, "/other", 1) {
	}
	if !errors.Is(last.Err, store.ErrDenied) {
		t.Errorf("watch: %+v", last)
	}

	// Compaction is root's: a coordinator's role does not do, and cannot be made to.
	if err := s.Compact(ctx, 2); !errors.Is(err, store.ErrDenied) {
		t.Errorf("compact: %v", err)
	}
	admin := openStore(t, Config{Endpoints: []string{server.Endpoint()}, Username: "root", Password: "r"})
	if err := admin.Compact(ctx, 2); err != nil {
		t.Errorf("compact as root: %v", err)
	}

	// A client that does not log in is refused as well.
	if _, err := root.Get(ctx, ours); !errors.Is(err, store.ErrDenied) {
		t.Errorf("get without a login: %v", err)
	}

	// Tokens end with the member that issued them; callers do not notice.
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	startEtcd(t, dir, server.Endpoint())
	put(ctx, t, s, store.Root+"default/b", "2")
	collect(ctx, t, w, 1)
	eventually(t, "renewed with a new login", func() bool { _, err := s.Renew(ctx, l.ID); return err == nil })
}

// A login ends: by its age, when the password changes, when rights change (where tokens are JWT). A
// renewal must not take it for an outage: that would make agents suspect, and keep the leader from
// judging anyone lost (SAFE-1).
//
// proves SEC-4 for the store's part
func TestALoginThatEndsHarmsNoRenewal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	protect(ctx, t, server.Endpoint())
	admin := openStore(t, Config{Endpoints: []string{server.Endpoint()}, Username: "root", Password: "r"})
	s := openStore(t, Config{
		Endpoints: []string{server.Endpoint()}, Username: "coordinator", Password: "c",
		RenewStall: limit,
	})
	l := grant(ctx, t, s, limit)
	for range 5 {
		if _, err := s.Renew(ctx, l.ID); err != nil {
			t.Fatal(err)
		}
		// To the same password: only the logins end.
		if _, err := admin.data.UserChangePassword(ctx, "coordinator", "c"); err != nil {
			t.Fatal(err)
		}
	}
}

// protect makes a user "coordinator", with the password "c", who may do everything with our keys,
// and turns authentication on. From then on its client is not authenticated.
func protect(ctx context.Context, t *testing.T, endpoint string) *Store {
	t.Helper()
	root := openStore(t, Config{Endpoints: []string{endpoint}})
	for _, step := range []func() error{
		func() error { _, err := root.data.UserAdd(ctx, "root", "r"); return err },
		func() error { _, err := root.data.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := root.data.RoleAdd(ctx, "shard"); return err },
		func() error {
			_, err := root.data.RoleGrantPermission(ctx, "shard", store.Root, clientv3.GetPrefixRangeEnd(store.Root),
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := root.data.UserAdd(ctx, "coordinator", "c"); return err },
		func() error { _, err := root.data.UserGrantRole(ctx, "coordinator", "shard"); return err },
		func() error { _, err := root.data.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
