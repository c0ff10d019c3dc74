package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leasehold/leasehold/store"
)

// drain reads a watch that is to end until it is closed, and returns what it still delivered.
func (b *bench) drain(watch <-chan store.Batch) []store.Batch {
	b.Helper()
	var batches []store.Batch
	for {
		select {
		case batch, open := <-watch:
			if !open {
				return batches
			}
			batches = append(batches, batch)
		case <-b.ctx.Done():
			b.Fatal("watch is not closed")
		}
	}
}

// testWatchListed: what is listed plus what is watched from the next revision on is what is there,
// at every revision.
func testWatchListed(b *bench) {
	const writers, each = 5, 60
	var group sync.WaitGroup
	var mu sync.Mutex
	written := map[store.Revision][]string{} // the keys that a revision changed
	for w := range writers {
		group.Go(func() {
			own, shared, passing := b.key(fmt.Sprintf("own/%d", w)), b.key("shared"), b.key("passing")
			for i := range each {
				value := []byte(fmt.Sprintf("%d/%d", w, i))
				writes := []store.Write{store.Put(own, value), store.Put(shared, value)}
				if i%3 == 0 {
					writes = append(writes, store.Put(passing, value))
				}
				if i%5 == 4 {
					writes[0] = store.Delete(own)
				}
				rev, err := b.Commit(b.ctx, store.Txn{Writes: writes})
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				for _, w := range writes {
					written[rev] = append(written[rev], w.Key)
				}
				mu.Unlock()
			}
		})
	}
	begun := b.list(0)
	watch := b.Watch(b.ctx, b.prefix, begun.Revision+1)
	group.Wait()
	end := b.list(0)
	events := b.upTo(watch, end.Revision)

	seen := map[store.Revision][]string{}
	for _, e := range events {
		seen[e.KV.Modified] = append(seen[e.KV.Modified], e.KV.Key)
	}
	for rev, keys := range written {
		if rev <= begun.Revision {
			delete(written, rev)
			continue
		}
		slices.Sort(keys)
		slices.Sort(seen[rev])
		if !slices.Equal(keys, seen[rev]) {
			b.Errorf("revision %d changed %v, the watch says %v", rev, keys, seen[rev])
		}
	}
	if len(seen) != len(written) {
		b.Errorf("the watch has %d revisions, %d were written", len(seen), len(written))
	}
	for i := range events {
		if i+1 < len(events) && events[i].KV.Modified == events[i+1].KV.Modified || i%25 != 0 && i != len(events)-1 {
			continue
		}
		rev := events[i].KV.Modified
		if d := differs(b.list(rev).KVs, replay(begun.KVs, events[:i+1])); d != "" {
			b.Errorf("list at %d is not what the watch adds up to: %s", rev, d)
		}
	}
}

func testWatchOld(b *bench) {
	first := b.put("a", "1")
	second := b.put("a", "2")
	third := b.commit(store.Delete(b.key("a")))
	fourth := b.put("a", "3")
	a := b.key("a")
	all := []store.Event{
		{KV: store.KV{Key: a, Value: []byte("1"), Created: first, Modified: first}},
		{KV: store.KV{Key: a, Value: []byte("2"), Created: first, Modified: second}},
		{KV: store.KV{Key: a, Modified: third}, Deleted: true},
		{KV: store.KV{Key: a, Value: []byte("3"), Created: fourth, Modified: fourth}},
	}
	for from, want := range map[store.Revision][]store.Event{
		first: all, first + 1: all[1:], third: all[2:],
		fourth: all[3:],
	} {
		got := b.upTo(b.Watch(b.ctx, b.prefix, from), fourth)
		if len(got) != len(want) {
			b.Errorf("from %d: %d events, want %d", from, len(got), len(want))
			continue
		}
		for i := range want {
			if got[i].Deleted != want[i].Deleted || got[i].KV.Key != a || got[i].KV.Modified != want[i].KV.Modified {
				b.Errorf("from %d: event %d is %+v, want %+v", from, i, got[i], want[i])
			}
			if want[i].Deleted && len(got[i].KV.Value) != 0 || !want[i].Deleted && !same(got[i].KV, want[i].KV) {
				b.Errorf("from %d: event %d has %+v, want %+v", from, i, got[i].KV, want[i].KV)
			}
		}
	}
}

func testWatchWhole(b *bench) {
	watch := b.Watch(b.ctx, b.prefix, b.list(0).Revision+1)
	var last store.Revision
	const txns = 30
	for i := range txns {
		writes := make([]store.Write, store.MaxOps)
		for j := range writes {
			writes[j] = store.Put(b.key(fmt.Sprintf("%d/%d", i, j)), make([]byte, 512))
		}
		last = b.commit(writes...)
	}
	var delivered store.Revision
	total := 0
	for delivered < last {
		batch := b.next(watch)
		if batch.Err != nil {
			b.Fatal(batch.Err)
		}
		count := map[store.Revision]int{}
		for _, e := range batch.Events {
			count[e.KV.Modified]++
		}
		for rev, n := range count {
			if n != store.MaxOps {
				b.Errorf("a batch has %d of the %d changes of revision %d", n, store.MaxOps, rev)
			}
		}
		total += len(batch.Events)
		delivered = batch.Revision
	}
	if total != txns*store.MaxOps {
		b.Errorf("%d events, want %d", total, txns*store.MaxOps)
	}
}

func testWatchPrefix(b *bench) {
	from := b.list(0).Revision + 1
	below := b.Watch(b.ctx, b.key("in/"), from)
	everything := b.Watch(b.ctx, "", from)
	b.put("in", "")
	one := b.put("in/1", "")
	b.put("in0", "")
	two := b.put("in/2", "")
	out := b.put("out", "")
	events := b.upTo(below, out) // progress moves it past what it does not show
	if len(events) != 2 || events[0].KV.Modified != one || events[1].KV.Modified != two {
		b.Errorf("a watch of in/ shows %+v", events)
	}
	own := 0
	for _, e := range b.upTo(everything, out) {
		if len(e.KV.Key) > len(b.prefix) && e.KV.Key[:len(b.prefix)] == b.prefix {
			own++
		}
	}
	if own != 5 {
		b.Errorf("a watch of everything shows %d of 5 changes", own)
	}
}

func testWatchProgress(b *bench) {
	watch := b.Watch(b.ctx, b.prefix, b.list(0).Revision+1)
	for range 3 {
		if batch := b.next(watch); batch.Err != nil || len(batch.Events) > 0 || batch.Revision == 0 {
			b.Errorf("an idle watch delivered %+v", batch)
		}
	}
	// What happens elsewhere moves the revision too.
	rev := b.commit(store.Put("/storetest-elsewhere/"+b.prefix, nil))
	if events := b.upTo(watch, rev); len(events) > 0 {
		b.Errorf("changes elsewhere were delivered: %+v", events)
	}
	b.commit(store.Delete("/storetest-elsewhere/" + b.prefix))
}

func testWatchSlow(b *bench) {
	slow := b.Watch(b.ctx, b.prefix, b.list(0).Revision+1)
	quick := b.Watch(b.ctx, b.prefix, b.list(0).Revision+1)
	const txns, writes = 400, 20
	var last store.Revision
	for i := range txns {
		some := make([]store.Write, writes)
		for j := range some {
			some[j] = store.Put(b.key(fmt.Sprint(j)), []byte(fmt.Sprint(i)))
		}
		last = b.commit(some...) // with slow not being read
	}
	if n := len(b.upTo(quick, last)); n != txns*writes {
		b.Errorf("the watch that is read has %d events, want %d", n, txns*writes)
	}
	if n := len(b.upTo(slow, last)); n != txns*writes {
		b.Errorf("the watch that was not read has %d events, want %d", n, txns*writes)
	}
}

func testWatchEnds(b *bench) {
	for name, read := range map[string]bool{"read": true, "not read": false} {
		ctx, cancel := context.WithCancel(b.ctx)
		watch := b.Watch(ctx, b.prefix, b.list(0).Revision+1)
		if read {
			b.upTo(watch, b.put("a", name))
		} else {
			b.put("a", name)
		}
		cancel()
		for _, batch := range b.drain(watch) {
			if errors.Is(batch.Err, store.ErrCompacted) {
				b.Errorf("%s: the end of its context was taken for %v", name, batch.Err)
			}
		}
	}
}

func testCompaction(b *bench) {
	first := b.put("a", "1")
	b.put("b", "1")
	b.commit(store.Delete(b.key("b")))
	second := b.put("a", "2")
	running := b.Watch(b.ctx, b.prefix, second)
	b.upTo(running, second)
	third := b.put("a", "3")
	if err := b.Compact(b.ctx, third+1000); err == nil || errors.Is(err, store.ErrCompacted) {
		b.Errorf("compaction of the future: %v", err)
	}
	if err := b.Compact(b.ctx, second); err != nil {
		b.Fatal(err)
	}
	for _, done := range []store.Revision{first, second} {
		if err := b.Compact(b.ctx, done); !errors.Is(err, store.ErrCompacted) {
			b.Errorf("compaction before %d after one before %d: %v", done, second, err)
		}
	}

	if _, err := b.List(b.ctx, b.prefix, first); !errors.Is(err, store.ErrCompacted) {
		b.Errorf("list at a compacted revision: %v", err)
	}
	a := b.key("a")
	for at, want := range map[store.Revision]store.KV{
		second: {Key: a, Value: []byte("2"), Created: first, Modified: second},
		third:  {Key: a, Value: []byte("3"), Created: first, Modified: third},
	} {
		if d := differs(b.list(at).KVs, map[string]store.KV{a: want}); d != "" {
			b.Errorf("list at %d, which is kept: %s", at, d)
		}
	}
	batches := b.drain(b.Watch(b.ctx, b.prefix, first))
	if len(batches) == 0 {
		b.Error("a watch from a compacted revision ended without a word")
	}
	for i, batch := range batches {
		if i < len(batches)-1 && batch.Err != nil || len(batch.Events) > 0 {
			b.Errorf("a watch from a compacted revision delivered %+v", batch)
		}
		if i == len(batches)-1 && !errors.Is(batch.Err, store.ErrCompacted) {
			b.Errorf("a watch from a compacted revision ended with %v", batch.Err)
		}
	}
	fourth := b.put("a", "4")
	if n := len(b.upTo(running, fourth)); n != 2 {
		b.Errorf("a watch that was well has %d events after the compaction, want 2", n)
	}
	if n := len(b.upTo(b.Watch(b.ctx, b.prefix, third), fourth)); n != 2 {
		b.Errorf("a watch from a revision that is kept has %d events, want 2", n)
	}
}
