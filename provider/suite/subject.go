package suite

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/proof"
)

// subject is a provider under test, with a shard of its own.
type subject struct {
	Harness
	*findings
	base   context.Context
	opened provider.Provider // as Open returned it
	p      provider.Provider // the same, with waits while it is throttled
	shard  string
	word   string // of the IDs in this case
}

// findings are the results of a case, and its cleanup.
type findings struct {
	proof.Findings
	mu      sync.Mutex
	shards  []string
	cancels []context.CancelFunc
}

// instance returns an ID of this case, which is new to every provider.
func (s *subject) instance(n int) string { return fmt.Sprintf("%s-%d", s.word, n) }

func (s *subject) zone() string {
	if len(s.Template.Zones) > 0 {
		return s.Template.Zones[0]
	}
	return s.p.Capabilities().Zones[0]
}

// ofAnotherShard returns the same provider for an unrelated shard.
func (s *subject) ofAnotherShard() *subject {
	other := *s
	other.shard = "sh" + proof.Word()
	s.shards = append(s.shards, other.shard)
	return &other
}

// clear deletes the case's machines, even if the suite is interrupted.
func (s *subject) clear(shard string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.base), s.Patience+s.p.Capabilities().CallTimeout)
	defer cancel()
	machines, err := s.p.List(ctx, shard)
	if err != nil {
		s.Errorf("list what the case left: %v", err)
	}
	for _, m := range machines {
		if err := s.p.Delete(ctx, shard, m.Instance); err != nil {
			s.Errorf("delete what the case left: %v", err)
		}
	}
}

// ctx returns the context of one call.
func (s *subject) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.base, s.p.Capabilities().CallTimeout)
	s.mu.Lock()
	s.cancels = append(s.cancels, cancel)
	s.mu.Unlock()
	return ctx
}

func (s *subject) request(instance string) provider.CreateRequest {
	return Request(s.shard, instance, s.zone(), s.Template)
}

// Request returns a plausible request for a machine.
func Request(shard, instance, zone string, t provider.Template) provider.CreateRequest {
	return provider.CreateRequest{
		Template: t,
		Zone:     zone,
		Call:     proof.Word(),
		Bootstrap: provider.Bootstrap{
			Schema: provider.BootstrapSchema, Instance: instance, Group: "web", Slot: 1, Zone: zone, Shard: shard,
			ShardName:    "test",
			Coordinators: []string{"127.0.0.1:1"}, JoinToken: "token-" + proof.Word(),
			ReportInterval: "1s", ReconnectMin: "1s", ReconnectMax: "5s", StopTimeout: "10s",
		},
	}
}

func (s *subject) create(instance string) provider.Machine {
	m, err := s.p.Create(s.ctx(), s.request(instance))
	if s.Created != nil {
		s.Created(err)
	}
	if err != nil {
		s.Fatalf("Create(%s): %v", instance, err)
	}
	return m
}

// kill ends a machine behind the provider's back. If the harness cannot do that, the case ends as
// not proved.
func (s *subject) kill(m provider.Machine) {
	if s.Kill == nil {
		s.Unproved("nothing here ends a machine behind the provider's back")
		runtime.Goexit()
	}
	if err := s.Kill(m); err != nil {
		s.Fatalf("kill machine %s: %v", m.Instance, err)
	}
}

func (s *subject) list() []provider.Machine {
	machines, err := s.p.List(s.ctx(), s.shard)
	if err != nil {
		s.Fatalf("List: %v", err)
	}
	return machines
}

// listed returns the machine as List shows it now.
func (s *subject) listed(instance string) (provider.Machine, bool) {
	for _, m := range s.list() {
		if m.Instance == instance {
			return m, true
		}
	}
	return provider.Machine{}, false
}

// poll repeats a look until it is done, or fails the case with the last observation.
func (s *subject) poll(patience time.Duration, look func() (done bool, saw string)) {
	s.Await(s.base, s.Poll, patience, look)
}

// await polls List until the machine meets a condition, or fails the case.
func (s *subject) await(instance, what string, ok func(m provider.Machine, listed bool) bool) provider.Machine {
	var m provider.Machine
	s.poll(s.Patience+s.p.Capabilities().Consistency, func() (bool, string) {
		var listed bool
		m, listed = s.listed(instance)
		return ok(m, listed), fmt.Sprintf("machine %s: want %s; it is listed: %v, as %+v", instance, what, listed, m)
	})
	return m
}

func (s *subject) awaitState(instance string, want provider.State) provider.Machine {
	return s.await(instance, fmt.Sprintf("state %q", want), func(m provider.Machine, listed bool) bool {
		return listed && m.State == want
	})
}

func (s *subject) awaitDown(instance string) provider.Machine {
	return s.await(instance, "down", func(m provider.Machine, listed bool) bool { return listed && m.State.Down() })
}

func (s *subject) awaitGone(instance string) {
	s.await(instance, "gone", func(_ provider.Machine, listed bool) bool { return !listed })
}

// awaitNothing waits until nothing remains of a machine.
func (s *subject) awaitNothing(m provider.Machine) {
	if s.Remains == nil {
		return
	}
	s.poll(s.Patience, func() (bool, string) {
		left := s.Remains(m)
		return left == "", fmt.Sprintf("machine %s was deleted and leaves %s", m.Instance, left)
	})
}
