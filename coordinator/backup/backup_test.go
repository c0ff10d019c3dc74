package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/leasehold/leasehold/coordinator/backup"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newStore(t *testing.T) store.Store {
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	return db.Connect()
}

func put(t *testing.T, s store.Store, key string, value []byte) store.Revision {
	t.Helper()
	rev, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Put(key, value)}})
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// filled is a store with a shard of many keys, some of which JSON would not give back byte for
// byte.
func filled(t *testing.T) (store.Store, store.Keys) {
	s, keys := newStore(t), store.KeysOf("default")
	put(t, s, keys.Shard(), store.Encode(store.Shard{
		Schema: 1, ID: "5eed", Name: "default", Created: noon, Generation: 2, Settings: store.DefaultShardSettings(),
		Reviewed: &store.Reviewed{Extras: 3, Damage: 2, Seen: 1 << 30},
	}))
	for i := range 120 {
		id := fmt.Sprintf("web-%d-a", i)
		put(t, s, keys.Instance(id), store.Encode(store.Instance{
			Schema: 1, ID: id, Group: "web", Slot: i, Managed: true,
			Phase: store.Running,
		}))
	}
	accepted := store.DefaultGroup()
	accepted.Name, accepted.Size = "web", 120
	rev := put(t, s, keys.Group("web"), store.Encode(accepted))
	n := 120
	put(t, s, keys.Status("web"), store.Encode(store.Status{
		Schema: 1, Group: "web", Accepted: &accepted, AcceptedRevision: rev, State: store.GroupStarted, Records: &n,
		Counted:  rev,
		LastGood: &store.GoodSpec{Revision: rev, Template: "t1"},
	}))
	put(t, s, keys.Secret("a"), []byte("}no JSON\x00\xff"))
	put(t, s, keys.Secret("b"), []byte(`{ "spaced" : "<&>" }`))
	put(t, s, keys.Token("hash"), []byte(`{"schema":1}`))
	put(t, s, keys.Request("order"), []byte(`{"schema":1}`))
	put(t, s, store.KeysOf("default2").Shard(), []byte(`{"schema":1}`))
	return s, keys
}

func take(t *testing.T, s store.Store) backup.Content {
	t.Helper()
	c, err := backup.Take(t.Context(), s.List, "default", "v0", noon)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A backup holds what cannot be derived, at one revision; it comes back byte for byte, encrypted or
// not, into another etcd, where the shard is on hold.
//
// proves DAY-2, SAFE-15
func TestABackupComesBack(t *testing.T) {
	s, keys := filled(t)
	pair, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, recipients := range map[string][]age.Recipient{"plain": nil, "encrypted": {pair.Recipient()}} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			if err := take(t, s).Write(&file, recipients...); err != nil {
				t.Fatal(err)
			}
			if name == "encrypted" {
				if _, err := backup.Read(bytes.NewReader(file.Bytes())); !errors.Is(err, backup.ErrEncrypted) {
					t.Errorf("without an identity: %v", err)
				}
				other, _ := age.GenerateX25519Identity()
				if _, err := backup.Read(bytes.NewReader(file.Bytes()), other); !errors.Is(err, backup.ErrEncrypted) {
					t.Errorf("with another identity: %v", err)
				}
			}
			c, err := backup.Read(&file, pair)
			if err != nil {
				t.Fatal(err)
			}
			into := newStore(t)
			put(t, into, store.KeysOf("other").Shard(), []byte("another shard"))
			restore(t, into, c)
			for _, kind := range []string{store.KindGroups, store.KindInstances, store.KindSecrets} {
				want, _ := s.List(t.Context(), keys.Of(kind), 0)
				got, _ := into.List(t.Context(), keys.Of(kind), 0)
				same := slices.EqualFunc(want.KVs, got.KVs, func(a, b store.KV) bool {
					return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
				})
				if !same || len(got.KVs) == 0 {
					t.Errorf("%s: %d keys, want %d", kind, len(got.KVs), len(want.KVs))
				}
			}
			all, _ := into.List(t.Context(), keys.Prefix(), 0)
			if len(all.KVs) != 120+1+1+2+1 {
				t.Errorf("%d keys", len(all.KVs))
			}
			shard := decode[store.Shard](t, into, keys.Shard())
			if shard.Record.Hold == nil || shard.Record.ID != "5eed" || shard.Record.Generation != 3 {
				t.Errorf("the shard is %+v", shard.Record)
			}
			if shard.Record.Reviewed != nil {
				t.Errorf("an operator's acknowledgement at a revision of the old etcd came back: %+v", shard.Record.Reviewed)
			}
			if shard.Modified != all.Revision {
				t.Error("the shard's key is not the last one")
			}
			group, _ := into.Get(t.Context(), keys.Group("web"))
			st := decode[store.Status](t, into, keys.Status("web")).Record
			if st.AcceptedRevision != group.Modified || st.Accepted == nil || st.Records != nil || st.Counted != 0 ||
				st.LastGood.Revision != group.Modified {
				t.Errorf("the status is %+v", st)
			}
		})
	}
}

func decode[T any](t *testing.T, s store.Store, key string) store.Versioned[T] {
	t.Helper()
	kv, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.Decode[T](kv)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func restore(t *testing.T, into store.Store, c backup.Content) {
	t.Helper()
	if err := c.Restore(t.Context(), into, store.Hold{Why: "test", At: noon}, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
}

// Each byte counts: a file that was shortened or changed anywhere is refused as a whole.
//
// proves DAY-2
func TestADamagedFileIsRefused(t *testing.T) {
	s, keys := newStore(t), store.KeysOf("default")
	put(t, s, keys.Shard(), store.Encode(store.Shard{Schema: 1, ID: "5eed", Name: "default"}))
	put(t, s, keys.Secret("a"), []byte("}"))
	pair, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, recipients := range [][]age.Recipient{nil, {pair.Recipient()}} {
		var file bytes.Buffer
		c := take(t, s)
		if err := c.Write(&file, recipients...); err != nil {
			t.Fatal(err)
		}
		whole := file.Bytes()
		for n := range whole {
			if _, err := backup.Read(bytes.NewReader(whole[:n]), pair); !errors.Is(err, backup.ErrDamaged) {
				t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
			}
		}
		for n := range whole {
			changed := bytes.Clone(whole)
			changed[n] ^= 0x10
			got, err := backup.Read(bytes.NewReader(changed), pair)
			if err == nil && !slices.EqualFunc(got.Entries, c.Entries, func(a, b backup.Entry) bool {
				return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
			}) {
				t.Fatalf("byte %d of %d was changed, and with it what was read", n, len(whole))
			}
		}
		if _, err := backup.Read(bytes.NewReader(append(bytes.Clone(whole), 0)), pair); err == nil {
			t.Error("a byte after the end went unseen")
		}
	}
}

// dying is a store that dies before a commit.
type dying struct {
	store.Store
	left int
}

var errDied = errors.New("died")

func (d *dying) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if d.left == 0 {
		return 0, errDied
	}
	d.left--
	return d.Store.Commit(ctx, txn)
}

// A restore that dies anywhere leaves no shard, and is finished by the next one. It overwrites
// nothing.
//
// proves DAY-2
func TestAnInterruptedRestoreIsRepeated(t *testing.T) {
	s, keys := filled(t)
	c := take(t, s)
	hold := store.Hold{Why: "test", At: noon}
	into := &dying{Store: newStore(t)}
	for deaths := 0; ; deaths++ {
		into.left = deaths // one step further each time
		err := c.Restore(t.Context(), into, hold, func(int, int) {})
		if err == nil {
			if deaths < 3 {
				t.Errorf("it died %d times", deaths)
			}
			break
		}
		if !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		if _, err := into.Get(t.Context(), keys.Shard()); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("there is a shard before all is there: %v", err)
		}
	}
	var inTheWay *backup.InTheWayError
	if err := c.Restore(t.Context(), into.Store, hold, func(int, int) {}); !errors.As(err, &inTheWay) {
		t.Errorf("over the shard: %v", err)
	}
	for _, key := range []string{keys.Group("db"), keys.Group("web"), keys.Shard()} {
		into := newStore(t)
		put(t, into, key, []byte(`{"schema":1}`))
		if err := c.Restore(t.Context(), into, hold, func(int, int) {}); !errors.As(err, &inTheWay) || inTheWay.Key != key {
			t.Errorf("over %s: %v", key, err)
		}
	}
}

// A replica's schedule keeps the newest files, removes none while the shard is on hold or for one
// of another ID, and records what it did.
//
// proves DAY-2
func TestASchedule(t *testing.T) {
	s, keys := filled(t)
	dir := t.TempDir()
	out := filepath.Join(t.TempDir(), "out")
	cfg := backup.Config{
		Shard: "default", By: "a", Program: "v0", Every: time.Hour, Dir: dir, Keep: 2,
		Command: []string{
			"sh", "-c",
			`cat >"$1.$LEASEHOLD_BACKUP_REVISION"; ! [ -e "$1.fail" ] || { echo full >&2; exit 3; }`, "sh", out,
		},
	}
	once := func(cfg backup.Config) error {
		return backup.NewSchedule(cfg, s, slog.New(slog.DiscardHandler)).Once(t.Context())
	}
	files := func() []string {
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	for range 4 {
		if err := once(cfg); err != nil {
			t.Fatal(err)
		}
		put(t, s, keys.Secret("a"), []byte("}"))
	}
	kept := files()
	if len(kept) != 2 {
		t.Fatalf("kept: %v", kept)
	}
	noted := decode[store.Backup](t, s, keys.Backup()).Record
	if noted.By != "a" || noted.Failure != nil || !strings.Contains(noted.To, filepath.Base(kept[1])) {
		t.Errorf("noted: %+v", noted)
	}
	for _, name := range []string{kept[1], fmt.Sprintf("%s.%d", out, noted.Revision)} {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := backup.Read(file); err != nil || c.Revision != noted.Revision {
			t.Errorf("%s: rev %d, %v", name, c.Revision, err)
		}
		_ = file.Close()
	}

	if err := os.WriteFile(out+".fail", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := once(cfg); err == nil {
		t.Error("a command that failed went unseen")
	}
	if f := decode[store.Backup](t, s, keys.Backup()).Record; f.Failure == nil || !strings.Contains(f.Failure.Why,
		"full") ||
		!f.At.Equal(noted.At) {
		t.Errorf("noted: %+v", f)
	}
	if err := os.Remove(out + ".fail"); err != nil {
		t.Fatal(err)
	}
	if err := once(cfg); err != nil || decode[store.Backup](t, s, keys.Backup()).Record.Failure != nil {
		t.Errorf("after the failure: %v", err)
	}

	shard := decode[store.Shard](t, s, keys.Shard()).Record
	shard.Hold = &store.Hold{Why: "damage"}
	put(t, s, keys.Shard(), store.Encode(shard))
	cfg.Keep = 1
	before := files()
	if err := once(cfg); err != nil || len(files()) != len(before)+1 {
		t.Errorf("on hold: %v, %v and before %v", err, files(), before)
	}
	shard.Hold, shard.ID = nil, "another"
	put(t, s, keys.Shard(), store.Encode(shard))
	if err := once(cfg); err != nil || len(files()) != len(before)+2 {
		t.Errorf("of another ID: %v, %v", err, files())
	}
	if _, err := s.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Delete(keys.Shard())}}); err != nil {
		t.Fatal(err)
	}
	if err := once(cfg); !errors.Is(err, backup.ErrNoShard) || len(files()) != len(before)+2 {
		t.Errorf("without a shard: %v, %v", err, files())
	}
}
