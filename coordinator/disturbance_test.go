package coordinator

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// proves SAFE-1
func TestCompareVitals(t *testing.T) {
	was := store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 500}
	for _, c := range []struct {
		name  string
		now   store.Vitals
		what  string
		known store.Vitals
	}{
		{"nothing new", was, "", was},
		{
			"the revision grows",
			store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 501},
			"",
			store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 501},
		},
		{
			"a member that knows no leader",
			store.Vitals{Cluster: 7, Term: 12, Revision: 501},
			"",
			store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 501},
		},
		{
			"a member that stands for election, alone",
			store.Vitals{Cluster: 7, Term: 13, Revision: 501},
			"",
			store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 501},
		},
		{
			"a member that has not heard of the election",
			store.Vitals{Cluster: 7, Leader: 2, Term: 11, Revision: 501},
			"",
			store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 501},
		},
		{
			"another leader",
			store.Vitals{Cluster: 7, Leader: 2, Term: 13, Revision: 500},
			"etcd changed its leader",
			store.Vitals{Cluster: 7, Leader: 2, Term: 13, Revision: 500},
		},
		{
			"another leader, of the same term",
			store.Vitals{Cluster: 7, Leader: 2, Term: 12, Revision: 500},
			"etcd changed its leader",
			store.Vitals{Cluster: 7, Leader: 2, Term: 12, Revision: 500},
		},
		{
			"the same leader, elected again",
			store.Vitals{Cluster: 7, Leader: 3, Term: 13, Revision: 500},
			"etcd held an election",
			store.Vitals{Cluster: 7, Leader: 3, Term: 13, Revision: 500},
		},
		{
			"another cluster",
			store.Vitals{Cluster: 8, Leader: 3, Term: 12, Revision: 500},
			"etcd is another cluster than before",
			store.Vitals{Cluster: 8, Leader: 3, Term: 12, Revision: 500},
		},
		{
			"another cluster, of which all is new",
			store.Vitals{Cluster: 8, Leader: 1, Term: 2, Revision: 9},
			"etcd is another cluster than before",
			store.Vitals{Cluster: 8, Leader: 1, Term: 2, Revision: 9},
		},
		{
			"another cluster, without a leader yet",
			store.Vitals{Cluster: 8, Term: 2, Revision: 9},
			"etcd is another cluster than before",
			store.Vitals{Cluster: 8, Term: 2, Revision: 9},
		},
		{
			"the revision goes backwards",
			store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 499},
			"etcd's revision went backwards",
			store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 499},
		},
		{
			"the revision goes backwards, by the word of one that knows less",
			store.Vitals{Cluster: 7, Term: 11, Revision: 499},
			"etcd's revision went backwards",
			store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 499},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			known, what := compareVitals(was, c.now)
			if what != c.what || known != c.known {
				t.Errorf("%q and %+v, want %q and %+v", what, known, c.what, c.known)
			}
		})
	}
	for name, first := range map[string]store.Vitals{
		"first answer": was,
		"first answer, by one that knows no leader": {Cluster: 7, Term: 12, Revision: 500},
	} {
		if known, what := compareVitals(store.Vitals{}, first); what != "" || known != first {
			t.Errorf("%s: %q and %+v", name, what, known)
		}
	}
}

// What is borne leaves every agent time for the report that it owes, which is due after a third of
// its lease, and for one more.
//
// proves SAFE-1
func TestAStallIsBorneThatNoLeaseCanEndBy(t *testing.T) {
	for shortest, want := range map[time.Duration]time.Duration{
		0: time.Second, 5 * time.Second: time.Second, 16 * time.Second: 2 * time.Second,
		32 * time.Second: 4 * time.Second, time.Hour: 5 * time.Second,
	} {
		got := bearable(shortest)
		if got != want {
			t.Errorf("with a lease of %s: %s, want %s", shortest, got, want)
		}
		if shortest > 0 && got > shortest/3 {
			t.Errorf("with a lease of %s: %s, while two reports may take %s", shortest, got, shortest*2/3)
		}
	}
}

// stallingStore is a store that does nothing but say how it is, after a stall if there is one.
type stallingStore struct {
	store.Store
	stall func()
}

func (s *stallingStore) Vitals(context.Context) (store.Vitals, error) {
	s.stall()
	return store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 500}, nil
}

// A stall is measured by the leases that it may have ended, which need not be served any more when
// it is over. Later stalls are not.
//
// proves SAFE-1
func TestAStallCountsForLeasesThatItEnded(t *testing.T) {
	const short, long = 5 * time.Second, time.Hour
	for name, c := range map[string]struct {
		before, begins, ends time.Duration // the shortest lease as etcd is asked, and while it stalls
		first, second        int           // disturbances by then
	}{
		"a long lease stays":                     {long, long, long, 0, 0},
		"a short lease stays":                    {short, short, short, 1, 2},
		"a short lease ends":                     {short, short, long, 1, 1},
		"a short lease ends before the question": {short, long, long, 1, 1},
		"a short lease comes and ends":           {long, short, long, 1, 1},
		"the only lease is a long one that ends": {long, long, 0, 1, 2},
		"a short lease begins":                   {long, long, short, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var shortest atomic.Int64
				shortest.Store(int64(c.before))
				asked, stalls := 0, map[int]bool{5: true, 10: true}
				var at []int
				r := &Replica{log: slog.New(slog.DiscardHandler), publish: make(chan struct{}, 1), known: &knowledge{}}
				r.cache = cache.New(store.KeysOf("shop"))
				r.deps = Deps{Meter: Unmetered{}, Store: &stallingStore{stall: func() {
					asked++
					if !stalls[asked] {
						return
					}
					at = append(at, r.disturbances)
					<-time.After(1500 * time.Millisecond)
					shortest.Store(int64(c.ends))
				}}}
				ctx, cancel := context.WithCancel(t.Context())
				var watching sync.WaitGroup
				watching.Go(func() { r.watchVitals(ctx, func() time.Duration { return time.Duration(shortest.Load()) }) })
				<-time.After(3500 * time.Millisecond) // etcd has answered four times
				shortest.Store(int64(c.begins))
				<-time.After(30 * time.Second)
				cancel()
				watching.Wait()
				if len(at) != 2 || at[0] != 0 || at[1] != c.first || r.disturbances != c.second {
					t.Errorf("%v disturbances as etcd stalled, %d at the end, want %d and %d", at, r.disturbances, c.first, c.second)
				}
			})
		})
	}
}

// A stall is noticed though the replica's own disk hangs, as it does where etcd is on the same.
//
// proves SAFE-1
func TestAStallIsNoticedWhileTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		var stalls atomic.Bool
		known := &knowledge{path: "known.json", now: Known{ShardID: "s"}, write: func(string, []byte) error {
			<-hung
			return nil
		}}
		r := &Replica{log: slog.New(slog.DiscardHandler), publish: make(chan struct{}, 1), known: known}
		r.cache = cache.New(store.KeysOf("shop"))
		r.deps = Deps{Meter: Unmetered{}, Store: &stallingStore{stall: func() {
			if stalls.CompareAndSwap(true, false) {
				<-time.After(30 * time.Second)
			}
		}}}
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { r.watchVitals(ctx, func() time.Duration { return time.Hour }) })
		<-time.After(2 * knownSavedEvery)
		synctest.Wait()
		stalls.Store(true) // by now the disk hangs
		<-time.After(time.Minute)
		synctest.Wait()
		if r.disturbances != 1 {
			t.Errorf("%d disturbances", r.disturbances)
		}
		close(hung)
		cancel()
		watching.Wait()
	})
}

// What one member did not know yet is news once, from whichever member it comes first.
//
// proves SAFE-1
func TestAnElectionIsOneDisturbance(t *testing.T) {
	old, elected := store.Vitals{Cluster: 7, Leader: 3, Term: 12, Revision: 500},
		store.Vitals{Cluster: 7, Leader: 2, Term: 13, Revision: 500}
	between := store.Vitals{Cluster: 7, Term: 13, Revision: 500}
	known, told := old, 0
	for _, answer := range []store.Vitals{old, between, old, elected, between, old, elected, old, elected} {
		var what string
		if known, what = compareVitals(known, answer); what != "" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
