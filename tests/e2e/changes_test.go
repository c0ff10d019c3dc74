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

// workload returns the process of an instance's workload, 0 unless there is exactly one.
func (w *world) workload(id string) int {
	m, err := machines.Read(w.machines, id)
	if err != nil {
		return 0
	}
	found := 0
	for _, r := range w.residentsOf(id) {
		switch {
		case r.PID == m.PID:
		case found != 0:
			return 0
		default:
			found = r.PID
		}
	}
	return found
}

// runs returns the command line of an instance's workload.
func (w *world) runs(id string) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", w.workload(id)))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))
}

// variable returns a variable of the environment with which an instance's workload was started.
func (w *world) variable(id, name string) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", w.workload(id)))
	if err != nil {
		return ""
	}
	for v := range strings.SplitSeq(string(data), "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// rewrite applies a group's file with one text replaced by another.
func (c *cluster) rewrite(group string, pairs ...string) {
	c.t.Helper()
	file := filepath.Join(c.dir, group+".yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	text := strings.NewReplacer(pairs...).Replace(string(data))
	if text == string(data) {
		c.t.Fatalf("%q is not in %s", pairs, text)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.must("group", "apply", "-f", file)
}

// rolled waits until a roll that began after a revision is complete.
func (c *cluster) rolled(group string, after store.Revision, size int) {
	c.t.Helper()
	c.awaitEntry("the roll being complete", after,
		func(n noted) bool { return n.Group == group && strings.HasSuffix(n.What, "is complete") })
	c.awaitComplete(group, size)
}

// A workload that crashes is restarted on its machine, a machine that crashes is booted again, and
// what runs after a change of the command is what is wanted by then.
//
// proves HEAL-1, DET-4, ROLL-2, REC-16
func TestRestartsInPlace(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	ids := c.apply("web", 2, "heal: {policy: restart}")
	id := ids[0]
	pids := func() (agent, workload int) { return c.agent(id), c.workload(id) }
	// again waits until the machine runs one workload that is not the old one, and everything is in
	// order.
	again := func(what string, after store.Revision, old int) {
		t.Helper()
		c.awaitEntry(what, after, func(n noted) bool {
			return n.Instance == id && n.From == store.Checking && n.To == store.Running
		})
		c.awaitComplete("web", 2)
		c.await("another workload", func() bool { now := c.workload(id); return now != 0 && now != old })
		c.caughtUp()
		if now := c.h.ids("web"); !slices.Equal(now, ids) {
			t.Fatalf("%s: there were %v and are %v", what, ids, now)
		}
	}

	before := c.caughtUp()
	agent, workload := pids()
	if err := syscall.Kill(workload, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	again("the workload being restarted", before, workload)
	if now := c.agent(id); now != agent {
		t.Errorf("the machine was restarted: its agent was %d and is %d", agent, now)
	}

	before = c.caughtUp()
	agent, workload = pids()
	boot := c.h.alive(id).Record.BootID
	c.signalAgent(id, syscall.SIGKILL)
	c.awaitEntry("the machine being restarted", before, func(n noted) bool {
		return n.Rule == "DET-4" && n.Instance == id && n.To == store.Stopping
	})
	again("the machine being up again", before, workload)
	if c.agent(id) == agent || c.h.alive(id).Record.BootID == boot {
		t.Errorf("agent %d, boot %s: still the same", agent, boot)
	}

	before = c.caughtUp()
	c.rewrite("web", `"100000"`, `"200000"`)
	c.rolled("web", before, 2)
	for _, id := range ids {
		if cmd := c.runs(id); cmd != "sleep 200000" {
			t.Errorf("%s runs %q", id, cmd)
		}
	}

	before = c.caughtUp()
	_, workload = pids()
	c.must("instance", "restart", id)
	again("the machine being restarted by order", before, workload)
	if cmd := c.runs(id); cmd != "sleep 200000" {
		t.Errorf("after its restart %s runs %q", id, cmd)
	}

	// An agent that dies before it has heard of the new command comes up with it all the same.
	before = c.caughtUp()
	for _, id := range ids {
		c.signalAgent(id, syscall.SIGSTOP)
	}
	c.rewrite("web", `"200000"`, `"300000"`)
	killed := c.awaitEntry("one being restarted", before, func(n noted) bool { return n.To == store.Stopping }).Instance
	c.signalAgent(killed, syscall.SIGKILL)
	for _, id := range ids {
		c.signalAgent(id, syscall.SIGCONT)
	}
	c.rolled("web", before, 2)
	for _, id := range ids {
		if cmd := c.runs(id); cmd != "sleep 300000" {
			t.Errorf("%s runs %q", id, cmd)
		}
	}
	c.unreplaced("web", ids)
}

// Vars that no command names are told to the agents while the workloads run on; another template
// needs other machines; and one with which nothing gets healthy is blamed and rolled back.
//
// proves ROLL-1, ROLL-2, ROLL-4, FLAP-5
func TestRolls(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	ids := c.apply("web", 2, "vars: {greeting: hello}", "max_checking_health_duration: 2s",
		"flap: {min_delay: 1s, max_delay: 1s, noise: 0s}")

	before := c.caughtUp()
	workloads := []int{c.workload(ids[0]), c.workload(ids[1])}
	c.rewrite("web", "greeting: hello", "greeting: hi")
	c.rolled("web", before, 2)
	for i, id := range ids {
		if c.workload(id) != workloads[i] {
			t.Errorf("the workload of %s did not run on", id)
		}
		rec, report := c.h.instance(id).Record, currentOf[store.Report](c.h, store.KindReports)[id].Record
		if rec.Spec.Vars["greeting"] != "hi" || report.Config != rec.Config {
			t.Errorf("%s: vars %v, config %s, reported %s", id, rec.Spec.Vars, rec.Config, report.Config)
		}
	}
	c.unreplaced("web", ids)

	before = c.caughtUp()
	c.rewrite("web", "stop_timeout", "template: {zones: [local]}\nstop_timeout")
	c.rolled("web", before, 2)
	good := c.h.wanted("web")
	for _, id := range good {
		if slices.Contains(ids, id) || c.variable(id, "greeting") != "hi" {
			t.Errorf("%s has greeting %q", id, c.variable(id, "greeting"))
		}
	}

	before = c.caughtUp()
	c.rewrite("web", `[sleep, "100000"]`, `["false"]`, "stop_timeout",
		"rollout: {minimal_action: recreate}\nstop_timeout")
	c.awaitEntry("the template being blamed", before,
		func(n noted) bool { return n.Rule == "FLAP-5" && n.Group == "web" })
	if now := c.h.wanted("web"); !slices.Contains(now, good[0]) || !slices.Contains(now, good[1]) {
		t.Errorf("there were %v and are %v", good, now)
	}
	c.must("group", "rollback", "web", "--wait")
	c.awaitComplete("web", 2)
	if now := c.h.wanted("web"); !slices.Equal(now, good) {
		t.Errorf("there were %v and are %v", good, now)
	}
}

// Before a machine goes its hook runs beside the workload, and only when that has ended does it go;
// so it is when a group is stopped.
//
// proves DRAIN-1, REC-11, HEAL-14
func TestDrainHookAndStop(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	left := func(id string) string { return filepath.Join(c.dir, "left-"+id) }
	goes := filepath.Join(c.dir, "go")
	hook := fmt.Sprintf("echo $drain > %[1]s/left-$LEASEHOLD_INSTANCE; while [ ! -e %[1]s/go ]; do sleep 0.02; done",
		c.dir)
	c.apply("web", 2, "vars: {drain: gently}", fmt.Sprintf("drain: {timeout: 5m, hook: [sh, -c, %q]}", hook))
	exists := func(file string) bool { _, err := os.Stat(file); return err == nil }

	before := c.caughtUp()
	c.must("group", "scale", "web", "1", "--confirm", "web")
	draining := c.awaitEntry("one draining", before, func(n noted) bool { return n.To == store.Draining })
	c.await("its hook", func() bool { return exists(left(draining.Instance)) })
	if c.h.instance(draining.Instance).Record.Phase != store.Draining || len(c.residentsOf(draining.Instance)) < 3 {
		t.Errorf("%s is %s, and of it run %v", draining.Instance, c.h.instance(draining.Instance).Record.Phase,
			c.residentsOf(draining.Instance))
	}
	if err := os.WriteFile(goes, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.await("its end", func() bool {
		return !c.h.instance(draining.Instance).Present() && len(c.residentsOf(draining.Instance)) == 0
	})
	if text, err := os.ReadFile(left(draining.Instance)); err != nil || strings.TrimSpace(string(text)) != "gently" {
		t.Errorf("the hook wrote %q, %v", text, err)
	}

	last := c.h.wanted("web")[0]
	c.must("group", "stop", "web", "--confirm", "web", "--wait")
	c.await("the end of all", func() bool { return len(machines.Names(c.machines)) == 0 })
	if !exists(left(last)) {
		t.Errorf("the hook of %s did not run", last)
	}
	if st := c.h.status("web").Record; st.State != store.GroupStopped || st.Accepted.Size != 1 {
		t.Errorf("status %+v", st)
	}
	c.must("group", "start", "web", "--wait")
	c.awaitComplete("web", 1)
}

// Tasks that end well are finished and stay so.
//
// proves REC-12
func TestTasksAreDone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	file := c.groupFile("sum", 2, "lifecycle: task")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), `[sleep, "100000"]`, `["true"]`, 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	c.must("group", "apply", "-f", file)
	c.await("the group being finished", func() bool { return c.h.status("sum").Record.State == store.GroupFinished })
	ids := c.h.wanted("sum")
	for _, id := range ids {
		if in := c.h.instance(id).Record; in.Phase != store.Finished {
			t.Errorf("%s is %s", id, in.Phase)
		}
	}
	if ever := c.h.everRecorded(); !slices.Equal(ever, ids) {
		t.Errorf("there were %v, and 2 were wanted", ever)
	}
	c.must("group", "delete", "sum", "--confirm", "sum")
	c.await("the end of the machines", func() bool { return len(machines.Names(c.machines)) == 0 })
}
