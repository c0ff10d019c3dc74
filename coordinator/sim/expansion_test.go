package sim_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// However slowly machines are removed, a roll and healing never have more of them at once than size
// and max_expansion allow: a machine that is being deleted counts until it is gone. Dead instances
// are in addition, because their replacements wait for no budget.
//
// proves REC-18, HEAL-2, HEAL-3
func TestMachinesAtOnceStayWithinSizeAndExpansion(t *testing.T) {
	const size, expansion = 12, 1
	var w *sim.World
	most, dead := 0, 0
	g := web(size)
	g.Budget.MaxExpansion, g.StopTimeout = expansion, store.Duration(30*time.Second)
	w = sim.New(sim.Config{
		Seed: 1, Groups: []store.Group{g},
		Providers: []sim.Provider{{
			Name: "cloud", Config: fake.Config{Call: fake.Between(10*time.Second, 20*time.Second)},
		}},
		Observer: sim.Observer{Machine: func(_ time.Time, m sim.Machine) {
			if m.Event != fake.Made || w == nil {
				return
			}
			most = max(most, len(w.Machines()))
			if n := len(w.Machines()); n > size+expansion+dead {
				t.Errorf("%d machines at once, with size %d, max_expansion %d and %d dead", n, size, expansion, dead)
			}
		}},
	})
	w.RunUntil(sim.Epoch.Add(5 * time.Minute))
	w.Edit("web", func(g *store.Group) { g.Template.InstanceType = "large" })
	w.RunUntil(w.Now().Add(time.Hour))
	if n := w.Working("web"); n != size || most != size+expansion {
		t.Fatalf("%d of %d work after the roll, and at most %d machines were there at once", n, size, most)
	}
	for _, id := range w.Machines()[:5] {
		w.Kill(id)
	}
	dead = 5
	w.RunUntil(w.Now().Add(2 * time.Minute)) // less than it takes to remove the dead one after the other
	if n := w.Working("web"); n != size {
		t.Errorf("%d of %d work two minutes after five died: their replacements wait for no budget", n, size)
	}
}
