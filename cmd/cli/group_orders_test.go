package cli

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// allOrders returns all pending orders by ID.
func (w *world) allOrders() []store.Request {
	w.t.Helper()
	l, err := w.st.List(w.t.Context(), w.keys.Of(store.KindRequests), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := decodeAll[store.Request](l)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []store.Request
	for _, v := range all {
		out = append(out, v.Record)
	}
	return out
}

func (w *world) must(args ...string) string {
	w.t.Helper()
	code, stdout, stderr := w.run(args...)
	if code != Done {
		w.t.Fatalf("leasehold %s: exit %d: %s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout + stderr
}

// proves REC-11
func TestStopAndStartKeepTheSize(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.put(store.KindGroups, "web", webGroup(3))
	if code, _, stderr := w.run("group", "stop", "web"); code != Usage ||
		!strings.Contains(stderr,
			"all instances of group web (3 are wanted) are drained and deleted; its size is kept: this must be confirmed") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if w.spec("web").Stopped {
		t.Fatal("stopped without a confirmation")
	}
	w.must("group", "stop", "web", "--confirm=web")
	if g := w.spec("web"); !g.Stopped || g.Size != 3 {
		t.Errorf("got %+v", g)
	}
	if out := w.must("group", "scale", "web", "4"); !strings.Contains(out,
		"web is stopped: nothing happens until leasehold group start web") {
		t.Error(out)
	}
	w.must("group", "start", "web")
	if g := w.spec("web"); g.Stopped || g.Size != 4 {
		t.Errorf("got %+v", g)
	}
	if len(w.allOrders()) != 0 {
		t.Errorf("orders were left: %+v", w.allOrders())
	}
}

// Starting a group tries again what was given up, in the transaction that starts it.
//
// proves REC-11, FLAP-3
func TestStartTriesAgainWhatWasGivenUp(t *testing.T) {
	for _, stopped := range []bool{true, false} {
		w := newWorld(t)
		w.serve()
		g := webGroup(3)
		g.Stopped = stopped
		w.put(store.KindGroups, "web", g)
		w.put(store.KindSlots, "web/1", store.Slot{Schema: 1, Group: "web", Number: 1, Errored: "72h of failures"})
		out := w.must("group", "start", "web")
		if !strings.Contains(out, "web retry ordered order1") ||
			!strings.Contains(out, "1 slot that was given up is retried; ") {
			t.Error(out)
		}
		want := store.Request{Schema: 1, ID: "order1", Kind: store.RequestRetry, Group: "web", By: "eve@desk", At: noon}
		if all := w.allOrders(); len(all) != 1 || all[0] != want || w.spec("web").Stopped {
			t.Errorf("orders %+v, spec %+v", all, w.spec("web"))
		}
	}
}

// An order to go on with an upgrade of agents that stopped says so, and does not warn that there is
// nothing to retry.
//
// proves PROV-7, REC-11
func TestRetryOfAnUpgradeOfAgents(t *testing.T) {
	for stopped, warns := range map[string]bool{"": true, "web-0-a": false} {
		w := newWorld(t)
		w.serve()
		st := statusOf(webGroup(3), w.put(store.KindGroups, "web", webGroup(3)), 3)
		st.Agents = &store.AgentWave{Version: "v2", Of: 3, Stopped: stopped}
		w.put(store.KindStatus, "web", st)
		code, _, err := w.run("group", "retry", "web")
		if code != Done || strings.Contains(err, "warning") != warns ||
			strings.Contains(err, "upgrade of agents begins again") == warns {
			t.Errorf("stopped by %q: %d, %s", stopped, code, err)
		}
	}
}

// proves REC-11
func TestAGroupCanBeMadeWithoutStartingIt(t *testing.T) {
	w := newWorld(t)
	w.serve()
	t.Chdir(t.TempDir())
	write(t, "web.yaml", transcriptFiles["web.yaml"])
	// A dry run says how to apply exactly what it has shown: a group that is not started.
	_, out, _ := w.run("group", "apply", "-f", "web.yaml", "--no-start", "--dry-run")
	_, shown, found := strings.Cut(out, "apply exactly this: leasehold ")
	if !found {
		t.Fatalf("the dry run does not say how to apply it:\n%s", out)
	}
	w.must(strings.Fields(shown)...)
	if !w.spec("web").Unstarted {
		t.Fatal("it is started")
	}
	code, _, stderr := w.run("group", "apply", "-f", "web.yaml", "--no-start")
	if code != Usage || !strings.Contains(stderr, "--no-start is for a new group") ||
		!strings.Contains(stderr, "next: leasehold group apply -f web.yaml, and leasehold group stop web") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	w.must("group", "apply", "-f", "web.yaml") // what commands set is kept
	if !w.spec("web").Unstarted {
		t.Error("applying a file started it")
	}
	w.must("group", "start", "web")
	if w.spec("web").Unstarted {
		t.Error("it is not started")
	}
}

// proves ROLL-1
func TestRestartCounts(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.put(store.KindGroups, "web", webGroup(3))
	w.must("group", "restart", "web")
	if got := w.spec("web").Relaunch; got != (store.Relaunch{Number: 1, Action: store.ActionRestart}) {
		t.Errorf("got %+v", got)
	}
	w.must("group", "restart", "web", "--recreate")
	if got := w.spec("web").Relaunch; got != (store.Relaunch{Number: 2, Action: store.ActionRecreate}) {
		t.Errorf("got %+v", got)
	}
}

// proves SAFE-2
func TestOnlyAStormThatLastsIsOverridden(t *testing.T) {
	for _, c := range []struct {
		name  string
		storm *store.Storm
		code  Code
		says  string
	}{
		{"none", nil, Failed, "there is no storm in group web: nothing to override, and no order was given"},
		{"over", &store.Storm{Ended: "few are lost"}, Failed, "the storm in group web is already over"},
		{"lasting", &store.Storm{Lost: 2, Of: 3}, Done, "lost instances are replaced again"},
	} {
		w := newWorld(t)
		w.serve()
		g := webGroup(3)
		w.put(store.KindGroups, "web", g)
		st := statusOf(g, 7, 1)
		st.Storm = c.storm
		w.put(store.KindStatus, "web", st)
		code, _, stderr := w.run("group", "override-storm", "web")
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d: %s", c.name, code, stderr)
		}
		all := w.allOrders()
		if want := c.code == Done; want != (len(all) == 1) || want &&
			(all[0].Kind != store.RequestOverrideStorm || all[0].Group != "web") {
			t.Errorf("%s: orders %+v", c.name, all)
		}
	}
}

// proves ROLL-4
func TestRollbackPutsBackWhatWasGood(t *testing.T) {
	w := newWorld(t)
	w.serve()
	good, bad := webGroup(3), webGroup(5)
	good.Vars = map[string]string{"colour": "red"}
	good.Slots.Name, bad.Slots.Name = "web-${slot}", "www-${slot}"
	bad.Workload.Run, bad.Template.InstanceType = []string{"./new"}, "large"
	bad.Paused = true
	w.put(store.KindGroups, "web", bad)
	st := statusOf(bad, 7, 1)
	if code, _, stderr := w.run("group", "rollback", "web"); code != Failed ||
		!strings.Contains(stderr, "the whole group was never healthy") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	st.LastGood = &store.GoodSpec{Revision: 4, Template: good.InstanceSpec().TemplateHash(), Spec: good.InstanceSpec()}
	w.put(store.KindStatus, "web", st)
	before := string(store.Encode(w.spec("web")))
	if out := w.must("group", "rollback", "web", "--dry-run"); !strings.Contains(out,
		`- template.instance_type  "large"`) || string(store.Encode(w.spec("web"))) != before {
		t.Errorf("a dry run: %s", out)
	}
	w.keys = store.KeysOf("shop") // what it advises is for the same shard
	w.put(store.KindGroups, "web", bad)
	w.put(store.KindStatus, "web", st)
	if out := w.must("group", "rollback", "web", "--dry-run", "--shard", "shop"); !strings.Contains(out,
		"Do it: leasehold group rollback web --shard shop\n") {
		t.Errorf("a dry run in another shard: %s", out)
	}
	w.keys = store.KeysOf("default")
	out := w.must("group", "rollback", "web")
	for _, says := range []string{
		"of revision 4\n", `- template.instance_type  "large"`,
		`~ workload.run[0]         "./new" -> "./web"`, `+ vars.colour             "red"`, "web rolled back rev",
		`~ slots.name              "www-${slot}" -> "web-${slot}"`, "web is paused",
	} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is missing in\n%s", says, out)
		}
	}
	got := w.spec("web")
	if got.InstanceSpec().TemplateHash() != st.LastGood.Template || got.Size != 5 || !got.Paused {
		t.Errorf("got %+v", got)
	}
	if code, _, stderr := w.run("group", "rollback", "web"); code != Failed ||
		!strings.Contains(stderr, "there is nothing to roll back to") {
		t.Errorf("again: exit %d: %s", code, stderr)
	}
}

// proves REC-14
func TestRollbackToARevision(t *testing.T) {
	w := newWorld(t)
	w.serve()
	first := webGroup(3)
	first.Vars, first.Budget.MaxExpansion = map[string]string{"colour": "red"}, 2
	then := w.put(store.KindGroups, "web", first)
	between := w.put(store.KindGroups, "web2", strings.ReplaceAll(string(store.Encode(webGroup(1))), `"web"`, `"web2"`))
	second := webGroup(5)
	second.Paused = true
	last := w.put(store.KindGroups, "web", second)
	refused := func(code Code, says string, args ...string) {
		t.Helper()
		if got, _, stderr := w.run(append([]string{"group", "rollback", "web", "--to"}, args...)...); got != code ||
			!strings.Contains(stderr, says) {
			t.Errorf("%v: exit %d: %s", args, got, stderr)
		}
		if g := w.spec("web"); g.Size != 5 {
			t.Errorf("%v: it was changed: %+v", args, g)
		}
	}
	refused(NotFound, fmt.Sprintf("its newest is %d", last), fmt.Sprint(last+1))
	refused(NotFound, "its newest is", "0")
	refused(NotFound, "the group did not exist then", fmt.Sprint(then-1))
	refused(NotFound, fmt.Sprintf("--to %d", then), fmt.Sprint(between))
	refused(Usage, "shrinks from 5 to 3 instances", fmt.Sprint(then))
	if out := w.must("group", "rollback", "web", "--to", fmt.Sprint(then), "--dry-run"); !strings.Contains(out,
		fmt.Sprintf("Do it: leasehold group rollback web --to %d --confirm=web", then)) {
		t.Errorf("a dry run: %s", out)
	}
	refused(Done, "", fmt.Sprint(last)) // it is so already
	out := w.must("group", "rollback", "web", "--to", fmt.Sprint(then), "--confirm", "web")
	for _, says := range []string{
		fmt.Sprintf("web: back to the spec of revision %d\n", then),
		"not brought back: what the workloads have written, and the values of secrets\n",
		"~ size                  5 -> 3", `+ vars.colour           "red"`, "web rolled back rev",
	} {
		if !strings.Contains(out, says) {
			t.Errorf("%q is missing in\n%s", says, out)
		}
	}
	first.Paused = true // that is a command's, and stays
	if got := w.spec("web"); !reflect.DeepEqual(got, first) {
		t.Errorf("got %+v", got)
	}
	w.put(store.KindGroups, "web", `{"schema":1,"name":"web","size":"many","paused":true}`)
	w.must("group", "rollback", "web", "--to", fmt.Sprint(last))
	if err := w.db.Faults().Compact(0); err != nil {
		t.Fatal(err)
	}
	refused(NotFound, fmt.Sprintf("revision %d of group web is no longer in etcd's history", then), fmt.Sprint(then))
}

// An edit between reading and writing is kept.
//
// proves REC-14
func TestRollbackToARevisionLosesToAnotherEdit(t *testing.T) {
	w := newWorld(t)
	w.serve()
	then := w.put(store.KindGroups, "web", webGroup(5))
	w.put(store.KindGroups, "web", webGroup(4))
	w.race(func() { w.put(store.KindGroups, "web", webGroup(3)) })
	if code, _, stderr := w.run("group", "rollback", "web", "--to", fmt.Sprint(then)); code != Conflict ||
		!strings.Contains(stderr, "it was changed") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if g := w.spec("web"); g.Size != 3 {
		t.Errorf("size %d", g.Size)
	}
}
