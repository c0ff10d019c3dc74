package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/store"
)

// raw is a client of etcd without our commands before it.
func (g *guarded) raw(name string) *clientv3.Client {
	g.t.Helper()
	conf, err := g.connection(name).Config()
	if err != nil {
		g.t.Fatal(err)
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: conf.Endpoints, TLS: conf.TLS, DialTimeout: limit,
		Logger: zap.NewNop(),
	})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = c.Close() })
	return c
}

// attempt is something that is tried behind the back of the commands.
type attempt struct {
	mayEnd bool // its target may have expired by then
	what   string
	do     func(context.Context, *clientv3.Client) error
	// through are the users that etcd lets through: docs/security.md describes each.
	through []string
}

// victims are the records that attacks target.
type victims struct {
	alive, fresh, expiring clientv3.LeaseID // with alive/web-0-a on it; with nothing; about to end, with alive/web-1-b
	member                 uint64
}

// proves SEC-4: a client that uses etcd without our commands can do no more than with them, except
// what is named here
func TestRolesBehindTheCommands(t *testing.T) {
	g := newGuarded(t)
	g.must(g.as("root"), "auth", "init")
	g.must(g.as("root"), "auth", "init", "--shard", "two", "--users", "none")
	g.fill()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	coordinator, root := g.raw("coordinator"), g.raw("root")
	keys := store.KeysOf("default")
	v := g.victims(ctx, coordinator, keys)
	if _, err := root.Put(ctx, store.KeysOf("two").Group("web"), "{}"); err != nil {
		t.Fatal(err)
	}
	attempts := append(writes(keys), append(around(keys, v), administration(v)...)...)
	for _, who := range []string{"viewer", "operator", "eva", "anonymous"} { // eva has a certificate, and is no user
		before := g.all(ctx, root)
		var client *clientv3.Client
		if who == "anonymous" {
			conf, err := g.connection("eva").Config()
			if err != nil {
				t.Fatal(err)
			}
			conf.TLS.Certificates = nil
			if client, err = clientv3.New(clientv3.Config{
				Endpoints: conf.Endpoints, TLS: conf.TLS, DialTimeout: limit,
				Logger: zap.NewNop(),
			}); err != nil {
				t.Fatal(err)
			}
			defer client.Close()
		} else {
			client = g.raw(who)
		}
		for _, a := range attempts {
			expected, patience := slices.Contains(a.through, who), limit
			if who == "anonymous" {
				patience = 50 * time.Millisecond // the handshake fails, and is tried again without end
			}
			try, stop := context.WithTimeout(ctx, patience)
			err := a.do(try, client)
			stop()
			ended := a.mayEnd && errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound)
			switch refused := isRefusal(err) || ended || who == "anonymous" && err != nil; {
			case expected && err != nil:
				t.Errorf("%s: %s: etcd used to let that through: %v", who, a.what, err)
			case !expected && err == nil:
				t.Errorf("%s: %s: it was done", who, a.what)
			case !expected && !refused:
				t.Errorf("%s: %s: failed for another reason than a right: %v", who, a.what, err)
			}
		}
		if after := g.all(ctx, root); who != "operator" && after != before {
			t.Errorf("%s changed something:\n%s\n%s", who, before, after)
		}
	}
}

func isRefusal(err error) bool {
	if err == nil {
		return false
	}
	etcdErr := rpctypes.Error(err)
	// A watch says it in text alone.
	return strings.Contains(err.Error(), rpctypes.ErrorDesc(rpctypes.ErrPermissionDenied)) ||
		errors.Is(etcdErr, rpctypes.ErrPermissionDenied) || errors.Is(etcdErr, rpctypes.ErrUserNotFound) ||
		errors.Is(etcdErr, rpctypes.ErrUserEmpty) ||
		status.Code(err) == codes.PermissionDenied
}

func (g *guarded) all(ctx context.Context, root *clientv3.Client) string {
	g.t.Helper()
	r, err := root.Get(ctx, "", clientv3.WithPrefix())
	if err != nil {
		g.t.Fatal(err)
	}
	// it ends
	kvs := slices.DeleteFunc(r.Kvs,
		func(kv *mvccpb.KeyValue) bool { return strings.HasSuffix(string(kv.Key), "/alive/web-1-b") })
	return fmt.Sprint(kvs)
}

func (g *guarded) victims(ctx context.Context, c *clientv3.Client, keys store.Keys) (v victims) {
	g.t.Helper()
	for _, l := range []struct {
		id  *clientv3.LeaseID
		ttl int64
		key string
	}{{&v.alive, 600, keys.Alive("web-0-a")}, {&v.fresh, 600, ""}, {&v.expiring, 2, keys.Alive("web-1-b")}} {
		grant, err := c.Grant(ctx, l.ttl)
		if err != nil {
			g.t.Fatal(err)
		}
		*l.id = grant.ID
		if l.key == "" {
			continue
		}
		if _, err := c.Put(ctx, l.key, "{}", clientv3.WithLease(grant.ID)); err != nil {
			g.t.Fatal(err)
		}
	}
	st, err := c.Status(ctx, g.endpoint)
	if err != nil {
		g.t.Fatal(err)
	}
	v.member = st.Leader
	return v
}

// writes are tries to write what is.
func writes(keys store.Keys) (all []attempt) {
	for _, key := range []string{
		keys.Served(), keys.Replica("x"), keys.Status("web"), keys.Slot("web", 0), keys.Instance("web-0-a"),
		keys.Alive("web-0-a"), keys.Report("web-0-a"),
		keys.Event(time.Now(), "x"), keys.Token("x"), keys.Joined("web-0-a"), keys.Stray("x"), keys.Turn("web"),
		keys.Leader(1), store.KeysOf("two").Group("web"), "/other",
		store.Root, store.Root + "default", store.Root + "zzz/groups/web",
	} {
		all = append(all,
			attempt{what: "write " + key, do: func(ctx context.Context, c *clientv3.Client) error {
				_, err := c.Put(ctx, key, "x")
				return err
			}},
			attempt{
				what: "delete " + key,
				do:   func(ctx context.Context, c *clientv3.Client) error { _, err := c.Delete(ctx, key); return err },
			},
			attempt{what: "write in a transaction " + key, do: func(ctx context.Context, c *clientv3.Client) error {
				_, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Version(keys.Group("web")), ">",
					0)).Then(clientv3.OpGet(keys.Group("web")), clientv3.OpPut(key, "x")).Commit()
				return err
			}},
			attempt{
				what: "write in a transaction that does not come to it " + key,
				do: func(ctx context.Context, c *clientv3.Client) error {
					_, err := c.Txn(ctx).Then(clientv3.OpTxn(nil, nil, []clientv3.Op{clientv3.OpDelete(key)})).Commit()
					return err
				},
			},
		)
	}
	for _, key := range []string{keys.Group("own"), keys.Static("own"), keys.Request("own"), keys.Secret("own")} {
		all = append(all, attempt{
			what: "write " + key, through: []string{"operator"},
			do: func(ctx context.Context, c *clientv3.Client) error {
				_, err := c.Put(ctx, key, "x")
				return err
			},
		})
	}
	return all
}

// around are tries to get around the rights on single keys.
func around(keys store.Keys, v victims) []attempt {
	return []attempt{
		{what: "delete the shard", do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Delete(ctx, keys.Prefix(), clientv3.WithPrefix())
			return err
		}},
		{what: "delete from groups on", do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Delete(ctx, keys.Of(store.KindGroups), clientv3.WithFromKey())
			return err
		}},
		{what: "delete groups to instances", do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Delete(ctx, keys.Of(store.KindGroups), clientv3.WithRange(keys.Of(store.KindJoined)))
			return err
		}},
		{what: "read another shard", do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Get(ctx, store.KeysOf("two").Prefix(), clientv3.WithPrefix())
			return err
		}},
		{what: "read all shards", do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Get(ctx, store.Root, clientv3.WithPrefix())
			return err
		}},
		{what: "compare a key of another shard", do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Txn(ctx).If(clientv3.Compare(clientv3.Version(store.KeysOf("two").Group("web")), ">",
				0)).Commit()
			return err
		}},
		{what: "watch another shard", do: func(ctx context.Context, c *clientv3.Client) error {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			r, open := <-c.Watch(ctx, store.KeysOf("two").Prefix(), clientv3.WithPrefix(), clientv3.WithRev(1),
				clientv3.WithCreatedNotify())
			if !open {
				return ctx.Err()
			}
			return r.Err()
		}},
		{what: "campaign for leader by etcd's own service", do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := v3electionpb.NewElectionClient(c.ActiveConnection()).Campaign(ctx,
				&v3electionpb.CampaignRequest{
					Name: []byte(keys.Prefix() + store.KindLeader), Lease: int64(v.fresh),
					Value: []byte("me"),
				})
			return err
		}},
		{what: "lock by etcd's own service", do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := v3lockpb.NewLockClient(c.ActiveConnection()).Lock(ctx,
				&v3lockpb.LockRequest{Name: []byte(keys.Of(store.KindInstances) + "web-0-a"), Lease: int64(v.fresh)})
			return err
		}},
		{what: "keep the lease of a dead agent", mayEnd: true, do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.KeepAliveOnce(ctx, v.expiring)
			return err
		}},
		{what: "renew an agent's lease", do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.KeepAliveOnce(ctx, v.alive)
			return err
		}},
		{
			what: "end an agent's lease",
			do:   func(ctx context.Context, c *clientv3.Client) error { _, err := c.Revoke(ctx, v.alive); return err },
		},
		{what: "hang a key of one's own on an agent's lease", do: func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Put(ctx, keys.Request("own"), "x", clientv3.WithLease(v.alive))
			return err
		}},

		// What etcd lets through.
		{
			what: "renew a lease without keys", through: []string{"viewer", "operator", "eva"},
			do: func(ctx context.Context, c *clientv3.Client) error {
				_, err := c.KeepAliveOnce(ctx, v.fresh)
				return err
			},
		},
		{
			what: "list the leases, if one may read what is on them", through: []string{"viewer", "operator"},
			do: func(ctx context.Context, c *clientv3.Client) error { _, err := c.Leases(ctx); return err },
		},
		{
			what: "grant and end leases", through: []string{"viewer", "operator", "eva"},
			do: func(ctx context.Context, c *clientv3.Client) error {
				l, err := c.Grant(ctx, 600)
				if err == nil {
					_, err = c.Revoke(ctx, l.ID)
				}
				return err
			},
		},
		{
			what: "ask a member for its status", through: []string{"viewer", "operator", "eva"},
			do: func(ctx context.Context, c *clientv3.Client) error {
				_, err := c.Status(ctx, c.Endpoints()[0])
				return err
			},
		},
		{
			what: "list the members", through: []string{"viewer", "operator", "eva"},
			do: func(ctx context.Context, c *clientv3.Client) error { _, err := c.MemberList(ctx); return err },
		},
	}
}

// administration are calls that are root's.
func administration(v victims) []attempt {
	call := func(what string, do func(context.Context, *clientv3.Client) error) attempt {
		return attempt{what: what, do: do}
	}
	return []attempt{
		call("turn authentication off",
			func(ctx context.Context, c *clientv3.Client) error { _, err := c.AuthDisable(ctx); return err }),
		call("make a user", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.UserAdd(ctx, "mallory", "x")
			return err
		}),
		call("become root", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.UserGrantRole(ctx, "viewer", "root")
			return err
		}),
		call("widen a role", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.RoleGrantPermission(ctx, "leasehold-default-viewer", "\x00", "\x00",
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		}),
		call("set root's password", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.UserChangePassword(ctx, "root", "x")
			return err
		}),
		call("remove a user", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.UserDelete(ctx, "coordinator")
			return err
		}),
		call("remove a role", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.RoleDelete(ctx, "leasehold-default-coordinator")
			return err
		}),
		call("list users", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.UserList(ctx)
			return err
		}),
		call("look at another user", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.UserGet(ctx, "coordinator")
			return err
		}),
		call("compact the history", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Compact(ctx, 3)
			return err
		}),
		call("take a snapshot", func(ctx context.Context, c *clientv3.Client) error {
			r, err := c.Snapshot(ctx)
			if err == nil {
				_, err = io.Copy(io.Discard, r)
			}
			return err
		}),
		call("defragment", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Defragment(ctx, c.Endpoints()[0])
			return err
		}),
		call("move the leader", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.MoveLeader(ctx, v.member+1)
			return err
		}),
		call("hash everything", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.HashKV(ctx, c.Endpoints()[0], 0)
			return err
		}),
		call("disarm alarms", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: v.member, Alarm: 1})
			return err
		}),
		call("downgrade", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Downgrade(ctx, clientv3.DowngradeEnable, "3.6.0")
			return err
		}),
		call("remove a member", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.MemberRemove(ctx, v.member+1)
			return err
		}),
		call("add a member", func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:1"})
			return err
		}),
	}
}
