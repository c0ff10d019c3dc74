package providertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// Harness is what the suite must be told of a provider. Every field but Print, Template and
// Patience must be set.
type Harness struct {
	// Open returns a provider ready for use. What the suite makes, it deletes; what Open makes,
	// Open cleans up.
	Open func(*testing.T) provider.Provider
	// Kill ends a machine otherwise than in order, behind the provider's back.
	Kill func(t *testing.T, p provider.Provider, m provider.Machine)
	// Remains returns what is still there of a deleted machine, or "".
	Remains func(p provider.Provider, m provider.Machine) string
	// Print has a machine write to its console; nil for a provider that keeps no console output.
	Print func(t *testing.T, p provider.Provider, m provider.Machine, text string)
	// Remembers: a Create after Delete fails with ErrDeleted. A provider that cannot remember must
	// still make at most one machine.
	Remembers bool

	Template provider.Template // of every machine
	Patience time.Duration     // for a machine to come up or go down; default 30s
}

// Run proves that the provider keeps the contract.
func Run(t *testing.T, h Harness) {
	if h.Open == nil || h.Kill == nil || h.Remains == nil {
		t.Fatal("providertest: Open, Kill and Remains must be set")
	}
	if h.Patience == 0 {
		h.Patience = 30 * time.Second
	}
	for _, c := range []struct {
		name string
		test func(*testing.T, *subject)
	}{
		{"Capabilities", capabilities},
		{"CreateMakesATaggedMachine", createTags},
		{"CreateTwiceMakesOne", createTwice},
		{"CreateAtOnceMakesOne", createAtOnce},
		{"CreateAfterDelete", createAfterDelete},
		{"CreateRefusesAnUnknownZone", unknownZone},
		{"ListIsOfOneShard", listOfOneShard},
		{"ListIsComplete", listComplete},
		{"StopStopsAndKeeps", stopKeeps},
		{"StopTwiceAndOfUnknown", stopAgain},
		{"CrashIsSeen", crashIsSeen},
		{"DeleteLeavesNothing", deleteLeavesNothing},
		{"DeleteTwiceAndOfUnknown", deleteAgain},
		{"DeleteOfAnotherShard", deleteOfAnotherShard},
		{"DeleteAtOnce", deleteAtOnce},
		{"RestartBootsAnew", restartBootsAnew},
		{"RestartOfOneBoot", restartOfOneBoot},
		{"RestartOfStoppedAndCrashed", restartOfDown},
		{"RestartOfUnknown", restartOfUnknown},
		{"ConsoleIsKept", consoleIsKept},
		{"EndedContext", endedContext},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &subject{Harness: h, t: t, p: h.Open(t), shard: "sh" + word()}
			t.Cleanup(func() { s.clear(s.shard) })
			c.test(t, s)
		})
	}
}

// subject is a provider under test, with a shard of its own.
type subject struct {
	Harness
	t     *testing.T
	p     provider.Provider
	shard string
}

func word() string { return strings.ToLower(rand.Text()[:10]) }

// clear deletes what the test left behind.
func (s *subject) clear(shard string) {
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
	defer cancel()
	machines, err := s.p.List(ctx, shard)
	if err != nil {
		s.t.Errorf("list what the test left: %v", err)
	}
	for _, m := range machines {
		if err := s.p.Delete(ctx, shard, m.Instance); err != nil {
			s.t.Errorf("delete what the test left: %v", err)
		}
	}
}

func (s *subject) ctx() context.Context {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.p.Capabilities().CallTimeout)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *subject) request(instance string) provider.CreateRequest {
	return Request(s.shard, instance, s.p.Capabilities().Zones[0], s.Template)
}

// Request is a plausible request for a machine.
func Request(shard, instance, zone string, t provider.Template) provider.CreateRequest {
	return provider.CreateRequest{
		Template: t,
		Zone:     zone,
		Bootstrap: provider.Bootstrap{
			Schema: provider.BootstrapSchema, Instance: instance, Group: "web", Slot: 1, Zone: zone, Shard: shard,
			ShardName:    "test",
			Coordinators: []string{"127.0.0.1:1"}, JoinToken: "token-" + word(),
			ReportInterval: "1s", ReconnectMin: "1s", ReconnectMax: "5s", StopTimeout: "10s",
		},
	}
}

func (s *subject) create(instance string) provider.Machine {
	s.t.Helper()
	m, err := s.p.Create(s.ctx(), s.request(instance))
	if err != nil {
		s.t.Fatalf("Create(%s): %v", instance, err)
	}
	return m
}

func (s *subject) list() []provider.Machine {
	s.t.Helper()
	machines, err := s.p.List(s.ctx(), s.shard)
	if err != nil {
		s.t.Fatalf("List: %v", err)
	}
	return machines
}

// listed is the machine as List has it now.
func (s *subject) listed(instance string) (provider.Machine, bool) {
	s.t.Helper()
	for _, m := range s.list() {
		if m.Instance == instance {
			return m, true
		}
	}
	return provider.Machine{}, false
}

// poll looks until it is done, or fails the test with what it saw last.
func (s *subject) poll(patience time.Duration, look func() (done bool, saw string)) {
	s.t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		done, saw := look()
		if done {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			s.t.Fatal(saw)
		}
	}
}

// await polls List until the machine is as it should be, or fails the test.
func (s *subject) await(instance, what string, ok func(m provider.Machine, listed bool) bool) provider.Machine {
	s.t.Helper()
	var m provider.Machine
	s.poll(s.Patience+s.p.Capabilities().Consistency, func() (bool, string) {
		var listed bool
		m, listed = s.listed(instance)
		return ok(m, listed), fmt.Sprintf("machine %s: want %s; it is listed: %v, as %+v", instance, what, listed, m)
	})
	return m
}

func (s *subject) awaitState(instance string, want provider.State) provider.Machine {
	s.t.Helper()
	return s.await(instance, fmt.Sprintf("state %q", want), func(m provider.Machine, listed bool) bool {
		return listed && m.State == want
	})
}

func (s *subject) awaitGone(instance string) {
	s.t.Helper()
	s.await(instance, "gone", func(_ provider.Machine, listed bool) bool { return !listed })
}

// awaitNothing waits for the last trace of a machine to go.
func (s *subject) awaitNothing(m provider.Machine) {
	s.t.Helper()
	s.poll(s.Patience, func() (bool, string) {
		left := s.Remains(s.p, m)
		return left == "", fmt.Sprintf("machine %s was deleted and leaves %s", m.Instance, left)
	})
}
