package coordinator_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
)

// copying is a provider that may list several machines for an instance.
type copying struct {
	*fake.Provider
	mu      sync.Mutex
	calls   map[string]string // the last call of Create, by instance
	copies  []provider.Machine
	removed []string // refs
}

func (p *copying) Capabilities() provider.Capabilities {
	c := p.Provider.Capabilities()
	c.Copies = true
	return c
}

func (p *copying) Create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	p.mu.Lock()
	p.calls[req.Bootstrap.Instance] = req.Call
	p.mu.Unlock()
	return p.Provider.Create(ctx, req)
}

func (p *copying) List(ctx context.Context, shard string) ([]provider.Machine, error) {
	list, err := p.Provider.List(ctx, shard)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range list {
		list[i].Call = p.calls[list[i].Instance]
	}
	return append(list, p.copies...), err
}

func (p *copying) RemoveCopy(_ context.Context, _, _, ref, call string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed = append(p.removed, ref)
	p.copies = slices.DeleteFunc(p.copies, func(m provider.Machine) bool { return m.Ref == ref && m.Call == call })
	return nil
}

// copy lists one more machine of an instance.
func (p *copying) copy(m provider.Machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.copies = append(p.copies, m)
}

// gone are the refs of the copies that were removed.
func (p *copying) gone() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.removed)
}

// A machine that one of our calls made beside the one that registered is removed, once, and the
// instance goes on. A copy that somebody made of it is left alone and told of. What a copy is in
// tells nothing of the instance.
//
// proves PROV-4, SAFE-1, SAFE-8
func TestSeveralMachinesOfOneInstance(t *testing.T) {
	inWorld(t, fake.Config{Boot: time.Second, Consistency: 3 * time.Second}, func(w *world) {
		p := &copying{Provider: w.provider, calls: map[string]string{}}
		w.start("one", w.secured(), func(_ *coordinator.Config, deps *coordinator.Deps) {
			deps.Providers = map[string]provider.Provider{"mem": p}
		})
		w.apply(w.group("web", 2))
		w.until(time.Minute, "both run", func() bool { return w.settled(2) })
		ids := w.ids()
		of := func(id, ref, call string, state provider.State) provider.Machine {
			return provider.Machine{Instance: id, Group: "web", Ref: ref, Zone: "a", State: state, Call: call}
		}

		p.copy(of(ids[0], "made-in-vain", "another-call", provider.StateCrashed))
		w.until(time.Minute, "it is removed", func() bool { return len(p.gone()) == 1 })
		p.copy(of(ids[1], "by-hand", p.calls[ids[1]], provider.StateCrashed))
		w.until(time.Minute, "the copy is told of", func() bool { return len(w.status("web").Blocked) == 1 })
		if b := w.status("web").Blocked[0]; b.Rule != "PROV-4" || b.Instance != ids[1] || !strings.Contains(b.Why, "by-hand") {
			t.Errorf("blocked: %+v", b)
		}
		w.always(5*time.Minute, "the instances run on", func() bool { return slices.Equal(w.ids(), ids) && w.settled(2) })
		if got := p.gone(); !slices.Equal(got, []string{"made-in-vain"}) {
			t.Errorf("removed: %v", got)
		}
		told := 0
		for _, e := range w.journal() {
			if e.Record.Rule == "PROV-4" && e.Record.Instance == ids[0] && strings.Contains(e.Record.What, "made-in-vain") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("the journal tells of the removal %d times", told)
		}
	})
}
