package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// model is the store as a map, too simple to be wrong.
type model map[string]store.KV

// failing returns the keys whose conditions do not hold, in order.
func (m model) failing(conditions []store.Condition) []string {
	failed := map[string]bool{}
	for _, c := range conditions {
		kv, there := m[c.Key]
		switch {
		case c.Absent && there, c.Exists && !there:
			failed[c.Key] = true
		case c.Modified != 0 && kv.Modified != c.Modified, c.Created != 0 && kv.Created != c.Created:
			failed[c.Key] = true
		}
	}
	return slices.Sorted(maps.Keys(failed))
}

// after returns the model once the writes happened at rev.
func (m model) after(writes []store.Write, rev store.Revision) model {
	next := maps.Clone(m)
	for _, w := range writes {
		was, there := m[w.Key]
		switch {
		case w.Delete:
			delete(next, w.Key)
		case there:
			next[w.Key] = store.KV{Key: w.Key, Value: w.Value, Created: was.Created, Modified: rev}
		default:
			next[w.Key] = store.KV{Key: w.Key, Value: w.Value, Created: rev, Modified: rev}
		}
	}
	return next
}

// changed reports whether the writes change anything: only then there is a new revision.
func (m model) changed(writes []store.Write) bool {
	return slices.ContainsFunc(writes, func(w store.Write) bool {
		_, there := m[w.Key]
		return there || !w.Delete
	})
}

// drawTxn draws a transaction on few keys, whose conditions hold more often than not.
func (m model) drawTxn(t *rapid.T, keys []string) store.Txn {
	var txn store.Txn
	for _, key := range rapid.SliceOfN(rapid.SampledFrom(keys), 0, 3).Draw(t, "conditions on") {
		kv, there := m[key]
		wrong := store.Revision(rapid.SampledFrom([]int{0, 0, 0, 1, -1}).Draw(t, "off by"))
		c := store.Absent(key)
		switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
		case kind == 0 && kv.Modified+wrong > 0:
			c = store.Condition{Key: key, Modified: kv.Modified + wrong}
		case kind == 1 && kv.Created+wrong > 0:
			c = store.CreatedAt(key, kv.Created+wrong)
		case kind == 2 && there:
			c = store.Exists(key)
		case kind == 3:
			c = store.Exists(key)
		}
		txn.Conditions = append(txn.Conditions, c)
	}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 1, 4, rapid.ID).Draw(t, "writes") {
		if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
			txn.Writes = append(txn.Writes, store.Delete(key))
		} else {
			txn.Writes = append(txn.Writes, store.Put(key, rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "value")))
		}
	}
	return txn
}

// state is the model at a revision.
type state struct {
	at   store.Revision
	kvs  model
	size int // how many events led to it
}

// testModel runs random transactions on the store and the model, and compares what is there after
// each, what was there at every revision, and what a watch makes of it.
func testModel(b *bench) {
	rapid.Check(b.T, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(b.T.Context(), patience)
		defer cancel()
		prefix := b.prefix + rand.Text() + "/"
		keys := make([]string, 5)
		for i := range keys {
			keys[i] = fmt.Sprintf("%s%c", prefix, 'a'+i)
		}
		begun, err := b.List(ctx, prefix, 0)
		if err != nil {
			t.Fatal(err)
		}
		now := model{}
		past := []state{{at: begun.Revision, kvs: now}}
		for range rapid.IntRange(1, 12).Draw(t, "transactions") {
			txn := now.drawTxn(t, keys)
			rev, err := b.Commit(ctx, txn)
			last := past[len(past)-1]
			if failed := now.failing(txn.Conditions); len(failed) > 0 {
				checkConflict(t, err, failed)
			} else if err != nil {
				t.Fatalf("%+v: %v", txn, err)
			} else if now.changed(txn.Writes) {
				if rev <= last.at {
					t.Fatalf("revision %d follows %d", rev, last.at)
				}
				past = append(past, state{
					at: rev, kvs: now.after(txn.Writes, rev),
					size: last.size + now.events(txn.Writes),
				})
				now = past[len(past)-1].kvs
			} else if rev < last.at {
				t.Fatalf("a transaction that changed nothing after revision %d returned %d", last.at, rev)
			}
			got, err := b.List(ctx, prefix, 0)
			if err != nil {
				t.Fatal(err)
			}
			if d := differs(got.KVs, now); d != "" {
				t.Fatalf("after %+v: %s", txn, d)
			}
		}
		for _, s := range past {
			got, err := b.List(ctx, prefix, s.at)
			if err != nil {
				t.Fatal(err)
			}
			if d := differs(got.KVs, s.kvs); d != "" {
				t.Fatalf("at revision %d: %s", s.at, d)
			}
		}
		checkWatch(ctx, t, b.Store, prefix, begun.Revision+1, past)
	})
}

// events returns how many changes the writes make.
func (m model) events(writes []store.Write) int {
	n := 0
	for _, w := range writes {
		if m.changed([]store.Write{w}) {
			n++
		}
	}
	return n
}

func checkConflict(t *rapid.T, err error, want []string) {
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("got %v, want a conflict on %v", err, want)
	}
	got := slices.Clone(conflict.Keys)
	slices.Sort(got)
	if !slices.Equal(slices.Compact(got), want) {
		t.Fatalf("conflict on %v, want %v", got, want)
	}
}

// checkWatch checks that a watch of it all leads through every state.
func checkWatch(ctx context.Context, t *rapid.T, s store.Store, prefix string, from store.Revision, past []state) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	watch := s.Watch(ctx, prefix, from)
	defer func() {
		cancel()
		for range watch {
		}
	}()
	last := past[len(past)-1]
	var events []store.Event
	for len(events) < last.size {
		batch, open := <-watch
		if !open || batch.Err != nil {
			t.Fatalf("watch ended after %d of %d events: %v", len(events), last.size, batch.Err)
		}
		events = append(events, batch.Events...)
	}
	for _, want := range past {
		got := replay(nil, events[:want.size])
		if d := differs(slices.Collect(maps.Values(got)), want.kvs); d != "" {
			t.Fatalf("the watch leads to this at revision %d: %s", want.at, d)
		}
	}
}
