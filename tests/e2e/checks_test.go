package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// afflict makes the named check fail, or hang, on one instance from now on.
func (w *world) afflict(id, check, how string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, id+"."+check+"."+how), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// afflictable returns a check for a group file that afflict controls.
func (w *world) afflictable(name string, optional bool) string {
	at := filepath.Join(w.dir, "$LEASEHOLD_INSTANCE."+name)
	script := fmt.Sprintf("if [ -e %[1]s.hang ]; then trap '' TERM; sleep 100000; fi; test ! -e %[1]s.fail", at)
	return fmt.Sprintf("- {name: %s, optional: %t, exec: {run: [sh, -c, %q]}}", name, optional, script)
}

// checkOf returns the state of a check in the last stored report.
func (w *world) checkOf(id, name string) store.CheckReport {
	for _, c := range currentOf[store.Report](w.h, store.KindReports)[id].Record.Checks {
		if c.Name == name {
			return c
		}
	}
	return store.CheckReport{}
}

// A check that is optional only tells. One that fails, or never comes to an end, makes its instance
// unhealthy, which is replaced while its agent goes on reporting.
//
// proves DET-9, DET-1, HEAL-2
func TestChecks(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	ids := c.apply("web", 2, "checks:", c.afflictable("app", false), c.afflictable("side", true))
	if app := c.checkOf(ids[0], "app"); !app.Healthy || app.Kind != "exec" {
		t.Errorf("healthy, and its check is %+v", app)
	}
	c.afflict(ids[0], "side", "fail")
	c.await("the optional check failing", func() bool {
		side := c.checkOf(ids[0], "side")
		return side.Name != "" && !side.Healthy && side.Optional
	})
	c.unreplaced("web", ids)

	for _, story := range []struct{ how, why string }{
		{"fail", "app: ended with exit code 1"},
		{"hang", "app: timed out"},
	} {
		before := c.caughtUp()
		victim := c.h.wanted("web")[0]
		c.afflict(victim, "app", story.how)
		ill := c.awaitEntry("the verdict on "+victim, before,
			func(n noted) bool { return n.Instance == victim && n.Verdict == store.Unhealthy })
		if ill.Rule != "DET-9" || !strings.Contains(ill.Why, story.why) {
			t.Errorf("unhealthy for the wrong reason: %s", ill)
		}
		c.awaitEntry("its removal", before,
			func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
		c.awaitComplete("web", 2)
		if slices.Contains(c.h.wanted("web"), victim) {
			t.Errorf("%s is still wanted", victim)
		}
		if late := c.h.entries(before,
			func(n noted) bool { return n.Rule == "DET-6" && n.Instance == victim }); len(late) > 0 {
			t.Errorf("its check has held up its reports: %v", late)
		}
		c.await("the end of "+victim, func() bool { return !c.h.instance(victim).Present() })
		if left := c.residentsOf(victim); len(left) > 0 {
			t.Errorf("of the machine that was removed there is still %v", left)
		}
	}
}

// A change of checks comes to one instance after the other, without a restart. One that is wrong
// stops at the first, and after a rollback the group gets well, long before
// max_checking_health_duration.
//
// proves ROLL-2, ROLL-4, DET-9
func TestChecksAreUpdatedLive(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	ids := c.apply("web", 3, "checks:", c.afflictable("app", false))
	workloads := map[string]int{}
	for _, id := range ids {
		workloads[id] = c.workload(id)
	}
	before := c.caughtUp()
	c.rewrite("web", "name: app", "name: better")
	c.rolled("web", before, 3)
	c.unreplaced("web", ids)
	for _, id := range ids {
		if better := c.checkOf(id, "better"); !better.Healthy || better.Pending {
			t.Errorf("the roll is complete, and the new check of %s is %+v", id, better)
		}
		if pid := c.workload(id); pid != 0 && workloads[id] != 0 && pid != workloads[id] {
			t.Errorf("the workload of %s was restarted", id)
		}
	}

	before = c.caughtUp()
	c.rewrite("web", "name: better", "name: wrong", "test ! -e", "test -e")
	c.awaitEntry("the verdict on the first", before, func(n noted) bool {
		return n.Verdict == store.Unhealthy && strings.Contains(n.Why, "wrong: ended with exit code 1")
	})
	touched := func() (n int) {
		for _, id := range ids {
			rec := c.h.instance(id).Record
			if checks := rec.Spec.Checks; rec.Phase != store.Deleting && len(checks) == 1 && checks[0].Name == "wrong" {
				n++
			}
		}
		return n
	}
	// The first is replaced from the last good template meanwhile (ROLL-9), and only then does the
	// roll go on.
	c.throughout(3*time.Second, "no second instance with the wrong check at the same time",
		func() bool { return touched() <= 1 })
	before = c.caughtUp()
	c.must("group", "rollback", "web")
	// it is called off where no instance has the wrong check any more
	c.awaitEntry("the end of the roll", before, func(n noted) bool {
		return n.Group == "web" && n.Rule == "ROLL-1" &&
			(strings.HasSuffix(n.What, "is complete") || strings.HasSuffix(n.What, "is called off"))
	})
	c.awaitComplete("web", 3)
	for _, id := range c.h.wanted("web") {
		if c.checkOf(id, "wrong").Name != "" {
			t.Errorf("%s still has the wrong check", id)
		}
	}
}
