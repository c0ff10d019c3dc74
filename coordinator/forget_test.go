package coordinator

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// A pass that began before etcd was restored ends no lease of the restored journal: revisions of
// one past mean nothing in another.
//
// proves SAFE-12
func TestAPassEndsWithThePastOfEtcd(t *testing.T) {
	for name, restored := range map[string]func(*serving){
		"another cluster": func(s *serving) { s.age(store.Vitals{Cluster: 9, Revision: 2_000}) },
		"older":           func(s *serving) { s.age(store.Vitals{Cluster: 1, Revision: 500}) },
		"marks are gone":  func(s *serving) { s.journal = history{} },
		"not yet noticed": func(s *serving) { s.revision = 5_000 },
		"none":            nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := memstore.New(memstore.Config{})
				defer db.Close()
				keys := store.KeysOf("test")
				r := &Replica{
					keys: keys, cache: cache.New(keys), log: slog.New(slog.DiscardHandler), deps: Deps{Store: db.Connect()},
				}
				r.journal = newJournal(r)
				lease, err := r.deps.Store.Grant(t.Context(), time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				entry := store.PutLeased(keys.Event(time.Now(), "a"), []byte("{}"), lease.ID)
				if _, err := r.deps.Store.Commit(t.Context(), store.Txn{Writes: []store.Write{entry}}); err != nil {
					t.Fatal(err)
				}
				s := &serving{
					t: &term{r: r, log: r.log}, cluster: store.Vitals{Cluster: 1}.ClusterName(), counted: time.Now(),
					journal: history{marks: []store.Mark{{Revision: 1_000, Age: store.Duration(1000 * time.Hour)}}},
				}
				s.forgetting = forgetting{before: 1_000, ended: map[store.LeaseID]bool{0: true}}
				if restored != nil {
					restored(s)
				}
				s.forgetEntries(t.Context())
				_, err = r.deps.Store.Get(t.Context(), entry.Key)
				if gone := err != nil; gone != (restored == nil) {
					t.Errorf("the entry is gone: %t (%v)", gone, err)
				}
			})
		})
	}
}
