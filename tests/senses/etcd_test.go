package senses

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/etcdops"
	"github.com/leasehold/leasehold/tests/stage"
)

// The only member of etcd stands still for longer than a lease, as a virtual machine that is moved.
// On waking it ends leases whose agents live.
//
// proves SAFE-1, SAFE-5, DET-17
func TestEtcdFreezesUnderMany(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2})
	s.Apply("web", *agents)
	before := s.Settle()
	s.Etcd[0].Freeze()
	s.Pass(s.TTL + 8*time.Second)
	s.Etcd[0].Thaw()
	s.AwaitCalm()
	s.NothingDone(before, "etcd stands still for longer than a lease")
	t.Logf("leases of living agents that etcd ended: %d", s.ended(before))
	s.Sees("web")
}

// The watches of all replicas break, and when they would go on where they were, etcd has forgotten
// that.
//
// proves SAFE-3, SAFE-1
func TestWatchIsCompacted(t *testing.T) {
	t.Parallel()
	s := newStage(t, stage.Plan{Replicas: 2, BehindRelay: []string{"a", "b"}})
	s.Apply("web", 40)
	before := s.Settle()
	ctx, cancel := context.WithTimeout(t.Context(), stage.Longest)
	defer cancel()
	const patience = 10 * time.Second
	var since time.Time
	s.Await("replicas whose watch was compacted", func() bool {
		if !slices.ContainsFunc(slices.Collect(maps.Values(s.Replicas)),
			func(r *stage.Program) bool { return !strings.Contains(r.Said(), "revision compacted") }) {
			return true
		}
		if time.Since(since) < patience {
			return false
		}
		// On a slow machine a replica may have given its watch up, and listed again, before etcd had
		// forgotten: once more then.
		for _, way := range s.Ways("way-") {
			way.Kill()
		}
		if _, err := s.members().Compact(ctx, 20); err != nil {
			t.Fatal(err)
		}
		for name := range s.Relays {
			s.RelayAgain(name)
		}
		since = time.Now()
		return false
	})
	s.AwaitCalm()
	s.NothingDone(before, "etcd forgets what a watch has not seen")
	s.Sees("web")
}

// ended returns how many leases of agents etcd has ended since a moment. All of these agents are
// alive.
func (s *scene) ended(since stage.Mark) (n int) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), stage.Longest)
	defer cancel()
	now := s.Mark().Revision
	for batch := range s.Store.Watch(ctx, s.Keys.Of(store.KindAlive), since.Revision+1) {
		if batch.Err != nil {
			s.T.Fatal(batch.Err)
		}
		for _, e := range batch.Events {
			if e.Deleted && e.KV.Modified <= now {
				n++
			}
		}
		if batch.Revision >= now {
			break
		}
	}
	return n
}

// members returns etcd's members, as an operator lists them.
func (s *scene) members() etcdops.Etcd {
	var out etcdops.Etcd
	for i, client := range s.Clients {
		out = append(out, etcdops.Member{Name: fmt.Sprintf("m%d", i), Client: client})
	}
	return out
}
