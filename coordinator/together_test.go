package coordinator_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// crowd has instances be there that wait for their agents, of a group in which nothing is made or
// removed.
func (w *world) crowd(size int) (ids []string) {
	w.t.Helper()
	g := w.group("web", size)
	g.Paused = true
	w.apply(g)
	w.until(time.Minute, "the group is taken up", func() bool { return w.status("web").Accepted != nil })
	spec := g.InstanceSpec()
	var writes []store.Write
	for n := range size {
		id := fmt.Sprintf("web-%d-crowd", n)
		ids = append(ids, id)
		writes = append(writes, store.Put(w.keys.Instance(id), store.Encode(store.Instance{
			Schema: store.Schema, ID: id, Group: "web", Slot: n, Phase: store.Booting, Managed: true, Called: true,
			Since:   time.Now().UTC(),
			Created: time.Now().UTC(), Template: spec.TemplateHash(), Spec: spec, Config: spec.ConfigHash(),
		})))
	}
	w.putAll(writes)
	w.pass(time.Second)
	return ids
}

// register has the agents of instances be heard.
func (w *world) register(ids []string) {
	w.t.Helper()
	var writes []store.Write
	for _, id := range ids {
		writes = append(writes, store.Put(w.keys.Alive(id), store.Encode(w.session(id, 1))))
	}
	w.putAll(writes)
}

func (w *world) session(id string, epoch uint64) store.Alive {
	return store.Alive{
		Schema: store.Schema, Instance: id, Replica: "one", BootID: "boot", Epoch: epoch,
		State: store.StreamOpen, Since: time.Now().UTC(),
	}
}

func (w *world) putAll(writes []store.Write) {
	w.t.Helper()
	for part := range slices.Chunk(writes, store.MaxOps) {
		if _, err := w.store.Commit(w.t.Context(), store.Txn{Writes: part}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// revisions are when the instances were written last, by ID, and how many transactions that took.
// Each has the entry that explains it in the same one.
func (w *world) revisions(rule string) (of map[string]store.Revision, transactions int) {
	w.t.Helper()
	of = map[string]store.Revision{}
	distinct := map[store.Revision]bool{}
	for _, in := range w.instances() {
		of[in.Record.ID], distinct[in.Modified] = in.Modified, true
	}
	told := map[string]int{}
	for _, e := range w.journal() {
		if e.Record.Rule != rule {
			continue
		}
		if told[e.Record.Instance]++; e.Modified != of[e.Record.Instance] {
			w.t.Errorf("%s is told at revision %d, and was at %d", e.Record.Instance, e.Modified, of[e.Record.Instance])
		}
	}
	for id := range of {
		if told[id] != 1 {
			w.t.Errorf("%s is told of %d times", id, told[id])
		}
	}
	return of, len(distinct)
}

// A thousand agents that register at once are taken up by few transactions, and each has its entry
// in the journal.
//
// proves REC-15
func TestAThousandRegisterWithFewTransactions(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		const size = 1000
		w.start("one")
		w.leads(time.Second, "one")
		w.register(w.crowd(size))
		w.until(time.Minute, "all are taken up", func() bool { return w.phases(store.Checking) == size })
		if _, n := w.revisions("DET-11"); n > size/10 {
			t.Errorf("%d transactions for %d instances", n, size)
		}
	})
}

// An agent that changes its session while it is taken up, with others, is taken up a moment later.
// The others do not wait for it.
//
// proves SAFE-4
func TestOneThatIsOvertakenHoldsUpNobody(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		const size, victim = 100, "web-50-crowd"
		var mu sync.Mutex
		var together []string // in the transaction that is about to be tried
		var beside []string   // in the victim's transaction, when its session changed
		tries, seen := 0, false
		var changed store.Revision
		var at time.Time
		w.start("one", before(func(boundary, instance string) {
			mu.Lock()
			defer mu.Unlock()
			switch boundary {
			case "commit DET-11":
				if seen {
					together, seen = nil, false
				}
				together = append(together, instance)
			case "committed DET-11":
				seen = true
				return
			default:
				return
			}
			if instance != victim {
				return
			}
			if tries++; tries > 1 {
				return
			}
			beside, at = slices.Clone(together), time.Now()
			rev, err := w.store.Commit(t.Context(),
				store.Txn{Writes: []store.Write{store.Put(w.keys.Alive(victim), store.Encode(w.session(victim, 2)))}})
			if err != nil {
				t.Error(err)
			}
			changed = rev
		}))
		w.leads(time.Second, "one")
		w.register(w.crowd(size))
		w.until(time.Minute, "all are taken up", func() bool { return w.phases(store.Checking) == size })
		mu.Lock()
		defer mu.Unlock()
		of, n := w.revisions("DET-11")
		if n > size/10 || tries != 3 || len(beside) < 2 {
			t.Errorf("%d transactions for %d instances, %d tries of the victim beside %q", n, size, tries, beside)
		}
		for _, in := range w.instances() {
			id := in.Record.ID
			switch {
			case id == victim:
			case of[id] > of[victim] && slices.Contains(beside, id):
				t.Errorf("%s waited for the victim", id)
			case slices.Contains(beside, id) && (of[id] < changed || in.Record.Since.Sub(at) > time.Millisecond):
				t.Errorf("%s was taken up at revision %d, %s after the victim was overtaken at %d", id, of[id],
					in.Record.Since.Sub(at), changed)
			}
		}
	})
}
