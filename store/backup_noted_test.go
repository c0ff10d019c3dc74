package store_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

func backedUp(by string, rev store.Revision, at time.Duration) store.Backup {
	return store.Backup{At: noon.Add(at), Revision: rev, By: by, To: "/backups/" + by}
}

func notBackedUp(by string, at time.Duration) store.Backup {
	return store.Backup{Failure: &store.BackupFailure{At: noon.Add(at), By: by, Why: "no space"}}
}

// Of successful backups the one of the latest revision is shown, whatever the clocks said, and a
// failed one stays beside it until the same replica succeeds.
//
// proves DAY-2
func TestWhichBackupIsShown(t *testing.T) {
	first, failed, none := backedUp("a", 5, 0), notBackedUp("a", 0), store.Backup{}
	later := func(by string, rev store.Revision) store.Backup { return backedUp(by, rev, time.Hour) }
	for name, c := range map[string]struct {
		news        []store.Backup
		good, wrong store.Backup // that are shown
	}{
		"the first":                   {[]store.Backup{first}, first, none},
		"a later one":                 {[]store.Backup{first, later("b", 6)}, later("b", 6), none},
		"by a clock that is behind":   {[]store.Backup{later("a", 5), backedUp("b", 6, 0)}, backedUp("b", 6, 0), none},
		"the same content again":      {[]store.Backup{first, later("b", 5)}, later("b", 5), none},
		"one that was begun earlier":  {[]store.Backup{first, later("b", 4)}, first, none},
		"only a failed one":           {[]store.Backup{failed}, none, failed},
		"a failed one after a good":   {[]store.Backup{first, failed}, first, failed},
		"two failed ones":             {[]store.Backup{notBackedUp("b", 0), failed}, none, failed},
		"the same replica succeeds":   {[]store.Backup{failed, later("a", 5)}, later("a", 5), none},
		"another replica succeeds":    {[]store.Backup{failed, later("b", 5)}, later("b", 5), failed},
		"it succeeds with an old one": {[]store.Backup{later("b", 6), failed, first}, later("b", 6), none},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newMemory(t).Connect()
				for _, news := range c.news {
					if err := store.NoteBackup(t.Context(), &contended{Store: s}, shard, news); err != nil {
						t.Fatal(err)
					}
				}
				want := c.good
				want.Schema, want.Failure = store.Schema, c.wrong.Failure
				if got := shownBackup(t, s); !reflect.DeepEqual(got, want) {
					t.Errorf("shown is %+v, want %+v", got, want)
				}
			})
		})
	}
}

func shownBackup(t *testing.T, s store.Store) store.Backup {
	t.Helper()
	kv, err := s.Get(t.Context(), shard.Backup())
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.Decode[store.Backup](kv)
	if err != nil {
		t.Fatal(err)
	}
	return v.Record
}

// contended is a store in which something may happen right after the first read, and that ends a
// note which is tried for ever.
type contended struct {
	store.Store
	reads int
	then  func()
}

func (c *contended) Get(ctx context.Context, key string) (store.KV, error) {
	c.reads++
	kv, err := c.Store.Get(ctx, key)
	switch {
	case c.reads == 1 && c.then != nil:
		c.then()
	case c.reads > 5:
		return store.KV{}, errors.New("it reads again and again")
	}
	return kv, err
}

// Two backups that end at the same time are both noted.
//
// proves DAY-2
func TestTwoBackupsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t).Connect()
		c := &contended{Store: s, then: func() {
			if err := store.NoteBackup(t.Context(), s, shard, backedUp("b", 5, 0)); err != nil {
				t.Error(err)
			}
		}}
		if err := store.NoteBackup(t.Context(), c, shard, notBackedUp("a", 0)); err != nil {
			t.Fatal(err)
		}
		want := backedUp("b", 5, 0)
		want.Schema, want.Failure = store.Schema, notBackedUp("a", 0).Failure
		if got := shownBackup(t, s); !reflect.DeepEqual(got, want) {
			t.Errorf("shown is %+v, want %+v", got, want)
		}
	})
}

// A note that cannot be written is an error. What a newer program has noted stays; what no one can
// read is replaced.
func TestBackupsThatCannotBeNoted(t *testing.T) {
	for name, c := range map[string]struct {
		method, stored string
		want           error
		left           string // "": the new note
	}{
		"etcd is not read":   {method: "Get", want: store.ErrUnavailable, stored: "{}", left: "{}"},
		"nothing is written": {method: "Commit", want: store.ErrUnavailable, stored: "{}", left: "{}"},
		"a newer program":    {want: store.ErrSchema, stored: `{"schema":9}`, left: `{"schema":9}`},
		"spoiled":            {stored: `{"schema":1,"at":[`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newMemory(t).Connect()
				put(t, s, shard.Backup(), c.stored)
				failing := &failsOnce{Store: s, method: c.method, err: store.ErrUnavailable}
				if err := store.NoteBackup(t.Context(), failing, shard, backedUp("a", 5, 0)); !errors.Is(err, c.want) {
					t.Errorf("noted with %v, want %v", err, c.want)
				}
				if c.left == "" {
					if got := shownBackup(t, s); got.Revision != 5 {
						t.Errorf("shown is %+v", got)
					}
				} else if kv, err := s.Get(t.Context(), shard.Backup()); err != nil || string(kv.Value) != c.left {
					t.Errorf("left is %s, %v", kv.Value, err)
				}
			})
		})
	}
}
