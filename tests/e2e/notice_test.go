package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// heir waits until an instance has a healthy replacement, and returns it.
func (c *cluster) heir(victim string) string {
	c.t.Helper()
	heir := ""
	c.await("a healthy replacement of "+victim, func() bool {
		for _, v := range c.h.instances("web") {
			if v.Record.Replaces == victim && v.Record.Phase == store.Running {
				heir = v.Record.ID
			}
		}
		return heir != ""
	})
	return heir
}

// unblamed fails if a failure was counted in any slot.
func (c *cluster) unblamed() {
	c.t.Helper()
	for name, v := range currentOf[store.Slot](c.h, store.KindSlots) {
		if len(v.Record.Failures) > 0 {
			c.t.Errorf("slot %s has failures counted: %+v", name, v.Record.Failures)
		}
	}
}

// A notice that the agent finds has its instance replaced and drained at once, for no longer than
// the notice leaves it, and no budget is waited for.
//
// proves SPOT-1, SPOT-2, DET-1, FLAP-1
func TestNoticeOfInterruption(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	file := filepath.Join(c.dir, "notice")
	marks := filepath.Join(c.dir, "drained")
	// All machines of this host see one file, so the notice is for both at once.
	ids := c.apply("web", 2, "budget: {max_expansion: 0}",
		fmt.Sprintf("spot: {enabled: true, source: file, file: %q}", file),
		fmt.Sprintf("drain: {timeout: 1m, hook: [sh, -c, 'echo $LEASEHOLD_INSTANCE >> %s; sleep 100000']}", marks))
	before := c.caughtUp()
	c.throughout(3*time.Second, "nothing happens without a notice", func() bool {
		return len(c.h.entries(before, func(n noted) bool { return n.Rule == "SPOT-2" })) == 0
	})

	written := time.Now()
	if err := os.WriteFile(file+".new", []byte(`{"kind": "reclaim", "why": "the host is needed", "in": "20s"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		doomed := c.awaitEntry(id+" being doomed", before,
			func(n noted) bool { return n.Rule == "SPOT-2" && n.Instance == id && n.What == "doomed" })
		t.Logf("%s: doomed %s after the notice was written (target: 2s and a moment)", id,
			doomed.At.Sub(written).Round(time.Millisecond))
		if !strings.Contains(doomed.Why, "the host is needed") || doomed.At.Sub(written) > 20*time.Second {
			t.Errorf("doomed for the wrong reason, or late: %s", doomed)
		}
		began := c.awaitEntry("the drain of "+id, doomed.rev,
			func(n noted) bool { return n.Rule == "SPOT-2" && n.Instance == id && n.To == store.Draining })
		if !strings.Contains(began.What, "replacement") {
			t.Errorf("it drains and is not replaced: %s", began)
		}
		c.await("the drain hook of "+id, func() bool {
			data, err := os.ReadFile(marks)
			return err == nil && strings.Contains(string(data), id)
		})
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		gone := c.awaitEntry("the removal of "+id, before,
			func(n noted) bool { return n.Instance == id && n.To == store.Deleting })
		if d := gone.At.Sub(written); d > 60*time.Second {
			t.Errorf("%s was removed %s after the notice, which gave it 20s", id, d)
		}
	}
	c.awaitComplete("web", 2)
	c.unblamed()
}

// A machine that its host wants empty is replaced first, drained, and no failure. Its agent's last
// word says so too.
//
// proves DET-8, DRAIN-3, HEAL-2, FLAP-1
func TestEvacuationOfAHost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	marks := filepath.Join(c.dir, "drained")
	ids := c.apply("web", 2, fmt.Sprintf("drain: {timeout: 1m, hook: [sh, -c, 'echo $LEASEHOLD_INSTANCE >> %s']}",
		marks))
	before := c.caughtUp()
	victim := ids[0]
	dir := filepath.Join(c.machines, victim)
	tell := c.start("evacuate", c.command(bin("leasehold-agent"), "evacuate", "--state-dir", dir,
		"the host is repaired"))
	c.waitEnd(tell)
	if tell.ExitCode() != 0 {
		t.Fatalf("leasehold-agent evacuate: exit %d: %s", tell.ExitCode(), tell.stderr.String())
	}
	doomed := c.awaitEntry(victim+" being doomed", before,
		func(n noted) bool { return n.Rule == "DRAIN-3" && n.Instance == victim && n.What == "doomed" })
	if !strings.Contains(doomed.Why, "the host is repaired") {
		t.Errorf("doomed for the wrong reason: %s", doomed)
	}
	heir := c.heir(victim)
	left := c.awaitEntry("the drain of "+victim, doomed.rev,
		func(n noted) bool { return n.Instance == victim && n.To == store.Draining })
	healthy := c.awaitEntry("the health of "+heir, doomed.rev,
		func(n noted) bool { return n.Instance == heir && n.To == store.Running })
	if left.rev < healthy.rev {
		t.Errorf("it drained at revision %d, and its replacement was healthy at %d", left.rev, healthy.rev)
	}
	gone := c.awaitEntry("the removal of "+victim, left.rev,
		func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
	if !strings.Contains(gone.Why, "its drain hook has ended") {
		t.Errorf("removed, and not because its hook has ended: %s", gone)
	}
	if data, err := os.ReadFile(marks); err != nil || strings.TrimSpace(string(data)) != victim {
		t.Errorf("the drain hook ran for %q, %v; want %s alone", data, err, victim)
	}
	c.awaitComplete("web", 2)
	c.unblamed()

	// A host that does not wait for that: the agent is told to empty the machine and to end, nearly
	// at once.
	before = c.caughtUp()
	victim = ids[1]
	tell = c.start("evacuate", c.command(bin("leasehold-agent"), "evacuate", "--state-dir",
		filepath.Join(c.machines, victim)))
	c.waitEnd(tell)
	c.await("the notice of "+victim, func() bool {
		r := currentOf[store.Report](c.h, store.KindReports)[victim].Record
		return r.Notice != nil && r.Notice.Kind == store.NoticeEvacuating
	})
	c.signalAgent(victim, syscall.SIGTERM)
	c.await("the goodbye of "+victim, func() bool { return c.said(victim, before, store.GoodbyeEvacuating) })
	c.heir(victim)
	c.await("the end of "+victim, func() bool { return !c.h.instance(victim).Present() })
	c.awaitComplete("web", 2)
	c.unblamed()
}

// said reports whether an agent has said goodbye like this since a revision.
func (c *cluster) said(id string, after store.Revision, goodbye store.Goodbye) bool {
	for _, ch := range c.h.changesOf(store.KindAlive, after) {
		if v, err := store.Decode[store.Alive](ch.KV); !ch.Deleted && err == nil && ch.name == id &&
			v.Record.Goodbye == goodbye {
			return true
		}
	}
	return false
}
