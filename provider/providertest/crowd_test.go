package providertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// broken is a provider whose Create fails every third time, and which can be set to break promises.
type broken struct {
	provider.Provider
	twice, leaks, stopped bool

	mu       sync.Mutex
	calls    int
	machines []provider.Machine
}

func (b *broken) Capabilities() provider.Capabilities { return provider.Capabilities{} }

func (b *broken) Create(_ context.Context, req provider.CreateRequest) (provider.Machine, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.calls%3 == 0 {
		return provider.Machine{}, errors.New("not now")
	}
	m := provider.Machine{
		Instance: req.Bootstrap.Instance, Ref: fmt.Sprint("vm-", b.calls), State: provider.StateRunning,
	}
	if b.stopped {
		m.State = provider.StateStopped
	}
	b.machines = append(b.machines, m)
	if b.twice && b.calls == 4 {
		b.machines = append(b.machines, provider.Machine{Instance: m.Instance, Ref: "copy", State: m.State})
	}
	return m, nil
}

func (b *broken) List(context.Context, string) ([]provider.Machine, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]provider.Machine(nil), b.machines...), nil
}

func (b *broken) Delete(_ context.Context, _, instance string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.leaks && instance == "web-7" {
		return nil
	}
	kept := b.machines[:0]
	for _, m := range b.machines {
		if m.Instance != instance {
			kept = append(kept, m)
		}
	}
	b.machines = kept
	return nil
}

// notes collects errors instead of failing.
type notes struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (n *notes) Helper() {}

func (n *notes) Errorf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errors = append(n.errors, fmt.Sprintf(format, args...))
}

// The judge finds violations of the contract, and only those.
func TestACrowdIsJudged(t *testing.T) {
	for _, c := range []struct {
		name     string
		p        *broken
		final    bool // every error ends its call
		says     string
		oneByOne bool
	}{
		{name: "all is well", p: &broken{}},
		{name: "all is well, one by one", p: &broken{}, oneByOne: true},
		{name: "two machines", p: &broken{twice: true}, says: "is listed as"},
		{name: "two machines, one by one", p: &broken{twice: true}, says: "is listed as", oneByOne: true},
		{name: "a machine that stays", p: &broken{leaks: true}, says: "1 machines are left"},
		{name: "a machine that stays, one by one", p: &broken{leaks: true}, says: "after its removal", oneByOne: true},
		{name: "machines that do not run", p: &broken{stopped: true}, says: "is listed as"},
		{name: "an error that ends a call", p: &broken{}, final: true, says: "that would end it: not now"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crowd := Crowd{
					Leaders: []provider.Provider{c.p, c.p}, Machines: 20, AtOnce: 4, OneByOne: c.oneByOne,
					Pauses:  map[provider.Kind]time.Duration{provider.Temporary: time.Second},
					Timeout: time.Minute, Settle: time.Second, Meter: new(Meter),
					Request: func(id string, _ int) provider.CreateRequest {
						return Request("s", id, "a", provider.Template{})
					},
					There: func() int { return len(c.p.machines) },
				}
				if c.final {
					crowd.Pauses = nil
				}
				saw := &notes{TB: t}
				figures := crowd.Run(saw)
				all := strings.Join(saw.errors, "\n")
				if c.says == "" && all != "" || !strings.Contains(all, c.says) {
					t.Errorf("it says %q, want %q", all, c.says)
				}
				if (figures.Doubles > 0) != c.p.twice || (figures.Left > 0) != c.p.leaks {
					t.Errorf("%s", figures)
				}
			})
		})
	}
}

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Meter
		for range 3 {
			m.Add()
			m.Add()
			<-time.After(30 * time.Second)
		}
		if m.Count() != 6 || m.Busiest(time.Minute) != 4 || m.Busiest(time.Hour) != 6 {
			t.Errorf("%d, %d, %d", m.Count(), m.Busiest(time.Minute), m.Busiest(time.Hour))
		}
	})
}
