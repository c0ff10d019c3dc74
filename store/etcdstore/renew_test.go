package etcdstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

func grant(ctx context.Context, t testing.TB, s *Store, ttl time.Duration) store.Lease {
	t.Helper()
	l, err := s.Grant(ctx, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestRenewExtendsFromBeforeItWasSent(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s := openStore(t, Config{Endpoints: []string{startEtcd(t, t.TempDir(), "127.0.0.1:0").Endpoint()}})
	l := grant(ctx, t, s, 60*time.Second)
	before := time.Now()
	got, err := s.Renew(ctx, l.ID)
	after := time.Now()
	if err != nil || got.ID != l.ID || got.TTL != l.TTL || got.From.Before(before) || got.From.After(after) {
		t.Fatalf("%+v, %v", got, err)
	}
	if end, known := s.renewer.ends.of(l.ID); !known || !end.Equal(got.Ends()) {
		t.Errorf("remembers %v, want %v", end, got.Ends())
	}
	if err := s.Revoke(ctx, l.ID); err != nil {
		t.Fatal(err)
	}
	if _, known := s.renewer.ends.of(l.ID); known {
		t.Error("remembers a lease that was revoked")
	}
	if err := s.Revoke(ctx, l.ID); err != nil {
		t.Errorf("revoked twice: %v", err)
	}
	if _, err := s.Renew(ctx, l.ID); !errors.Is(err, store.ErrLeaseGone) {
		t.Errorf("renewed after it was revoked: %v", err)
	}
}

// Every client that knows a lease's ID can renew it, and many may wait at once.
func TestRenewOfALeaseOfSomebodyElse(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	a, b := openStore(t, Config{Endpoints: []string{server.Endpoint()}}),
		openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	l := grant(ctx, t, a, 60*time.Second)
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if _, err := b.Renew(ctx, l.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := a.Revoke(ctx, l.ID); err != nil {
		t.Fatal(err)
	}
	// b still takes it for alive, and believes etcd.
	for range 2 {
		if _, err := b.Renew(ctx, l.ID); !errors.Is(err, store.ErrLeaseGone) {
			t.Fatalf("got %v", err)
		}
	}
	if end, known := b.renewer.ends.of(l.ID); !known || time.Now().Before(end) {
		t.Error("does not remember that etcd called it gone")
	}
}

// proves DET-2 for the store's part: nothing but Renew renews
func TestALeaseThatNobodyRenewsEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s := openStore(t, Config{Endpoints: []string{startEtcd(t, t.TempDir(), "127.0.0.1:0").Endpoint()}})
	l := grant(ctx, t, s, time.Second)
	if l.TTL < 2*time.Second {
		t.Errorf("granted %s: etcd's minimum is 2s", l.TTL)
	}
	if _, err := s.Renew(ctx, l.ID); err != nil { // the streams run
		t.Fatal(err)
	}
	w := s.Watch(ctx, "/alive/", 1)
	if _, err := s.Commit(ctx, store.Txn{Writes: []store.Write{store.PutLeased("/alive/a", nil, l.ID)}}); err != nil {
		t.Fatal(err)
	}
	events := collect(ctx, t, w, 2)
	if !events[1].Deleted || events[1].KV.Key != "/alive/a" {
		t.Fatalf("got %+v", events)
	}
}

// What our own clock calls ended is not sent: it is refused without a request.
func TestALeaseThatEndedByOurClockIsNotSent(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	between := startProxy(t, server.Endpoint())
	s := openStore(t, Config{Endpoints: []string{between.address()}, RenewStall: limit})
	l := grant(ctx, t, s, 2*time.Second)
	between.freeze(toServer, toClient)
	eventually(t, "the lease has ended", func() bool { return !time.Now().Before(l.Ends()) })
	if _, err := s.Renew(ctx, l.ID); !errors.Is(err, store.ErrLeaseGone) {
		t.Fatalf("got %v", err)
	}
}

func TestRenewAnswersByItsDeadlineWhenEtcdDoesNot(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	between := startProxy(t, server.Endpoint())
	s := openStore(t, Config{Endpoints: []string{between.address()}, RenewStall: 5 * limit})
	l := grant(ctx, t, s, 10*limit)
	if _, err := s.Renew(ctx, l.ID); err != nil {
		t.Fatal(err)
	}
	between.freeze(toServer, toClient)
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	_, err := s.Renew(short, l.ID)
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	// The answer to an abandoned renewal is not taken for the next one's.
	between.thaw()
	before := time.Now()
	got, err := s.Renew(ctx, l.ID)
	if err != nil || got.From.Before(before) {
		t.Fatalf("%+v, %v", got, err)
	}
}

// proves SAFE-1 for the store's part: a frozen etcd is noticed, and renewals go on when it is back
func TestAStreamThatStallsIsOpenedAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	between := startProxy(t, server.Endpoint())
	s := openStore(t, Config{Endpoints: []string{between.address()}, RenewStall: 300 * time.Millisecond})
	l := grant(ctx, t, s, 10*limit)
	if _, err := s.Renew(ctx, l.ID); err != nil {
		t.Fatal(err)
	}
	between.freeze(toServer, toClient)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { // without a deadline near: it is the stall that answers
			if _, err := s.Renew(ctx, l.ID); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	for _, stream := range s.renewer.streams {
		eventually(t, "nothing is kept of what failed", func() bool {
			stream.mu.Lock()
			defer stream.mu.Unlock()
			return stream.sent.head == nil && stream.queued.head == nil && len(stream.owed) == 0
		})
	}
	between.thaw()
	eventually(t, "renewals are answered again", func() bool { _, err := s.Renew(ctx, l.ID); return err == nil })
}

func TestStreamsReopenAfterARestartOfEtcd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir := t.TempDir()
	server := startEtcd(t, dir, "127.0.0.1:0")
	s := openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	var leases []store.Lease
	for range 20 { // some on each stream
		leases = append(leases, grant(ctx, t, s, 10*limit))
	}
	for range 2 {
		for _, l := range leases {
			eventually(t, "renewed", func() bool {
				_, err := s.Renew(ctx, l.ID)
				if err != nil && !errors.Is(err, store.ErrUnavailable) {
					t.Fatal(err)
				}
				return err == nil
			})
		}
		if err := server.Close(); err != nil {
			t.Fatal(err)
		}
		server = startEtcd(t, dir, server.Endpoint())
	}
}

// A third of the leases have ended, and their owners try to renew them without pause.
func TestEndedLeasesDoNotDelayTheLiving(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s := openStore(t, Config{
		Endpoints:  []string{startEtcd(t, t.TempDir(), "127.0.0.1:0").Endpoint()},
		RenewStall: 20 * time.Second,
	})
	const healthy, dead = 2000, 1000
	grantAll := func(n int, ttl time.Duration) []store.Lease {
		leases := make([]store.Lease, n)
		var all sync.WaitGroup
		for g := range 64 {
			all.Go(func() {
				for i := g; i < n; i += 64 {
					leases[i], _ = s.Grant(ctx, ttl)
				}
			})
		}
		all.Wait()
		for _, l := range leases {
			if l.ID == 0 {
				t.Fatal("a lease was not granted")
			}
		}
		return leases
	}
	living := grantAll(healthy, 10*limit)
	ended := grantAll(dead, 2*time.Second)
	last := ended[0].Ends()
	for _, l := range ended {
		if l.Ends().After(last) {
			last = l.Ends()
		}
	}
	eventually(t, "a third has ended", func() bool { return time.Now().After(last) })

	var all sync.WaitGroup
	var worst atomic.Int64
	for g := range 50 {
		all.Go(func() {
			for i := g; i < healthy; i += 50 {
				if i < dead {
					if _, err := s.Renew(ctx, ended[i].ID); !errors.Is(err, store.ErrLeaseGone) {
						t.Errorf("ended lease: %v", err)
					}
				}
				began := time.Now()
				if _, err := s.Renew(ctx, living[i].ID); err != nil {
					t.Errorf("living lease: %v", err)
				}
				if took := int64(time.Since(began)); took > worst.Load() {
					worst.Store(took)
				}
			}
		})
	}
	all.Wait()
	t.Logf("the slowest of %d renewals took %s", healthy, time.Duration(worst.Load()))
}

// BenchmarkRenew keeps 256 renewals under way over 10,000 leases.
func BenchmarkRenew(b *testing.B) {
	s := openStore(b, Config{Endpoints: []string{startEtcd(b, b.TempDir(), "127.0.0.1:0").Endpoint()}})
	ctx := context.Background()
	const n, window = 10_000, 256
	ids := make([]store.LeaseID, n)
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for i := g; i < n; i += 64 {
				l, err := s.Grant(ctx, time.Hour)
				if err != nil {
					b.Error(err)
				}
				ids[i] = l.ID
			}
		})
	}
	all.Wait()
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	for range window {
		all.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(b.N) {
					return
				}
				if _, err := s.Renew(ctx, ids[i%n]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "renewals/s")
}
