package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/machines"
)

// edit starts an editor's session on a group: it sets the size once finish is called.
func (c *cluster) edit(group string, size int) (p *program, finish func()) {
	c.t.Helper()
	name := filepath.Join(c.dir, fmt.Sprintf("edit-%d", size))
	script := fmt.Sprintf("#!/bin/sh\ntouch %q\nwhile [ ! -e %q ]; do sleep 0.02; done\nsed -i 's/^size: .*/size: "+
		"%d/' \"$1\"\n", name+".begun", name+".go", size)
	if err := os.WriteFile(name, []byte(script), 0o755); err != nil {
		c.t.Fatal(err)
	}
	cmd := c.command(bin("leasehold"), "group", "edit", group)
	cmd.Env = append(cmd.Env, "EDITOR="+name)
	p = c.start("cli", cmd)
	c.await("the editor", func() bool {
		_, err := os.Stat(name + ".begun")
		return err == nil || p.HasEnded()
	})
	return p, func() {
		if err := os.WriteFile(name+".go", nil, 0o600); err != nil {
			c.t.Fatal(err)
		}
		c.waitEnd(p)
	}
}

// Operators' edits: two at once, one with a slip of the pen, one past the command line.
//
// proves REC-14, SAFE-10, REC-16
func TestOperators(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	ids := c.apply("web", 2)

	t.Run("two at once", func(t *testing.T) {
		before := c.caughtUp()
		first, finishFirst := c.edit("web", 4)
		second, finishSecond := c.edit("web", 3)
		finishSecond()
		finishFirst()
		if second.ExitCode() != 0 {
			t.Errorf("the edit that came first ended with %d: %s", second.ExitCode(), second.stderr.String())
		}
		if text := first.stderr.String(); first.ExitCode() != 4 || !strings.Contains(text, "next: ") ||
			!strings.Contains(text, "kept in ") {
			t.Errorf("the edit that came last ended with %d: %s", first.ExitCode(), text)
		}
		c.awaitComplete("web", 3)
		if writes := c.h.changesOf(store.KindGroups, before); len(writes) != 1 {
			t.Errorf("one edit was to be written, and there are %d: %s", len(writes), writes[1].KV.Value)
		}
	})

	t.Run("a revision that is not the last", func(t *testing.T) {
		complains(t, c.cli("group", "apply", "-f", c.groupFile("web", 5), "--if-revision", "1"), 4, "web")
	})

	t.Run("a slip of the pen", func(t *testing.T) {
		file := filepath.Join(c.dir, "typo.yaml")
		text := "name: web\nprovider: process\nsize: 3\nreport:\n  intervall: 1s\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := c.caughtUp()
		complains(t, c.cli("group", "apply", "-f", file), 1, "report.intervall", file+":5:3",
			"did you mean report.interval?")
		if c.caughtUp(); len(c.h.changesOf(store.KindGroups, before)) > 0 {
			t.Error("something was written")
		}
	})

	t.Run("past the command line", func(t *testing.T) {
		ids = c.h.wanted("web")
		for what, value := range map[string]string{
			"a size that cannot be": `{"schema":1,"name":"web","size":-1,"provider":"process"}`,
			"a field that is none":  `{"schema":1,"name":"web","size":1,"provider":"process","sizee":1}`,
			"no JSON":               `size: 0`,
		} {
			before := c.caughtUp()
			rev := c.put(c.h.keys.Group("web"), []byte(value))
			entry := c.awaitEntry(what+" being refused", before,
				func(n noted) bool { return n.Rule == "SAFE-10" && n.Group == "web" })
			status := c.must("status")
			for _, want := range []string{"SAFE-10", fmt.Sprint(rev), "next: "} {
				if !strings.Contains(status, want) {
					t.Errorf("%s: the status does not tell of %q:\n%s", what, want, status)
				}
			}
			if st := c.h.status("web").Record; st.Invalid == nil || st.Invalid.Revision != rev || st.Accepted == nil ||
				st.Accepted.Size != 3 {
				t.Errorf("%s: the status is %+v", what, st)
			}
			complains(t, c.cli("group", "scale", "web", "9"), 1, "web")
			t.Logf("%s: %s", what, entry)
		}
		// What is in force is still kept up.
		c.heals("web", 3)
		if now := c.h.wanted("web"); now[1] != ids[1] || now[2] != ids[2] {
			t.Errorf("there were %v, and there are %v", ids, now)
		}
		c.must("group", "apply", "-f", c.groupFile("web", 2), "--confirm", "web", "--wait")
		c.awaitComplete("web", 2)
	})

	t.Run("nothing of that name", func(t *testing.T) {
		complains(t, c.cli("group", "show", "wep"), 3, "wep")
		complains(t, c.cli("group", "scale", "wep", "2"), 3, "wep")
		complains(t, c.cli("instance", "show", "web-0-xxxxxx"), 3, "web-0-xxxxxx")
		complains(t, c.cli("instance", "replace", "web-0-xxxxxx"), 3, "web-0-xxxxxx")
		complains(t, c.cli("group", "scale", "web", "1"), 2, "--confirm=web")
		complains(t, c.cli("group", "delete", "web"), 2, "--confirm=web")
	})

	t.Run("an unknown provider", func(t *testing.T) {
		file := filepath.Join(c.dir, "far.yaml")
		if err := os.WriteFile(file, []byte("name: far\nprovider: qemuu\nsize: 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := c.cli("group", "apply", "-f", file, "--wait", "--timeout", "4s")
		if text := p.stderr.String(); p.ExitCode() == 0 || !strings.Contains(text, "qemuu") ||
			!strings.Contains(text, "error: ") || !strings.Contains(text, "next: ") {
			t.Errorf("exit %d: %s", p.ExitCode(), text)
		}
		if status := c.must("status"); !strings.Contains(status, "qemuu") {
			t.Errorf("the status does not explain why nothing happens:\n%s", status)
		}
		c.must("group", "delete", "far", "--confirm", "far")
		c.await("the end of the group",
			func() bool { return !c.h.status("far").Present() && len(c.h.instances("far")) == 0 })
	})
}

// The life of a group: it grows, shrinks, pauses, has its instances replaced and removed, and goes
// without a trace.
//
// proves REC-3, REC-4, REC-7, REC-10, REC-13, REC-16, HEAL-9, HEAL-14
func TestGroupLife(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	c.apply("web", 2)
	c.apply("other", 1)
	other := c.h.wanted("other")

	first := c.h.wanted("web")
	c.must("group", "scale", "web", "4", "--wait")
	c.awaitComplete("web", 4)
	for _, id := range first {
		if !slices.Contains(c.h.wanted("web"), id) {
			t.Errorf("%s had to go when the group grew", id)
		}
	}
	c.must("group", "scale", "web", "3", "--confirm", "web", "--wait")
	c.awaitComplete("web", 3)
	c.await("three machines", func() bool {
		return len(c.h.instances("web")) == 3 && len(machines.Names(c.machines)) == 4
	})

	t.Run("replace", func(t *testing.T) {
		before, victim := c.caughtUp(), c.h.wanted("web")[0]
		c.must("instance", "replace", victim)
		removed := c.awaitEntry("its removal", before,
			func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
		healthy := c.awaitEntry("its replacement", before,
			func(n noted) bool { return n.Group == "web" && n.To == store.Running })
		if removed.Rule != "REC-16" || removed.Revision < healthy.rev {
			t.Errorf("not replaced first, or not by order: %s, %s", healthy, removed)
		}
		c.awaitComplete("web", 3)
		for _, slot := range currentOf[store.Slot](c.h, store.KindSlots) {
			if len(slot.Record.Failures) > 0 {
				t.Errorf("an order was counted as a failure: %+v", slot.Record)
			}
		}
	})

	t.Run("delete", func(t *testing.T) {
		before, victim := c.caughtUp(), c.h.wanted("web")[0]
		c.must("instance", "delete", victim, "--confirm", victim)
		c.awaitEntry("its removal", before,
			func(n noted) bool { return n.Instance == victim && n.To == store.Deleting && n.Rule == "REC-16" })
		c.await("its end", func() bool { return !c.h.instance(victim).Present() && len(c.residentsOf(victim)) == 0 })
		c.awaitComplete("web", 3)
	})

	t.Run("pause", func(t *testing.T) {
		c.must("group", "pause", "web")
		c.await("the pause", func() bool { return c.h.status("web").Record.State == store.GroupPaused })
		before, victim, ever := c.caughtUp(), c.h.wanted("web")[0], c.h.everRecorded()
		c.must("group", "scale", "web", "5")
		c.signalAgent(victim, syscall.SIGKILL)
		c.awaitEntry("its death being noted all the same", before,
			func(n noted) bool { return n.Instance == victim && n.Verdict == store.Dead })
		c.throughout(leaseTTL, "nothing is made or removed in a paused group", func() bool {
			return slices.Equal(c.h.everRecorded(), ever) &&
				len(c.h.entries(before, func(n noted) bool { return n.To != "" })) == 0
		})
		if status := c.must("status"); !strings.Contains(status, "REC-13") ||
			!strings.Contains(status, "leasehold group resume web") {
			t.Errorf("the status does not explain the pause:\n%s", status)
		}
		c.must("group", "resume", "web")
		c.awaitComplete("web", 5)
		if slices.Contains(c.h.wanted("web"), victim) {
			t.Errorf("%s was not replaced after the pause", victim)
		}
	})

	t.Run("end", func(t *testing.T) {
		c.must("group", "delete", "web", "--confirm", "web")
		c.await("the end of the group", func() bool {
			return !c.h.status("web").Present() && len(c.h.instances("web")) == 0
		})
		c.caughtUp()
		for _, kind := range []string{
			store.KindGroups, store.KindStatus, store.KindSlots, store.KindInstances,
			store.KindAlive, store.KindReports, store.KindRequests,
		} {
			for name := range currentOf[map[string]any](c.h, kind) {
				if strings.HasPrefix(name, "web") {
					t.Errorf("%s/%s is left", kind, name)
				}
			}
		}
		if names := machines.Names(c.machines); !slices.Equal(names, other) {
			t.Errorf("the machines %v are left, and %v should be", names, other)
		}
		for _, r := range machines.Residents(c.shards()) {
			if r.Instance != other[0] {
				t.Errorf("%s is left", r)
			}
		}
		if !c.h.complete("other", 1) {
			t.Error("another group has suffered")
		}
	})

	t.Run("order while no coordinator runs", func(t *testing.T) {
		c.replicas["a"].Signal(syscall.SIGTERM)
		c.waitEnd(c.replicas["a"])
		before, victim := c.caughtUp(), other[0]
		if p := c.cli("instance", "replace", victim); p.ExitCode() != 0 ||
			!strings.Contains(p.stderr.String(), "no coordinator is running") {
			t.Errorf("exit %d: %s", p.ExitCode(), p.stderr.String())
		}
		c.startReplica("a")
		c.awaitEntry("the order being carried out", before,
			func(n noted) bool { return n.Instance == victim && n.Rule == "REC-16" && n.To == store.Deleting })
		c.awaitComplete("other", 1)
		c.await("no order being left",
			func() bool { return len(currentOf[store.Request](c.h, store.KindRequests)) == 0 })
	})
}
