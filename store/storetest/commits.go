package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/leasehold/leasehold/store"
)

func testRevisions(b *bench) {
	last := b.put("a", "")
	for i := range 20 {
		rev := b.put("a", fmt.Sprint(i))
		if rev <= last {
			b.Fatalf("revision %d follows %d", rev, last)
		}
		last = rev
	}
	rev := b.commit(store.Put(b.key("b"), nil), store.Delete(b.key("a")), store.Put(b.key("c"), nil))
	for _, kv := range b.list(0).KVs {
		if kv.Created != rev || kv.Modified != rev {
			b.Errorf("written in revision %d: %+v", rev, kv)
		}
	}
	if n := len(b.list(0).KVs); n != 2 {
		b.Errorf("%d keys after two puts and a deletion", n)
	}
	b.commit(store.Delete(b.key("nothing"))) // is no error
	most := make([]store.Write, store.MaxOps)
	conditions := make([]store.Condition, store.MaxOps)
	for i := range most {
		most[i] = store.Put(b.key(fmt.Sprintf("many/%d", i)), nil)
		conditions[i] = store.Absent(most[i].Key)
	}
	if _, err := b.Commit(b.ctx, store.Txn{Conditions: conditions, Writes: most}); err != nil {
		b.Errorf("a transaction of MaxOps conditions and writes: %v", err)
	}
}

func testConditions(b *bench) {
	created := b.put("a", "1")
	modified := b.put("a", "2")
	a, none := b.key("a"), b.key("none")
	for _, test := range []struct {
		name      string
		condition store.Condition
		holds     bool
	}{
		{"unchanged", store.Unchanged(b.get("a")), true},
		{"at its revision", store.At(a, modified), true},
		{"at an older revision", store.At(a, created), false},
		{"at a newer revision", store.At(a, modified+1), false},
		{"at 0, there", store.At(a, 0), false},
		{"at 0, absent", store.At(none, 0), true},
		{"at a revision, absent", store.At(none, modified), false},
		{"created then", store.CreatedAt(a, created), true},
		{"created later", store.CreatedAt(a, modified), false},
		{"created, absent", store.CreatedAt(none, created), false},
		{"absent, there", store.Absent(a), false},
		{"absent", store.Absent(none), true},
		{"exists", store.Exists(a), true},
		{"exists, absent", store.Exists(none), false},
		{"both revisions", store.Condition{Key: a, Created: created, Modified: modified}, true},
		{"both revisions, one wrong", store.Condition{Key: a, Created: created, Modified: created}, false},
		{"both revisions, the other wrong", store.Condition{Key: a, Created: modified, Modified: modified}, false},
		{"exists at a revision", store.Condition{Key: a, Exists: true, Modified: modified}, true},
		{"exists at a wrong revision", store.Condition{Key: a, Exists: true, Modified: created}, false},
	} {
		mark := "mark/" + test.name
		_, err := b.Commit(b.ctx, store.Txn{
			Conditions: []store.Condition{test.condition},
			Writes:     []store.Write{store.Put(b.key(mark), nil)},
		})
		if test.holds {
			if err != nil {
				b.Errorf("%s: %v", test.name, err)
				continue
			}
			b.get(mark)
			continue
		}
		if !errors.Is(err, store.ErrConflict) {
			b.Errorf("%s: %v, want ErrConflict", test.name, err)
		}
		b.absent(mark)
	}
}

func testConflict(b *bench) {
	rev := b.put("a", "")
	b.put("b", "")
	before := b.list(0)
	_, err := b.Commit(b.ctx, store.Txn{
		Conditions: []store.Condition{
			store.At(b.key("a"), rev), store.Absent(b.key("b")), store.Absent(b.key("c")), store.Exists(b.key("d")),
		},
		Writes: []store.Write{store.Put(b.key("a"), []byte("x")), store.Delete(b.key("b")), store.Put(b.key("e"), nil)},
	})
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) || !errors.Is(err, store.ErrConflict) {
		b.Fatalf("got %v, want a *ConflictError", err)
	}
	slices.Sort(conflict.Keys)
	if want := []string{b.key("b"), b.key("d")}; !slices.Equal(conflict.Keys, want) {
		b.Errorf("conflict on %v, want %v", conflict.Keys, want)
	}
	want := replay(before.KVs, nil)
	if d := differs(b.list(0).KVs, want); d != "" {
		b.Errorf("a transaction in conflict wrote something: %s", d)
	}
}

func testMalformed(b *bench) {
	write := store.Put(b.key("a"), nil)
	tooMany := make([]store.Write, store.MaxOps+1)
	tooManyConditions := make([]store.Condition, store.MaxOps+1)
	for i := range tooMany {
		tooMany[i] = store.Put(b.key(fmt.Sprint(i)), nil)
		tooManyConditions[i] = store.Absent(b.key(fmt.Sprint(i)))
	}
	for name, test := range map[string]struct {
		txn  store.Txn
		says string
	}{
		"no writes":       {store.Txn{Conditions: []store.Condition{store.Absent(b.key("b"))}}, "write"},
		"put twice":       {store.Txn{Writes: []store.Write{write, write}}, "twice"},
		"put and deleted": {store.Txn{Writes: []store.Write{write, store.Delete(b.key("a"))}}, "twice"},
		"deleted twice": {
			store.Txn{Writes: []store.Write{store.Delete(b.key("a")), store.Delete(b.key("a"))}},
			"twice",
		},
		"empty condition": {store.Txn{
			Conditions: []store.Condition{{Key: b.key("b")}},
			Writes:     []store.Write{write},
		}, b.key("b")},
		"absent with revision": {store.Txn{
			Conditions: []store.Condition{{Key: b.key("b"), Absent: true, Modified: 1}},
			Writes:     []store.Write{write},
		}, b.key("b")},
		"condition without key": {store.Txn{
			Conditions: []store.Condition{{Absent: true}},
			Writes:     []store.Write{write},
		}, "key"},
		"write without key": {store.Txn{Writes: []store.Write{{Value: []byte("x")}}}, "key"},
		"too many writes":   {store.Txn{Writes: tooMany}, fmt.Sprint(store.MaxOps)},
		"too many conditions": {
			store.Txn{Conditions: tooManyConditions, Writes: []store.Write{write}},
			fmt.Sprint(store.MaxOps),
		},
	} {
		_, err := b.Commit(b.ctx, test.txn)
		switch {
		case err == nil:
			b.Errorf("%s: accepted", name)
		case errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) ||
			errors.Is(err, store.ErrUnknown):
			b.Errorf("%s: taken for a failure of the store: %v", name, err)
		case !strings.Contains(err.Error(), test.says):
			b.Errorf("%s: %q does not say %q", name, err, test.says)
		}
	}
	if kvs := b.list(0).KVs; len(kvs) != 0 {
		b.Errorf("malformed transactions wrote %+v", kvs)
	}
}

// testAtomic moves money between accounts from several goroutines, each on what it read. Nothing is
// lost or made, and every list shows the same sum.
func testAtomic(b *bench) {
	const accounts, movers, moves, each = 4, 6, 25, 1000
	account := func(i int) string { return b.key(fmt.Sprintf("account/%d", i%accounts)) }
	for i := range accounts {
		b.commit(store.Put(account(i), []byte(strconv.Itoa(each))))
	}
	amount := func(kv store.KV) int {
		n, err := strconv.Atoi(string(kv.Value))
		if err != nil {
			b.Error(err)
		}
		return n
	}
	var group sync.WaitGroup
	for m := range movers {
		group.Go(func() {
			for done := 0; done < moves; {
				from, err := b.Get(b.ctx, account(m+done))
				if err != nil {
					b.Error(err)
					return
				}
				to, err := b.Get(b.ctx, account(m+done+1+m%2))
				if err != nil {
					b.Error(err)
					return
				}
				_, err = b.Commit(b.ctx, store.Txn{
					Conditions: []store.Condition{store.Unchanged(from), store.Unchanged(to)},
					Writes: []store.Write{
						store.Put(from.Key, []byte(strconv.Itoa(amount(from)-1))),
						store.Put(to.Key, []byte(strconv.Itoa(amount(to)+1))),
						store.Put(b.key(fmt.Sprintf("moves/%d/%d", m, done)), nil),
					},
				})
				switch {
				case err == nil:
					done++
				case !errors.Is(err, store.ErrConflict):
					b.Error(err)
					return
				}
			}
		})
	}
	finished := make(chan struct{})
	go func() { group.Wait(); close(finished) }()
	for last := false; !last; {
		select {
		case <-finished:
			last = true
		default:
		}
		l, err := b.List(b.ctx, b.key("account/"), 0)
		if err != nil {
			<-finished
			b.Fatal(err)
		}
		sum := 0
		for _, kv := range l.KVs {
			sum += amount(kv)
		}
		if sum != accounts*each {
			b.Errorf("the accounts hold %d at revision %d, want %d", sum, l.Revision, accounts*each)
		}
	}
	l, err := b.List(b.ctx, b.key("moves/"), 0)
	if err != nil {
		b.Fatal(err)
	}
	if len(l.KVs) != movers*moves {
		b.Errorf("%d moves are recorded, want %d", len(l.KVs), movers*moves)
	}
}
