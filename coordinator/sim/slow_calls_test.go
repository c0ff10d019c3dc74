package sim_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// The records of removed machines end although no call of the provider is ever answered within its
// time-out: the Lists, which are answered, show that the machines are gone.
//
// proves SAFE-8
func TestRecordsEndThoughNoCallIsAnsweredInTime(t *testing.T) {
	slow := sim.Provider{
		Name: "cloud", Config: fake.Config{
			Call: fake.Between(40*time.Second, 60*time.Second), CallTimeout: 30 * time.Second,
		},
	}
	for seed := range uint64(5) {
		w := sim.New(sim.Config{
			Seed: seed, Providers: []sim.Provider{slow},
			Groups: []store.Group{web(4)},
		})
		w.RunUntil(sim.Epoch.Add(10 * time.Minute))
		if n := w.Working("web"); n != 4 {
			t.Fatalf("seed %d: %d of 4 work after 10 minutes", seed, n)
		}
		w.Edit("web", func(g *store.Group) { g.Size = 1 })
		w.RunUntil(w.Now().Add(15 * time.Minute))
		if ids := w.Instances(); len(ids) != 1 || len(w.Machines()) != 1 {
			t.Errorf("seed %d: records %v and machines %v are left, want one of each", seed, ids, w.Machines())
		}
	}
}
