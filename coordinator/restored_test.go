package coordinator_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/backup"
	"github.com/leasehold/leasehold/store"
)

// A shard that was created by mistake before the restore is empty: what coordinators write into it
// keeps no backup from taking its place, and they serve the restored shard, on hold, once they have
// started again.
//
// proves DAY-2, SAFE-12, SAFE-15
func TestAShardIsRestoredInThePlaceOfAnEmptyOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "test.json")
	inWorld(t, quick, func(w *world) {
		from := w.backupOf("old")
		one := w.start("one", stateFile(path))
		w.leads(10*time.Second, "one")
		two := w.start("two")
		w.pass(time.Hour)
		hold := store.Hold{By: "eva", At: time.Now().UTC(), Why: "it was restored"}
		if err := from.Restore(t.Context(), w.store, hold, func(int, int) {}); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*replica{one, two} {
			<-r.done
			if r.err == nil || !strings.Contains(r.err.Error(), "in the place of the empty one") {
				t.Errorf("%s ends with %v", r.id, r.err)
			}
		}
		w.start("one", stateFile(path))
		w.leads(10*time.Second, "one")
		if s := w.shard(); s.ID != "old" || s.Hold == nil || w.waits("one") != "" {
			t.Errorf("the shard is %+v, and the replica waits: %q", s, w.waits("one"))
		}
		if notes := w.list(w.keys.Of(store.KindGone)); len(notes) > 0 {
			t.Errorf("a note stays: %s", notes[0].Key)
		}
	})
}

// backupOf is a backup of a shard of this ID that has a group.
func (w *world) backupOf(id string) backup.Content {
	record := store.Shard{
		Schema: store.Schema, ID: id, Name: "test", Created: time.Now().UTC(), Settings: store.DefaultShardSettings(),
	}
	var c backup.Content
	c.Shard, c.ShardID, c.At = "test", id, time.Now().UTC()
	c.Entries = append(c.Entries,
		backup.Entry{Key: "groups/web", Value: store.Encode(w.group("web", 2))},
		backup.Entry{Key: store.KindShard, Value: store.Encode(record)})
	return c
}

// A shard with anything in it is not replaced, and stays as it is, also if that is put into it in
// the moment in which it is replaced.
//
// proves DAY-2, SAFE-15
func TestAShardWithAnythingInItIsNotReplaced(t *testing.T) {
	keys := store.KeysOf("test")
	for what, key := range map[string]string{
		"a group": keys.Group("db"), "a static group": keys.Static("db"), "an instance": keys.Instance("db-0-a"),
		"a secret": keys.Secret("s"), "an entry of the journal": keys.Event(time.Unix(1e9, 0), "1"),
		"a machine without a record": keys.Extra("db-0-a"), "a webhook": keys.Webhook("w"),
		"an order": keys.Request("r"), "a key of a kind that is not known": keys.Prefix() + "later/x",
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, quick, func(w *world) {
				from := w.backupOf("old")
				w.editShard(func(*store.Shard) {})
				w.put(key, []byte(`{"schema":1}`))
				before := w.list(w.keys.Prefix())
				err := from.Restore(t.Context(), w.store, store.Hold{}, func(int, int) {})
				if err == nil || !strings.Contains(err.Error(), key) {
					t.Errorf("the restore: %v", err)
				}
				if now := w.list(w.keys.Prefix()); !slices.EqualFunc(before, now, func(a, b store.KV) bool {
					return a.Key == b.Key && a.Modified == b.Modified
				}) {
					t.Errorf("there was %v, and is %v", before, now)
				}
			})
		})
	}
	t.Run("a group in that moment", func(t *testing.T) {
		inWorld(t, quick, func(w *world) {
			from := w.backupOf("old")
			w.editShard(func(*store.Shard) {})
			late := &appliesLate{Store: w.store, key: w.keys.Group("db"), when: w.keys.Gone(w.keys.Shard())}
			err := from.Restore(t.Context(), late, store.Hold{}, func(int, int) {})
			if err == nil || !strings.Contains(err.Error(), late.key) {
				t.Errorf("the restore: %v", err)
			}
			if s := w.shard(); s.ID != "shard1" || len(w.list(w.keys.Of(store.KindGone))) != 0 {
				t.Errorf("the shard is %+v", s)
			}
		})
	})
}

// A restore that is cut off after it has removed the empty shard is completed by another one.
//
// proves DAY-2
func TestARestoreIsRepeatedInThePlaceOfAnEmptyShard(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		from := w.backupOf("old")
		w.editShard(func(*store.Shard) {})
		cut := &cutOff{Store: w.store, key: w.keys.Group("web")}
		if err := from.Restore(t.Context(), cut, store.Hold{}, func(int, int) {}); err == nil {
			t.Fatal("it was not cut off")
		}
		if id, err := from.Replaces(t.Context(), w.store); err != nil || id != "shard1" {
			t.Errorf("it replaces %q, %v", id, err)
		}
		if err := from.Restore(t.Context(), w.store, store.Hold{}, func(int, int) {}); err != nil {
			t.Fatal(err)
		}
		if s := w.shard(); s.ID != "old" || s.Replaces != "shard1" {
			t.Errorf("the shard is %+v", s)
		}
	})
}

// appliesLate has another client write a key just after a restore has written one.
type appliesLate struct {
	store.Store
	key, when string
}

func (a *appliesLate) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	rev, err := a.Store.Commit(ctx, txn)
	if err == nil && slices.ContainsFunc(txn.Writes, func(w store.Write) bool { return w.Key == a.when && !w.Delete }) {
		return a.Store.Commit(ctx, store.Txn{Writes: []store.Write{store.Put(a.key, []byte(`{"schema":1}`))}})
	}
	return rev, err
}

// cutOff loses its connection when it is to write a key.
type cutOff struct {
	store.Store
	key string
}

func (c *cutOff) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	if slices.ContainsFunc(txn.Writes, func(w store.Write) bool { return w.Key == c.key }) {
		return 0, store.ErrUnavailable
	}
	return c.Store.Commit(ctx, txn)
}
