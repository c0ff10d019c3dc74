package providertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

func capabilities(t *testing.T, s *subject) {
	c := s.p.Capabilities()
	if len(c.Zones) == 0 {
		t.Error("Zones is empty")
	}
	if c.CallTimeout <= 0 || c.Consistency < 0 {
		t.Errorf("CallTimeout %s, Consistency %s", c.CallTimeout, c.Consistency)
	}
	if err := s.p.Validate(provider.Template{Zones: c.Zones}); err != nil {
		t.Errorf("Validate refuses the provider's own zones: %v", err)
	}
}

func createTags(t *testing.T, s *subject) {
	m := s.create("i1")
	if m.Instance != "i1" || m.Shard != s.shard || m.Group != "web" || m.Zone != s.p.Capabilities().Zones[0] ||
		m.Ref == "" {
		t.Errorf("Create returned %+v", m)
	}
	l := s.awaitState("i1", provider.StateRunning)
	if l.Instance != "i1" || l.Shard != s.shard || l.Group != "web" || l.Zone != m.Zone || l.Ref != m.Ref {
		t.Errorf("listed as %+v, created as %+v", l, m)
	}
}

// proves SAFE-8
func createTwice(t *testing.T, s *subject) {
	first := s.create("i1")
	running := s.awaitState("i1", provider.StateRunning)
	second := s.create("i1") // with another token
	if first.Ref != second.Ref {
		t.Errorf("two machines: %s and %s", first.Ref, second.Ref)
	}
	if second.BootID != running.BootID {
		t.Errorf("the second Create booted it again: %q, then %q", running.BootID, second.BootID)
	}
	if got := s.list(); len(got) != 1 {
		t.Errorf("listed %d machines: %+v", len(got), got)
	}
}

// proves SAFE-8
func createAtOnce(t *testing.T, s *subject) {
	const callers = 8
	refs := make([]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		ctx, req := s.ctx(), s.request("i1")
		wg.Go(func() {
			m, err := s.p.Create(ctx, req)
			if err != nil {
				t.Errorf("Create: %v", err)
			}
			refs[i] = m.Ref
		})
	}
	wg.Wait()
	for _, ref := range refs {
		if ref != refs[0] {
			t.Errorf("several machines: %q", refs)
			break
		}
	}
	s.awaitState("i1", provider.StateRunning)
	if got := s.list(); len(got) != 1 {
		t.Errorf("listed %d machines: %+v", len(got), got)
	}
}

// proves SAFE-8
func createAfterDelete(t *testing.T, s *subject) {
	s.create("i1")
	if err := s.p.Delete(s.ctx(), s.shard, "i1"); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	_, err := s.p.Create(s.ctx(), s.request("i1"))
	if s.Remembers && !errors.Is(err, provider.ErrDeleted) {
		t.Errorf("Create after Delete: %v, want ErrDeleted", err)
	}
	if err != nil && !errors.Is(err, provider.ErrDeleted) {
		t.Errorf("Create after Delete: %v", err)
	}
	if err != nil {
		s.awaitGone("i1")
	}
	if !s.Remembers {
		return
	}
	// A Create that comes only after the Delete of an ID that had no machine yet.
	if err := s.p.Delete(s.ctx(), s.shard, "i2"); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if _, err := s.p.Create(s.ctx(), s.request("i2")); !errors.Is(err, provider.ErrDeleted) {
		t.Errorf("Create that comes late: %v, want ErrDeleted", err)
	}
}

func unknownZone(t *testing.T, s *subject) {
	req := s.request("i1")
	req.Zone = "no-such-zone"
	if _, err := s.p.Create(s.ctx(), req); !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("Create in an unknown zone: %v, want ErrInvalid", err)
	}
	if err := s.p.Validate(provider.Template{Zones: []string{"no-such-zone"}}); !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("Validate of an unknown zone: %v, want ErrInvalid", err)
	}
	if got := s.list(); len(got) != 0 {
		t.Errorf("listed %+v", got)
	}
}

// proves SAFE-12
func listOfOneShard(t *testing.T, s *subject) {
	other := &subject{Harness: s.Harness, t: t, p: s.p, shard: "sh" + word()}
	t.Cleanup(func() { other.clear(other.shard) })
	s.create("i1")
	other.create("i2")
	s.awaitState("i1", provider.StateRunning)
	other.awaitState("i2", provider.StateRunning)
	if got := s.list(); len(got) != 1 || got[0].Instance != "i1" {
		t.Errorf("listed %+v, want i1 alone", got)
	}
	if got := other.list(); len(got) != 1 || got[0].Instance != "i2" {
		t.Errorf("listed %+v, want i2 alone", got)
	}
}

func listComplete(t *testing.T, s *subject) {
	if got := s.list(); len(got) != 0 {
		t.Fatalf("a new shard has machines: %+v", got)
	}
	const n = 5
	var wg sync.WaitGroup
	for i := range n {
		ctx, req := s.ctx(), s.request(fmt.Sprintf("i%d", i))
		wg.Go(func() {
			if _, err := s.p.Create(ctx, req); err != nil {
				t.Errorf("Create: %v", err)
			}
		})
	}
	wg.Wait()
	for i := range n {
		s.awaitState(fmt.Sprintf("i%d", i), provider.StateRunning)
	}
	if err := s.p.Stop(s.ctx(), s.shard, "i0", 10*time.Second); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	if got := s.list(); len(got) != n {
		t.Errorf("listed %d machines, want all %d, the stopped one too: %+v", len(got), n, got)
	}
}

// proves HEAL-14
func stopKeeps(t *testing.T, s *subject) {
	s.create("i1")
	s.awaitState("i1", provider.StateRunning)
	if err := s.p.Stop(s.ctx(), s.shard, "i1", 10*time.Second); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	s.awaitState("i1", provider.StateStopped)
	// A Create that is repeated after that must not bring it up again.
	if m := s.create("i1"); !m.State.Down() {
		t.Errorf("Create of a stopped machine: %+v", m)
	}
}

func stopAgain(t *testing.T, s *subject) {
	if err := s.p.Stop(s.ctx(), s.shard, "i0", 10*time.Second); err != nil {
		t.Errorf("Stop of what never was: %v", err)
	}
	s.create("i1")
	for range 2 {
		if err := s.p.Stop(s.ctx(), s.shard, "i1", 10*time.Second); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	if err := s.p.Delete(s.ctx(), s.shard, "i1"); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if err := s.p.Stop(s.ctx(), s.shard, "i1", 10*time.Second); err != nil {
		t.Errorf("Stop of what is gone: %v", err)
	}
}

// proves DET-4
func crashIsSeen(t *testing.T, s *subject) {
	s.create("i1")
	m := s.awaitState("i1", provider.StateRunning)
	s.Kill(t, s.p, m)
	got := s.await("i1", "crashed or failed", func(m provider.Machine, listed bool) bool {
		return listed && (m.State == provider.StateCrashed || m.State == provider.StateFailed)
	})
	if got.Why == "" {
		t.Errorf("no word on why it is %s", got.State)
	}
	if m := s.create("i1"); !m.State.Down() {
		t.Errorf("Create brought a crashed machine up again: %+v", m)
	}
	if err := s.p.Stop(s.ctx(), s.shard, "i1", 10*time.Second); err != nil {
		t.Errorf("Stop of a crashed machine: %v", err)
	}
}

func deleteLeavesNothing(t *testing.T, s *subject) {
	s.create("i1")
	running := s.awaitState("i1", provider.StateRunning)
	if left := s.Remains(s.p, running); left == "" {
		t.Fatal("Remains sees nothing of a machine that runs: the test could not fail")
	}
	s.create("i2")
	crashed := s.awaitState("i2", provider.StateRunning)
	s.Kill(t, s.p, crashed)
	for _, m := range []provider.Machine{running, crashed} {
		if err := s.p.Delete(s.ctx(), s.shard, m.Instance); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		s.awaitGone(m.Instance)
		s.awaitNothing(m)
	}
}

func deleteAgain(t *testing.T, s *subject) {
	s.create("i1")
	for range 2 {
		if err := s.p.Delete(s.ctx(), s.shard, "i1"); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if err := s.p.Delete(s.ctx(), s.shard, "i0"); err != nil {
		t.Errorf("Delete of what never was: %v", err)
	}
}

// proves SAFE-12
func deleteOfAnotherShard(t *testing.T, s *subject) {
	s.create("i1")
	before := s.awaitState("i1", provider.StateRunning)
	stranger := "sh" + word()
	if err := s.p.Stop(s.ctx(), stranger, "i1", 10*time.Second); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := s.p.Delete(s.ctx(), stranger, "i1"); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if err := s.p.Restart(s.ctx(), stranger, "i1", ""); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Restart: %v, want ErrNotFound", err)
	}
	if m, ok := s.listed("i1"); !ok || m.State != provider.StateRunning || m.BootID != before.BootID {
		t.Errorf("another shard's calls changed the machine: %+v", m)
	}
}

func deleteAtOnce(t *testing.T, s *subject) {
	s.create("i1")
	m := s.awaitState("i1", provider.StateRunning)
	var wg sync.WaitGroup
	for range 4 {
		ctx := s.ctx()
		wg.Go(func() {
			if err := s.p.Delete(ctx, s.shard, "i1"); err != nil {
				t.Errorf("Delete: %v", err)
			}
		})
		wg.Go(func() {
			if err := s.p.Stop(ctx, s.shard, "i1", 5*time.Second); err != nil {
				t.Errorf("Stop: %v", err)
			}
		})
	}
	wg.Wait()
	s.awaitGone("i1")
	s.awaitNothing(m)
}

func restartBootsAnew(t *testing.T, s *subject) {
	s.create("i1")
	before := s.awaitState("i1", provider.StateRunning)
	if err := s.p.Restart(s.ctx(), s.shard, "i1", ""); err != nil {
		t.Fatalf("Restart: %v", err)
	}
	after := s.awaitState("i1", provider.StateRunning)
	if before.BootID == "" || after.BootID == "" || before.BootID == after.BootID {
		t.Errorf("boot ID %q, after the restart %q", before.BootID, after.BootID)
	}
	if after.Ref != before.Ref || after.Address != before.Address || after.Zone != before.Zone {
		t.Errorf("restarted into another machine: %+v, before %+v", after, before)
	}
}

// A call that comes once more, or late, finds another boot than the one it was to end, up or down.
//
// proves SAFE-8
func restartOfOneBoot(t *testing.T, s *subject) {
	s.create("i1")
	first := s.awaitState("i1", provider.StateRunning)
	restart := func() {
		t.Helper()
		if err := s.p.Restart(s.ctx(), s.shard, "i1", first.BootID); err != nil {
			t.Fatalf("Restart of boot %s: %v", first.BootID, err)
		}
	}
	restart()
	second := s.awaitState("i1", provider.StateRunning)
	if second.BootID == first.BootID {
		t.Fatalf("the boot named was not ended: it is still %q", first.BootID)
	}
	restart()
	if m := s.awaitState("i1", provider.StateRunning); m.BootID != second.BootID {
		t.Errorf("the call for boot %q ended boot %q: now it is %q", first.BootID, second.BootID, m.BootID)
	}
	if err := s.p.Stop(s.ctx(), s.shard, "i1", 10*time.Second); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	restart()
	if m := s.awaitState("i1", provider.StateStopped); m.BootID != second.BootID {
		t.Errorf("the call for boot %q brought the stopped machine up: %+v", first.BootID, m)
	}
}

func restartOfDown(t *testing.T, s *subject) {
	s.create("i1")
	s.awaitState("i1", provider.StateRunning)
	if err := s.p.Stop(s.ctx(), s.shard, "i1", 10*time.Second); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	if err := s.p.Restart(s.ctx(), s.shard, "i1", ""); err != nil {
		t.Fatalf("Restart of a stopped machine: %v", err)
	}
	m := s.awaitState("i1", provider.StateRunning)
	s.Kill(t, s.p, m)
	s.awaitState("i1", provider.StateCrashed)
	if err := s.p.Restart(s.ctx(), s.shard, "i1", ""); err != nil {
		t.Fatalf("Restart of a crashed machine: %v", err)
	}
	if again := s.awaitState("i1", provider.StateRunning); again.BootID == m.BootID {
		t.Errorf("the boot ID is still %q", m.BootID)
	}
}

func restartOfUnknown(t *testing.T, s *subject) {
	if err := s.p.Restart(s.ctx(), s.shard, "i0", ""); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Restart of what never was: %v, want ErrNotFound", err)
	}
	s.create("i1")
	if err := s.p.Delete(s.ctx(), s.shard, "i1"); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if err := s.p.Restart(s.ctx(), s.shard, "i1", ""); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Restart of what is gone: %v, want ErrNotFound", err)
	}
}

func endedContext(t *testing.T, s *subject) {
	s.create("i1")
	before := s.awaitState("i1", provider.StateRunning)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, call := range map[string]func() error{
		"Create":  func() error { _, err := s.p.Create(ctx, s.request("i2")); return err },
		"Stop":    func() error { return s.p.Stop(ctx, s.shard, "i1", 10*time.Second) },
		"Delete":  func() error { return s.p.Delete(ctx, s.shard, "i1") },
		"Restart": func() error { return s.p.Restart(ctx, s.shard, "i1", "") },
		"List":    func() error { _, err := s.p.List(ctx, s.shard); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v, want context.Canceled", name, err)
		}
	}
	if m, ok := s.listed("i1"); !ok || m.State != provider.StateRunning || m.BootID != before.BootID {
		t.Errorf("calls with an ended context changed the machine: %+v", m)
	}
}

// proves DET-19
func consoleIsKept(t *testing.T, s *subject) {
	c, keeps := s.p.(provider.Console)
	if keeps != (s.Print != nil) {
		t.Fatalf("it keeps console output: %t; the harness can have a machine print: %t", keeps, s.Print != nil)
	}
	if !keeps {
		return
	}
	s.create("i1")
	m := s.awaitState("i1", provider.StateRunning)
	const last = "the last words"
	s.Print(t, s.p, m, strings.Repeat("x", provider.ConsoleTail)+last)
	s.Kill(t, s.p, m)
	s.awaitState("i1", provider.StateCrashed)
	tail, err := c.Console(s.ctx(), s.shard, "i1")
	if err != nil || len(tail) != provider.ConsoleTail || !strings.HasSuffix(string(tail), "x"+last) {
		t.Errorf("%d bytes of a crashed machine's output are there, error %v; want the last %d", len(tail), err,
			provider.ConsoleTail)
	}
	for name, of := range map[string][2]string{
		"another shard's":    {"sh" + word(), "i1"},
		"one that never was": {s.shard, "i0"},
	} {
		if tail, err := c.Console(s.ctx(), of[0], of[1]); !errors.Is(err, provider.ErrNotFound) || len(tail) > 0 {
			t.Errorf("console output of %s: %q, %v, want ErrNotFound", name, tail, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Console(ended, s.shard, "i1"); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v, want context.Canceled", err)
	}
}
