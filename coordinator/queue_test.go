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

// A provider whose calls all hang holds up its own machines alone.
//
// proves REC-9
func TestProviderThatHangsHoldsUpNoOther(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		stuck := fake.NewProvider(quick, fake.Inside{})
		defer stuck.Close()
		stuck.Inject(fake.Fault{Call: fake.CallCreate, Hang: true})
		stuck.Inject(fake.Fault{Call: fake.CallStop, Hang: true})
		w.start("one", func(_ *coordinator.Config, d *coordinator.Deps) {
			d.Providers = map[string]provider.Provider{"mem": w.provider, "stuck": stuck}
		})
		w.leads(time.Second, "one")
		other := w.group("aside", 40) // more than may be called for at once
		other.Provider = "stuck"
		other.Budget.MaxCreating = 0
		w.apply(other)
		w.until(10*time.Second, "its calls hang", func() bool { return stuck.MostAtOnce() == 8 })
		w.apply(w.group("web", 3))
		running := func() int {
			n := 0
			for _, in := range w.instances() {
				if in.Record.Group == "web" && in.Record.Phase == store.Running {
					n++
				}
			}
			return n
		}
		if took := w.until(time.Minute, "the others run",
			func() bool { return running() == 3 }); took > 20*time.Second {
			t.Errorf("it took %s, half a call that hangs", took)
		}
		gone := w.provider.Existing()[0]
		w.provider.Crash(gone, "exit 1")
		if took := w.until(time.Minute, "a dead one is replaced", func() bool {
			return running() == 3 && !slices.Contains(w.provider.Existing(), gone)
		}); took > 20*time.Second {
			t.Errorf("the replacement took %s, half a call that hangs", took)
		}
		if n := stuck.MostAtOnce(); n != 8 {
			t.Errorf("%d calls were under way at once to the provider that hangs", n)
		}
		stuck.Heal()
		w.until(10*time.Minute, "nothing was dropped", func() bool { return len(stuck.Existing()) == 40 })
	})
}

// What waits by a slow rate goes on by a faster one as soon as that is set.
//
// proves REC-3
func TestCreateRateIsThePresentOne(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		set := func(rate float64, burst int) {
			w.editShard(func(s *store.Shard) { s.Settings.CreateRate, s.Settings.CreateBurst = rate, burst })
		}
		set(0.01, 1)
		w.start("one")
		w.leads(time.Second, "one")
		w.apply(w.group("web", 20))
		w.until(time.Minute, "one is made", func() bool { return w.made() == 1 })
		w.always(time.Minute, "no other is", func() bool { return w.made() == 1 })
		set(10, 10)
		if took := w.until(10*time.Minute, "all are made",
			func() bool { return w.made() == 20 }); took > 10*time.Second {
			t.Errorf("20 creations at 10 a second took %s", took)
		}
		set(0.01, 1)
		w.pass(2 * time.Second)
		w.apply(w.group("web", 30))
		w.always(time.Minute, "the slow rate is kept again", func() bool { return w.made() <= 21 })
	})
}

// However slow the shard's rate is, the providers that share it take turns: a long queue of one
// starves no other.
//
// proves REC-9
func TestProvidersShareTheRate(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.CreateRate, s.Settings.CreateBurst = 0.1, 1 })
		second := fake.NewProvider(quick, fake.Inside{})
		defer second.Close()
		w.start("one", func(_ *coordinator.Config, d *coordinator.Deps) {
			d.Providers = map[string]provider.Provider{"mem": w.provider, "second": second}
		})
		w.leads(time.Second, "one")
		for name, p := range map[string]string{"web": "mem", "aside": "second"} {
			g := w.group(name, 40)
			g.Provider = p
			g.Budget.MaxCreating = 0
			w.apply(g)
		}
		w.until(10*time.Minute, "20 are made",
			func() bool { return len(w.provider.Existing())+len(second.Existing()) >= 20 })
		if a, b := len(w.provider.Existing()), len(second.Existing()); a < 9 || b < 9 {
			t.Errorf("one provider has made %d machines, the other %d", a, b)
		}
	})
}
