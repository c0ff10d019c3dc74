package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/proof"
)

func capabilities(s *subject) {
	c := s.p.Capabilities()
	if len(c.Zones) == 0 {
		s.Errorf("Zones is empty")
	}
	if c.CallTimeout <= 0 || c.Consistency < 0 || c.MaxBootstrap < 0 {
		s.Errorf("CallTimeout %s, Consistency %s, MaxBootstrap %d", c.CallTimeout, c.Consistency, c.MaxBootstrap)
	}
	t := s.Template
	if t.Zones == nil {
		t.Zones = c.Zones
	}
	if err := s.p.Validate(t); err != nil {
		s.Errorf("Validate refuses the template of this suite: %v", err)
	}
	if !c.Asks {
		return
	}
	if asker, ok := s.p.(provider.Asker); !ok {
		s.Errorf("it wants to be asked about templates, and cannot be")
	} else if err := asker.Ask(s.ctx(), t); err != nil {
		s.Errorf("Ask refuses the template of this suite: %v", err)
	}
}

func createTags(s *subject) {
	m := s.create(s.instance(1))
	if m.Instance != s.instance(1) || m.Shard != s.shard || m.Group != "web" || m.Zone != s.zone() ||
		m.Ref == "" {
		s.Errorf("Create returned %+v", m)
	}
	l := s.awaitState(s.instance(1), provider.StateRunning)
	if l.Instance != s.instance(1) || l.Shard != s.shard || l.Group != "web" || l.Zone != m.Zone || l.Ref != m.Ref {
		s.Errorf("listed as %+v, created as %+v", l, m)
	}
}

// proves SAFE-8
func createTwice(s *subject) {
	first := s.create(s.instance(1))
	running := s.awaitState(s.instance(1), provider.StateRunning)
	second := s.create(s.instance(1)) // with another token
	if first.Ref != second.Ref {
		s.Errorf("two machines: %s and %s", first.Ref, second.Ref)
	}
	if after := s.awaitState(s.instance(1), provider.StateRunning); after.BootID != running.BootID {
		s.Errorf("the second Create booted it again: %q, then %q", running.BootID, after.BootID)
	}
	if got := s.list(); len(got) != 1 {
		s.Errorf("listed %d machines: %+v", len(got), got)
	}
}

// proves SAFE-8, PROV-4
func createAtOnce(s *subject) {
	const callers = 8
	refs := make([]string, callers)
	var wg sync.WaitGroup
	copies := s.p.Capabilities().Copies
	for i := range callers {
		ctx, req := s.ctx(), s.request(s.instance(1))
		wg.Go(func() {
			m, err := s.p.Create(ctx, req)
			if err != nil {
				s.Errorf("Create: %v", err)
			}
			refs[i] = m.Ref
		})
	}
	wg.Wait()
	for _, ref := range refs {
		if ref != refs[0] && !copies {
			s.Errorf("several machines: %q", refs)
			break
		}
	}
	s.awaitState(s.instance(1), provider.StateRunning)
	if copies {
		s.removeCopies(refs[0])
	}
	if got := s.list(); len(got) != 1 {
		s.Errorf("listed %d machines: %+v", len(got), got)
	}
}

// removeCopies removes each machine but one, as listed. RemoveCopy with another call's name must
// leave a machine alone.
func (s *subject) removeCopies(stays string) {
	remover, can := s.opened.(provider.CopyRemover)
	if !can {
		s.Fatalf("Copies, and no RemoveCopy")
	}
	for _, m := range s.list() {
		if m.Call == "" {
			s.Errorf("machine %s is listed without its call", m.Ref)
		}
		if m.Ref == stays {
			if err := remover.RemoveCopy(s.ctx(), s.shard, m.Instance, m.Ref, "another-call"); err != nil {
				s.Errorf("RemoveCopy of another call's machine: %v", err)
			}
			continue
		}
		for range 2 { // the second time for a machine that is gone
			if err := remover.RemoveCopy(s.ctx(), s.shard, m.Instance, m.Ref, m.Call); err != nil {
				s.Errorf("RemoveCopy: %v", err)
			}
		}
	}
	s.poll(s.Patience+s.p.Capabilities().Consistency, func() (bool, string) {
		l := s.list()
		return len(l) == 1 && l[0].Ref == stays, fmt.Sprintf("all but machine %s were removed; listed are %+v", stays, l)
	})
}

// proves SAFE-8
func createAfterDelete(s *subject) {
	s.create(s.instance(1))
	if err := s.p.Delete(s.ctx(), s.shard, s.instance(1)); err != nil {
		s.Fatalf("Delete: %v", err)
	}
	_, err := s.p.Create(s.ctx(), s.request(s.instance(1)))
	if s.p.Capabilities().Remembers && !errors.Is(err, provider.ErrDeleted) {
		s.Errorf("Create after Delete: %v, want ErrDeleted", err)
	}
	if err != nil && !errors.Is(err, provider.ErrDeleted) {
		s.Errorf("Create after Delete: %v", err)
	}
	if err != nil {
		s.awaitGone(s.instance(1))
	}
	if !s.p.Capabilities().Remembers {
		return
	}
	// A Create after the Delete of an ID that had no machine yet.
	if err := s.p.Delete(s.ctx(), s.shard, s.instance(2)); err != nil {
		s.Fatalf("Delete: %v", err)
	}
	if _, err := s.p.Create(s.ctx(), s.request(s.instance(2))); !errors.Is(err, provider.ErrDeleted) {
		s.Errorf("Create that comes late: %v, want ErrDeleted", err)
	}
}

func unknownZone(s *subject) {
	req := s.request(s.instance(1))
	req.Zone = "no-such-zone"
	if _, err := s.p.Create(s.ctx(), req); !errors.Is(err, provider.ErrInvalid) {
		s.Errorf("Create in an unknown zone: %v, want ErrInvalid", err)
	}
	if err := s.p.Validate(provider.Template{Zones: []string{"no-such-zone"}}); !errors.Is(err, provider.ErrInvalid) {
		s.Errorf("Validate of an unknown zone: %v, want ErrInvalid", err)
	}
	if got := s.list(); len(got) != 0 {
		s.Errorf("listed %+v", got)
	}
}

// proves SAFE-12
func listOfOneShard(s *subject) {
	other := s.ofAnotherShard()
	s.create(s.instance(1))
	other.create(s.instance(2))
	s.awaitState(s.instance(1), provider.StateRunning)
	other.awaitState(s.instance(2), provider.StateRunning)
	if got := s.list(); len(got) != 1 || got[0].Instance != s.instance(1) {
		s.Errorf("listed %+v, want one machine alone", got)
	}
	if got := other.list(); len(got) != 1 || got[0].Instance != s.instance(2) {
		s.Errorf("listed %+v, want one machine alone", got)
	}
}

func listComplete(s *subject) {
	if got := s.list(); len(got) != 0 {
		s.Fatalf("a new shard has machines: %+v", got)
	}
	const n = 5
	var wg sync.WaitGroup
	for i := range n {
		ctx, req := s.ctx(), s.request(s.instance(i))
		wg.Go(func() {
			if _, err := s.p.Create(ctx, req); err != nil {
				s.Errorf("Create: %v", err)
			}
		})
	}
	wg.Wait()
	for i := range n {
		s.awaitState(s.instance(i), provider.StateRunning)
	}
	if err := s.p.Stop(s.ctx(), s.shard, s.instance(0), 10*time.Second); err != nil {
		s.Fatalf("Stop: %v", err)
	}
	if got := s.list(); len(got) != n {
		s.Errorf("listed %d machines, want all %d, the stopped one too: %+v", len(got), n, got)
	}
}

// proves HEAL-14
func stopKeeps(s *subject) {
	s.create(s.instance(1))
	s.awaitState(s.instance(1), provider.StateRunning)
	if err := s.p.Stop(s.ctx(), s.shard, s.instance(1), 10*time.Second); err != nil {
		s.Fatalf("Stop: %v", err)
	}
	s.awaitState(s.instance(1), provider.StateStopped)
	// A repeated Create must not start it again.
	if m := s.create(s.instance(1)); !m.State.Down() {
		s.Errorf("Create of a stopped machine: %+v", m)
	}
}

func stopAgain(s *subject) {
	if err := s.p.Stop(s.ctx(), s.shard, s.instance(0), 10*time.Second); err != nil {
		s.Errorf("Stop of what never was: %v", err)
	}
	s.create(s.instance(1))
	for range 2 {
		if err := s.p.Stop(s.ctx(), s.shard, s.instance(1), 10*time.Second); err != nil {
			s.Errorf("Stop: %v", err)
		}
	}
	if err := s.p.Delete(s.ctx(), s.shard, s.instance(1)); err != nil {
		s.Fatalf("Delete: %v", err)
	}
	if err := s.p.Stop(s.ctx(), s.shard, s.instance(1), 10*time.Second); err != nil {
		s.Errorf("Stop of what is gone: %v", err)
	}
}

// proves DET-4
func crashIsSeen(s *subject) {
	s.create(s.instance(1))
	m := s.awaitState(s.instance(1), provider.StateRunning)
	s.kill(m)
	tells := s.p.Capabilities().Crashes
	got := s.await(s.instance(1), "down", func(m provider.Machine, listed bool) bool {
		return listed && m.State.Down() && (!tells || m.State != provider.StateStopped)
	})
	if tells && got.Why == "" {
		s.Errorf("no word on why it is %s", got.State)
	}
	if m := s.create(s.instance(1)); !m.State.Down() {
		s.Errorf("Create brought a crashed machine up again: %+v", m)
	}
	if err := s.p.Stop(s.ctx(), s.shard, s.instance(1), 10*time.Second); err != nil {
		s.Errorf("Stop of a crashed machine: %v", err)
	}
}

func deleteLeavesNothing(s *subject) {
	s.create(s.instance(1))
	running := s.awaitState(s.instance(1), provider.StateRunning)
	if s.Remains == nil {
		s.Unproved("nothing here sees what a deleted machine leaves behind outside of List")
	} else if left := s.Remains(running); left == "" {
		s.Fatalf("Remains sees nothing of a machine that runs: the test could not fail")
	}
	s.create(s.instance(2))
	crashed := s.awaitState(s.instance(2), provider.StateRunning)
	if s.Kill != nil {
		s.kill(crashed)
	}
	for _, m := range []provider.Machine{running, crashed} {
		if err := s.p.Delete(s.ctx(), s.shard, m.Instance); err != nil {
			s.Fatalf("Delete: %v", err)
		}
		s.awaitGone(m.Instance)
		s.awaitNothing(m)
	}
}

func deleteAgain(s *subject) {
	s.create(s.instance(1))
	for range 2 {
		if err := s.p.Delete(s.ctx(), s.shard, s.instance(1)); err != nil {
			s.Errorf("Delete: %v", err)
		}
	}
	if err := s.p.Delete(s.ctx(), s.shard, s.instance(0)); err != nil {
		s.Errorf("Delete of what never was: %v", err)
	}
}

// proves SAFE-12
func deleteOfAnotherShard(s *subject) {
	s.create(s.instance(1))
	before := s.awaitState(s.instance(1), provider.StateRunning)
	stranger := "sh" + proof.Word()
	if err := s.p.Stop(s.ctx(), stranger, s.instance(1), 10*time.Second); err != nil {
		s.Errorf("Stop: %v", err)
	}
	if err := s.p.Delete(s.ctx(), stranger, s.instance(1)); err != nil {
		s.Errorf("Delete: %v", err)
	}
	if err := s.p.Restart(s.ctx(), stranger, s.instance(1), ""); !errors.Is(err, provider.ErrNotFound) {
		s.Errorf("Restart: %v, want ErrNotFound", err)
	}
	if m, ok := s.listed(s.instance(1)); !ok || m.State != provider.StateRunning || m.BootID != before.BootID {
		s.Errorf("another shard's calls changed the machine: %+v", m)
	}
}

func deleteAtOnce(s *subject) {
	s.create(s.instance(1))
	m := s.awaitState(s.instance(1), provider.StateRunning)
	var wg sync.WaitGroup
	for range 4 {
		ctx := s.ctx()
		wg.Go(func() {
			if err := s.p.Delete(ctx, s.shard, s.instance(1)); err != nil {
				s.Errorf("Delete: %v", err)
			}
		})
		wg.Go(func() {
			if err := s.p.Stop(ctx, s.shard, s.instance(1), 5*time.Second); err != nil {
				s.Errorf("Stop: %v", err)
			}
		})
	}
	wg.Wait()
	s.awaitGone(s.instance(1))
	s.awaitNothing(m)
}

func restartBootsAnew(s *subject) {
	s.create(s.instance(1))
	before := s.awaitState(s.instance(1), provider.StateRunning)
	if err := s.p.Restart(s.ctx(), s.shard, s.instance(1), ""); err != nil {
		s.Fatalf("Restart: %v", err)
	}
	after := s.awaitState(s.instance(1), provider.StateRunning)
	if !s.p.Capabilities().Boots {
		s.Unproved("List names no boots, so only the state shows the restart")
	} else if before.BootID == "" || after.BootID == "" || before.BootID == after.BootID {
		s.Errorf("boot ID %q, after the restart %q", before.BootID, after.BootID)
	}
	if after.Ref != before.Ref || after.Address != before.Address || after.Zone != before.Zone {
		s.Errorf("restarted into another machine: %+v, before %+v", after, before)
	}
}

// A repeated or late call finds another boot than the one that it names, running or stopped.
//
// proves SAFE-8
func restartOfOneBoot(s *subject) {
	if !s.p.Capabilities().Boots {
		s.Unproved("List names no boots: a Restart that comes late or twice ends whatever boot there is")
		return
	}
	s.create(s.instance(1))
	first := s.awaitState(s.instance(1), provider.StateRunning)
	restart := func() {
		if err := s.p.Restart(s.ctx(), s.shard, s.instance(1), first.BootID); err != nil {
			s.Fatalf("Restart of boot %s: %v", first.BootID, err)
		}
	}
	restart()
	second := s.awaitState(s.instance(1), provider.StateRunning)
	if second.BootID == first.BootID {
		s.Fatalf("the boot named was not ended: it is still %q", first.BootID)
	}
	restart()
	if m := s.awaitState(s.instance(1), provider.StateRunning); m.BootID != second.BootID {
		s.Errorf("the call for boot %q ended boot %q: now it is %q", first.BootID, second.BootID, m.BootID)
	}
	if err := s.p.Stop(s.ctx(), s.shard, s.instance(1), 10*time.Second); err != nil {
		s.Fatalf("Stop: %v", err)
	}
	restart()
	if m := s.awaitState(s.instance(1), provider.StateStopped); m.BootID != second.BootID {
		s.Errorf("the call for boot %q brought the stopped machine up: %+v", first.BootID, m)
	}
}

func restartOfDown(s *subject) {
	s.create(s.instance(1))
	s.awaitState(s.instance(1), provider.StateRunning)
	if err := s.p.Stop(s.ctx(), s.shard, s.instance(1), 10*time.Second); err != nil {
		s.Fatalf("Stop: %v", err)
	}
	if err := s.p.Restart(s.ctx(), s.shard, s.instance(1), ""); err != nil {
		s.Fatalf("Restart of a stopped machine: %v", err)
	}
	m := s.awaitState(s.instance(1), provider.StateRunning)
	s.kill(m)
	s.awaitDown(s.instance(1))
	if err := s.p.Restart(s.ctx(), s.shard, s.instance(1), ""); err != nil {
		s.Fatalf("Restart of a crashed machine: %v", err)
	}
	if again := s.awaitState(s.instance(1), provider.StateRunning); again.BootID == m.BootID && s.p.Capabilities().Boots {
		s.Errorf("the boot ID is still %q", m.BootID)
	}
}

func restartOfUnknown(s *subject) {
	if err := s.p.Restart(s.ctx(), s.shard, s.instance(0), ""); !errors.Is(err, provider.ErrNotFound) {
		s.Errorf("Restart of what never was: %v, want ErrNotFound", err)
	}
	s.create(s.instance(1))
	if err := s.p.Delete(s.ctx(), s.shard, s.instance(1)); err != nil {
		s.Fatalf("Delete: %v", err)
	}
	if err := s.p.Restart(s.ctx(), s.shard, s.instance(1), ""); !errors.Is(err, provider.ErrNotFound) {
		s.Errorf("Restart of what is gone: %v, want ErrNotFound", err)
	}
}

func endedContext(s *subject) {
	s.create(s.instance(1))
	before := s.awaitState(s.instance(1), provider.StateRunning)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, call := range map[string]func() error{
		"Create":  func() error { _, err := s.p.Create(ctx, s.request(s.instance(2))); return err },
		"Stop":    func() error { return s.p.Stop(ctx, s.shard, s.instance(1), 10*time.Second) },
		"Delete":  func() error { return s.p.Delete(ctx, s.shard, s.instance(1)) },
		"Restart": func() error { return s.p.Restart(ctx, s.shard, s.instance(1), "") },
		"List":    func() error { _, err := s.p.List(ctx, s.shard); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			s.Errorf("%s with an ended context: %v, want context.Canceled", name, err)
		}
	}
	if m, ok := s.listed(s.instance(1)); !ok || m.State != provider.StateRunning || m.BootID != before.BootID {
		s.Errorf("calls with an ended context changed the machine: %+v", m)
	}
}

// proves DET-19
func consoleIsKept(s *subject) {
	c, keeps := s.opened.(provider.Console)
	if !keeps {
		s.Unproved("it keeps no console output")
		return
	}
	s.create(s.instance(1))
	m := s.awaitState(s.instance(1), provider.StateRunning)
	for name, of := range map[string][2]string{
		"another shard's":    {"sh" + proof.Word(), s.instance(1)},
		"one that never was": {s.shard, s.instance(0)},
	} {
		if tail, err := c.Console(s.ctx(), of[0], of[1]); !errors.Is(err, provider.ErrNotFound) || len(tail) > 0 {
			s.Errorf("console output of %s: %q, %v, want ErrNotFound", name, tail, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Console(ended, s.shard, s.instance(1)); !errors.Is(err, context.Canceled) {
		s.Errorf("with an ended context: %v, want context.Canceled", err)
	}
	if s.Print == nil {
		s.Unproved("nothing here has a machine write to its console")
		return
	}
	const last = "the last words"
	if err := s.Print(m, strings.Repeat("x", provider.ConsoleTail)+last); err != nil {
		s.Fatalf("write to the console: %v", err)
	}
	s.kill(m)
	s.awaitDown(s.instance(1))
	tail, err := c.Console(s.ctx(), s.shard, s.instance(1))
	if err != nil || len(tail) != provider.ConsoleTail || !strings.HasSuffix(string(tail), "x"+last) {
		s.Errorf("%d bytes of a crashed machine's output are there, error %v; want the last %d", len(tail), err,
			provider.ConsoleTail)
	}
}
