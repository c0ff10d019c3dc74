package senses

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold/store"
)

// d. etcd is down for longer than a lease lasts, and comes back on its data.
//
// proves SAFE-1, SAFE-5
func TestEtcdIsDownForLong(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2})
	s.apply("web", crowd())
	before := s.settle()
	s.etcd[0].kill()
	s.pass(s.ttl + 5*time.Second)
	s.startMember(0)
	s.awaitReady(s.etcd[0])
	s.awaitCalm()
	s.nothingDone(before, "etcd is down for longer than a lease")
	s.sees("web")
}

// d. The only member of etcd stands still for longer than a lease, as a virtual machine that is moved. On waking it ends leases
// whose agents live.
//
// proves SAFE-1, SAFE-5, DET-17
func TestEtcdFreezesUnderMany(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2})
	s.apply("web", crowd())
	before := s.settle()
	s.etcd[0].freeze()
	s.pass(s.ttl + 8*time.Second)
	s.etcd[0].thaw()
	s.awaitCalm()
	s.nothingDone(before, "etcd stands still for longer than a lease")
	t.Logf("leases of living agents that etcd ended: %d", s.ended(before))
	s.sees("web")
}

// d. The leader of three members stands still. The others elect another and renewals go on; on waking the deposed one still has
// live leases revoked.
//
// proves SAFE-1, SAFE-5, DET-17
func TestEtcdLeaderFreezes(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2, members: 3})
	s.apply("web", crowd())
	before := s.settle()
	for range 2 {
		leads := s.etcdLeader()
		s.etcd[leads].freeze()
		s.pass(s.ttl + 8*time.Second)
		s.etcd[leads].thaw()
		s.awaitCalm()
		s.nothingDone(before, "etcd's leader, of three members, stands still")
	}
	t.Logf("leases of living agents that etcd ended: %d", s.ended(before))
	s.sees("web")
}

// g. etcd's disk takes no writes for 30 seconds, six leases long.
//
// proves SAFE-1, SAFE-5
func TestDiskStalls(t *testing.T) {
	t.Parallel()
	d := mountDisk(t)
	s := newStage(t, plan{replicas: 2, disk: d.dir})
	s.leave = d.unmount
	s.apply("web", 40)
	before := s.settle()
	d.freeze()
	s.pass(30 * time.Second)
	d.thaw()
	s.awaitCalm()
	s.nothingDone(before, "etcd's disk takes no writes for 30s")
	s.sees("web")
}

// h. The watches of all replicas break, and when they would go on where they were, etcd has forgotten that.
//
// proves SAFE-3, SAFE-1
func TestWatchIsCompacted(t *testing.T) {
	t.Parallel()
	s := newStage(t, plan{replicas: 2, behindRelay: []string{"a", "b"}})
	s.apply("web", 40)
	before := s.settle()
	for _, way := range s.ways("way-") {
		way.kill()
	}
	s.compact(20)
	for name := range s.relays {
		s.relayAgain(name)
	}
	s.await("replicas whose watch was compacted", func() bool {
		for _, r := range s.replicas {
			if !strings.Contains(r.said(), "revision compacted") {
				return false
			}
		}
		return true
	})
	s.awaitCalm()
	s.nothingDone(before, "etcd forgets what a watch has not seen")
	s.sees("web")
}

// ended is how many leases of agents etcd has ended since a moment. All of these agents are alive.
func (s *stage) ended(since mark) (n int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), longest)
	defer cancel()
	now := s.mark().revision
	for batch := range s.st.Watch(ctx, s.keys.Of(store.KindAlive), since.revision+1) {
		if batch.Err != nil {
			s.t.Fatal(batch.Err)
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

// compact writes something a number of times and has etcd forget all that was before.
func (s *stage) compact(writes int) {
	s.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: s.clients, DialTimeout: longest, Logger: zap.NewNop()})
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), longest)
	defer cancel()
	var last int64
	for i := range writes {
		answer, err := client.Put(ctx, "/elsewhere", strconv.Itoa(i))
		if err != nil {
			s.t.Fatal(err)
		}
		last = answer.Header.Revision
	}
	if _, err := client.Compact(ctx, last); err != nil {
		s.t.Fatal(err)
	}
}

// etcdLeader is the member of etcd that leads.
func (s *stage) etcdLeader() int {
	s.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: s.clients, DialTimeout: longest, Logger: zap.NewNop()})
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	leads := -1
	s.await("a leader of etcd", func() bool {
		for i, endpoint := range s.clients {
			ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
			st, err := client.Status(ctx, endpoint)
			cancel()
			if err == nil && st.Header.MemberId == st.Leader {
				leads = i
				return true
			}
		}
		return false
	})
	return leads
}
