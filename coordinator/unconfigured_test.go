package coordinator_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// A provider is taken from every coordinator while one of its machines is silent. Its record ends
// by an operator's word alone. When a coordinator has the provider again, the machine is there
// still: it is shown as one without a record, takes no instance's place, and is removed.
//
// proves PROV-10, REC-8, SAFE-8
func TestAProviderThatNoCoordinatorHas(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		other := fake.NewProvider(quick, fake.Inside{Run: w.runMachine, Address: func(string) string { return "" }})
		defer other.Close()
		has := func(providers map[string]provider.Provider) func(*coordinator.Config, *coordinator.Deps) {
			return func(_ *coordinator.Config, deps *coordinator.Deps) { deps.Providers = providers }
		}
		one := w.start("one")
		w.leads(time.Minute, "one")
		w.apply(w.group("web", 1))
		old := w.up(1)[0]
		w.silence(old)
		one.kill()

		two := w.start("two", has(map[string]provider.Provider{"new": other}))
		w.leads(time.Minute, "two")
		g := w.group("web", 1)
		g.Provider = "new"
		w.apply(g)
		w.until(5*time.Minute, "it is replaced, and cannot be removed", func() bool {
			return len(w.ids()) == 2 && slices.ContainsFunc(w.status("web").Blocked, func(b store.Blocked) bool {
				return b.Kind == store.BlockedByUnconfigured && b.Instance == old && b.Work == store.WorkForget
			})
		})
		w.always(time.Hour, "its silence ends nothing", func() bool { return len(w.ids()) == 2 })
		w.order("gone", store.RequestGone, old)
		w.until(time.Minute, "its record ends", func() bool { return w.settled(1) })
		ids := w.ids()

		w.start("three", has(map[string]provider.Provider{"new": other, "mem": w.provider}))
		w.pass(time.Minute) // agents hear of it
		two.kill()
		w.until(2*time.Minute, "it is shown as a machine without a record", func() bool {
			extras := records[store.Extra](w, store.KindExtras)
			return len(extras) == 1 && extras[0].Record.Instance == old && extras[0].Record.Gone
		})
		w.until(20*time.Minute, "it is removed", func() bool {
			for _, in := range w.instances() { // while it goes it has a record again, in no slot
				if in.Record.ID == old && (in.Record.Phase != store.Deleting || in.Record.Managed) {
					t.Fatalf("it is an instance again: %+v", in.Record)
				}
			}
			return len(w.provider.Existing()) == 0 && slices.Equal(w.ids(), ids) && w.settled(1)
		})
	})
}
