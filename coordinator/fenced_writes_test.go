package coordinator_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// leaderWrites are the kinds of keys that a leader alone writes.
var leaderWrites = []string{
	store.KindServed, store.KindLeader, store.KindStatus, store.KindSlots, store.KindDays, store.KindLoads,
}

// fenceWatch is a replica's store. It notes which of these kinds are written, and what of them is
// written without a comparison with the key in the election.
type fenceWatch struct {
	store.Store
	keys store.Keys

	mu       sync.Mutex
	written  map[string]bool
	unfenced []string
}

func (s *fenceWatch) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	fenced := slices.ContainsFunc(txn.Conditions, func(c store.Condition) bool {
		kind, _, _ := s.keys.Split(c.Key)
		return kind == store.KindLeader && (c.Created != 0 || c.Absent) // absent: it only stands for election
	})
	s.mu.Lock()
	for _, w := range txn.Writes {
		kind, _, _ := s.keys.Split(w.Key)
		if !slices.Contains(leaderWrites, kind) || kind == store.KindLeader && w.Delete {
			continue
		}
		if s.written[kind] = true; !fenced {
			s.unfenced = append(s.unfenced, w.Key)
		}
	}
	s.mu.Unlock()
	return s.Store.Commit(ctx, txn)
}

// Whatever a leader writes beside its decisions compares the key with which it was elected, too:
// the time at which it served last, its claim, the load of groups and the summaries of days. So a
// deposed leader that has not noticed yet cannot spoil what the next one writes.
//
// proves SAFE-7, ELECT-1
func TestEveryWriteOfALeaderIsFenced(t *testing.T) {
	inWorld(t, fake.Config{}, func(w *world) {
		yesterday := w.created(1).AddDate(0, 0, -1)
		w.happened("old", yesterday)
		seen := &fenceWatch{keys: w.keys, written: map[string]bool{}}
		w.start("one", func(_ *coordinator.Config, deps *coordinator.Deps) {
			seen.Store, deps.Store = deps.Store, seen
		})
		w.apply(w.group("web", 2))
		id := w.up(2)[0]
		w.until(time.Hour, "the day is summed up", func() bool { return w.isDone(yesterday) })
		for end := time.Now().Add(17 * time.Minute); time.Now().Before(end); w.pass(7 * time.Second) {
			rec := store.Report{Schema: store.Schema, Instance: id, Received: time.Now()}
			rec.Host.Windows = []store.HostWindow{{
				Span: store.Duration(time.Minute), Covered: store.Duration(time.Minute), CPUPercent: 40,
			}}
			w.put(w.keys.Report(id), store.Encode(rec))
		}
		seen.mu.Lock()
		defer seen.mu.Unlock()
		for _, kind := range leaderWrites {
			if !seen.written[kind] {
				t.Errorf("nothing of %s was written: the test tries too little", kind)
			}
		}
		if len(seen.unfenced) > 0 {
			t.Errorf("written without the fence: %s", seen.unfenced)
		}
	})
}
