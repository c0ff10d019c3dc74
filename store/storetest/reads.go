package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold/leasehold/store"
)

func testGet(b *bench) {
	b.absent("a")
	first := b.put("a", "1")
	if kv := b.get("a"); !same(kv, store.KV{Key: b.key("a"), Value: []byte("1"), Created: first, Modified: first}) {
		b.Errorf("after the first put: %+v", kv)
	}
	second := b.put("a", "2")
	if kv := b.get("a"); !same(kv, store.KV{Key: b.key("a"), Value: []byte("2"), Created: first, Modified: second}) {
		b.Errorf("after the second put: %+v", kv)
	}
	b.commit(store.Delete(b.key("a")))
	b.absent("a")
	again := b.put("a", "")
	if kv := b.get("a"); !same(kv, store.KV{Key: b.key("a"), Created: again, Modified: again}) {
		b.Errorf("after it was deleted and put again: %+v", kv)
	}
	b.absent("") // the prefix itself is no key
}

func testList(b *bench) {
	if l := b.list(0); len(l.KVs) != 0 || l.Revision == 0 {
		b.Errorf("before anything is there: %+v", l)
	}
	var last store.Revision
	for _, name := range []string{"b/2", "b/10", "a", "b", "c", "b/1"} {
		last = b.put(name, name)
	}
	outside := b.put("x", "")
	l := b.list(0)
	if l.Revision < outside {
		b.Errorf("listed revision %d after revision %d was written", l.Revision, outside)
	}
	names := func(prefix string) string {
		l, err := b.List(b.ctx, b.key(prefix), last)
		if err != nil {
			b.Fatal(err)
		}
		if l.Revision != last {
			b.Errorf("list at %d says revision %d", last, l.Revision)
		}
		var out []string
		for _, kv := range l.KVs {
			name := strings.TrimPrefix(kv.Key, b.prefix)
			if string(kv.Value) != name || kv.Created == 0 || kv.Created != kv.Modified {
				b.Errorf("listed %+v", kv)
			}
			out = append(out, name)
		}
		return strings.Join(out, " ")
	}
	for prefix, want := range map[string]string{
		"": "a b b/1 b/10 b/2 c", "b/": "b/1 b/10 b/2", "b": "b b/1 b/10 b/2",
		"b/1": "b/1 b/10", "d": "",
	} {
		if got := names(prefix); got != want {
			b.Errorf("list %q: %s, want %s", prefix, got, want)
		}
	}
	if _, err := b.List(b.ctx, b.prefix, outside+1_000_000); err == nil {
		b.Error("a revision in the future can be listed")
	}
}

// pagedKeys is more than any store reads in one request.
const pagedKeys = 12_000

func testListPages(b *bench) {
	var writes []store.Write
	name := func(i int) string { return fmt.Sprintf("%06d", i) }
	for i := range pagedKeys {
		writes = append(writes, store.Put(b.key(name(i)), []byte("0")))
	}
	var filled store.Revision
	for some := range slices.Chunk(writes, store.MaxOps) {
		filled = b.commit(some...)
	}

	// A writer changes the first, a middle and the last key together, and adds and removes one
	// between them: a list that is not one state shows them unequal.
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			value := []byte(fmt.Sprint(n))
			extra := store.Put(b.key(name(pagedKeys/2)+"+"), value)
			extra.Delete = n%2 == 0
			_, err := b.Commit(b.ctx, store.Txn{Writes: []store.Write{
				store.Put(b.key(name(0)), value), store.Put(b.key(name(pagedKeys/2)), value),
				store.Put(b.key(name(pagedKeys-1)), value), extra,
			}})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	for range 10 {
		l := b.list(0)
		first, last := l.KVs[0], l.KVs[len(l.KVs)-1]
		if string(first.Value) != string(last.Value) {
			b.Errorf("one list at %d shows two states: %+v and %+v", l.Revision, first, last)
		}
		if n := len(l.KVs) - pagedKeys; n != 0 && n != 1 || (n == 1) != oddValue(first) {
			b.Errorf("list at %d: %d extra keys where the first key has %s", l.Revision, n, first.Value)
		}
		if !slices.IsSortedFunc(l.KVs, func(a, b store.KV) int { return strings.Compare(a.Key, b.Key) }) {
			b.Errorf("list at %d is not in order", l.Revision)
		}
	}
	stop()
	writer.Wait()
	l := b.list(filled)
	if len(l.KVs) != pagedKeys {
		b.Errorf("%d keys at the revision with %d", len(l.KVs), pagedKeys)
	}
	for i, kv := range l.KVs {
		if kv.Key != b.key(name(i)) || string(kv.Value) != "0" {
			b.Fatalf("key %d at the revision before the changes: %+v", i, kv)
		}
	}
}

func oddValue(kv store.KV) bool {
	return len(kv.Value) > 0 && (kv.Value[len(kv.Value)-1]-'0')%2 == 1
}

func testListParts(b *bench) {
	for _, name := range []string{"b/2", "b/10", "a", "b/3", "c", "b/1"} {
		b.put(name, name)
	}
	last := b.put("x", "")
	for _, test := range []struct {
		prefix, from string
		most         int
		want, next   string
		behind       int
	}{
		{"b/", "", 0, "b/1 b/10 b/2 b/3", "", 0},
		{"b/", "", 2, "b/1 b/10", "b/2", 2},
		{"b/", "b/10", 2, "b/10 b/2", "b/3", 1},
		{"b/", "b/2", 2, "b/2 b/3", "", 0}, // those are all: there is no empty part behind them
		{"b/", "b/11", 9, "b/2 b/3", "", 0},
		{"b/", "a", 1, "b/1", "b/10", 3},
		{"b/", "c", 1, "", "", 0},
		{"d", "", 1, "", "", 0},
	} {
		from := test.from
		if from != "" {
			from = b.key(from)
		}
		part, err := b.ListPart(b.ctx, b.key(test.prefix), from, test.most, 0)
		if err != nil {
			b.Fatal(err)
		}
		var names []string
		for _, kv := range part.KVs {
			name := strings.TrimPrefix(kv.Key, b.prefix)
			if string(kv.Value) != name || kv.Created == 0 || kv.Created != kv.Modified {
				b.Errorf("listed %+v", kv)
			}
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != test.want || part.Behind != test.behind || part.Revision < last {
			b.Errorf("%d of %q from %q at %d: %q, and %d behind them, want %q and %d", test.most, test.prefix,
				test.from, part.Revision, got, part.Behind, test.want, test.behind)
		}
		if next := part.Next; (next == "") != (test.next == "") || next > b.key(test.next) || next != "" &&
			next <= part.KVs[len(part.KVs)-1].Key {
			b.Errorf("%d of %q from %q: goes on at %q, the next key is %q", test.most, test.prefix, test.from, next,
				test.next)
		}
	}
}

// testListPartsChange checks that the parts of one revision fit together, whatever is written
// between them, until that revision is compacted.
func testListPartsChange(b *bench) {
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		b.put(name, "before")
	}
	var kvs []store.KV
	part, err := b.ListPart(b.ctx, b.prefix, "", 2, 0)
	at := part.Revision
	for ; err == nil && part.Next != ""; part, err = b.ListPart(b.ctx, b.prefix, part.Next, 2, at) {
		if part.Revision != at {
			b.Errorf("a part at %d says revision %d", at, part.Revision)
		}
		kvs = append(kvs, part.KVs...)
		b.commit(store.Put(b.key("b+"), nil), store.Put(b.key("d"), nil), store.Delete(b.key("e")))
		b.put("e", "after")
	}
	if kvs = append(kvs, part.KVs...); err != nil || len(kvs) != 5 ||
		slices.ContainsFunc(kvs, func(kv store.KV) bool { return string(kv.Value) != "before" }) {
		b.Errorf("in parts at %d: %+v, %v", at, kvs, err)
	}
	if err := b.Compact(b.ctx, b.put("f", "")); err != nil {
		b.Fatal(err)
	}
	if _, err := b.ListPart(b.ctx, b.prefix, b.key("c"), 2, at); !errors.Is(err, store.ErrCompacted) {
		b.Errorf("a part of a revision that was compacted: %v", err)
	}
}

func testListOld(b *bench) {
	first := b.put("a", "1")
	second := b.commit(store.Put(b.key("a"), []byte("2")), store.Put(b.key("b"), []byte("1")))
	third := b.commit(store.Delete(b.key("a")))
	b.put("a", "3")
	a, bb := b.key("a"), b.key("b")
	for at, want := range map[store.Revision]map[string]store.KV{
		first - 1: {},
		first:     {a: {Key: a, Value: []byte("1"), Created: first, Modified: first}},
		second: {
			a:  {Key: a, Value: []byte("2"), Created: first, Modified: second},
			bb: {Key: bb, Value: []byte("1"), Created: second, Modified: second},
		},
		third: {bb: {Key: bb, Value: []byte("1"), Created: second, Modified: second}},
	} {
		if d := differs(b.list(at).KVs, want); d != "" {
			b.Errorf("list at %d: %s", at, d)
		}
	}
}

func testValues(b *bench) {
	value := []byte("written")
	watch := b.Watch(b.ctx, b.prefix, b.list(0).Revision+1)
	rev := b.commit(store.Put(b.key("a"), value))
	copy(value, "changed")
	copy(b.get("a").Value, "changed")
	copy(b.list(0).KVs[0].Value, "changed")
	events := b.upTo(watch, rev)
	if got := string(events[0].KV.Value); got != "written" {
		b.Errorf("the watch shows what was done to the caller's slice: %s", got)
	}
	copy(events[0].KV.Value, "changed")
	if got := string(b.get("a").Value); got != "written" {
		b.Errorf("the store holds what was done to the caller's slice: %s", got)
	}
}

func testVitals(b *bench) {
	before, err := b.Vitals(b.ctx)
	if err != nil {
		b.Fatal(err)
	}
	rev := b.put("a", "")
	after, err := b.Vitals(b.ctx)
	if err != nil {
		b.Fatal(err)
	}
	if before.Cluster == 0 || before.Leader == 0 || before.Term == 0 {
		b.Errorf("vitals are missing: %+v", before)
	}
	if before.Revision >= rev || after.Revision < rev {
		b.Errorf("vitals said revision %d before and %d after revision %d was written", before.Revision, after.Revision,
			rev)
	}
	if after.Cluster != before.Cluster {
		b.Errorf("the cluster changed: %+v, %+v", before, after)
	}
}

// testEndedContext: every method returns when its context has ended. A store that did not would
// hang here.
func testEndedContext(b *bench) {
	lease := b.grant(minuteTTL)
	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	calls := map[string]func() error{
		"Get":      func() error { _, err := b.Get(ended, b.key("a")); return err },
		"List":     func() error { _, err := b.List(ended, b.prefix, 0); return err },
		"ListPart": func() error { _, err := b.ListPart(ended, b.prefix, "", 0, 0); return err },
		"Grant":    func() error { _, err := b.Grant(ended, minuteTTL); return err },
		"Renew":    func() error { _, err := b.Renew(ended, lease.ID); return err },
		"Revoke":   func() error { return b.Revoke(ended, lease.ID) },
		"Vitals":   func() error { _, err := b.Vitals(ended); return err },
		"Commit": func() error {
			_, err := b.Commit(ended, store.Txn{Writes: []store.Write{store.Put(b.key("a"), nil)}})
			return err
		},
	}
	for name, call := range calls {
		err := call()
		if err == nil {
			b.Errorf("%s succeeded though its context had ended", name)
		}
		if errors.Is(err, store.ErrLeaseGone) || errors.Is(err, store.ErrNotFound) ||
			errors.Is(err, store.ErrConflict) {
			b.Errorf("%s took the end of its context for the store's word: %v", name, err)
		}
	}
	b.drain(b.Watch(ended, b.prefix, b.list(0).Revision+1))
	if err := b.Revoke(b.ctx, lease.ID); err != nil {
		b.Error(err)
	}
}
