package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// stalled writes a group whose roll is stalled by one instance, in which another one was replaced.
func (x *exhibit) stalled(name string) {
	x.t.Helper()
	x.group(name, 3)
	sick, fresh := name+"-1-a", name+"-2-a"
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = name, "mem", 3
	g.Complete()
	x.put(map[string]any{
		x.keys.Of(store.KindLeader) + "a": store.Leader{Schema: store.Schema, Replica: "coord-a", Since: x.now},
		x.keys.Status(name): store.Status{
			Schema: store.Schema, Group: name, Accepted: &g, AcceptedRevision: 1 << 40, State: store.GroupStarted,
			Health: 66, Healthy: 2, Since: x.now, Phases: map[store.Phase]int{store.Running: 2, store.Checking: 1},
			Rollout: &store.Rollout{
				Template: "t2", Since: x.now.Add(-time.Hour), Progress: x.now.Add(-time.Hour), Total: 3,
				Stalled: "no further instance got healthy and up to date within 10m0s",
			},
			Blocked: []store.Blocked{
				{
					Rule: "DET-10", Kind: store.BlockedByChecks, Work: store.WorkHealth, Instance: sick,
					Of: store.BlockedFacts{Group: name, Text: "http:8080: status 404", For: store.Duration(10 * time.Minute)},
				},
				{
					Rule: "HEAL-1", Kind: store.BlockedByHealPolicy, Work: store.WorkReplace, Instance: name + "-0-a",
					Of: store.BlockedFacts{Group: name, Text: "timed out"},
				},
			},
		},
		x.keys.Instance(sick): store.Instance{
			Schema: store.Schema, ID: sick, Group: name, Slot: 1, Phase: store.Checking, Managed: true, Zone: "b",
			Since: x.now, Created: x.now.Add(-time.Hour), Template: "t2",
			Spec: store.InstanceSpec{Provider: "mem", MaxChecking: store.Duration(10 * time.Minute)},
			Last: store.Decision{Rule: "ROLL-2", What: "back after its restart", Why: "after 0s"},
		},
		x.keys.Report(sick): store.Report{
			Schema: store.Schema, Instance: sick, BootID: "b", Received: x.now, Why: "http:8080: status 404",
		},
		x.keys.Instance(fresh): store.Instance{
			Schema: store.Schema, ID: fresh, Group: name, Slot: 2, Phase: store.Running, Managed: true, Zone: "c",
			Since: x.now, Created: x.now, Template: "t1", Replaces: name + "-2-old", Spec: store.InstanceSpec{Provider: "mem"},
		},
	})
}

// proves WEB-1: a newcomer finds which instance is sick and why, what a stalled roll waits for,
// what would free it, what happens next and when, which instance was replaced, and what a rule says
func TestANewcomerFindsTheCause(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.stalled("web")
	const sick = `<a href="/i/web-1-a">web-1-a</a>`
	for path, wants := range map[string][]string{
		"/": {
			`<b><a href="/g/web">web</a></b>`, "within 10m0s; it waits for " + sick, "health of " + sick,
			"<code>leasehold explain web</code> <span class=\"dim\">or</span> <code>leasehold group rollback web</code>",
			`replacement of <a href="/i/web-0-a">web-0-a</a>`,
		},
		"/g/web": {
			"it waits for " + sick, "<code>leasehold group rollback web</code>", "health of " + sick,
			"freed when:</span> it passes its checks, or fails after 10m0s",
			"freed by:</span> <code>leasehold instance replace web-0-a</code>",
			"web-1-a has failed, unless it is healthy", `aria-label="web-1-a is starting, checking: http:8080: status 404"`,
			`aria-label="web-2-a is live, in place of web-2-old"`, `in place of <a href="/i/web-2-old">`,
		},
		"/i/web-1-a": {
			"web-1-a is starting, checking: http:8080: status 404.", "freed when:", "Next:",
			x.now.Add(10 * time.Minute).Format("01-02 15:04:05"),
		},
		"/events?rule=ROLL-4": {"A roll that makes no progress is stalled and says why"},
	} {
		_, body, _ := x.get(path)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q:\n%s", path, want, body)
			}
		}
	}
	_, body, _ := x.get("/g/web")
	if n := strings.Count(body, "health of "); n != 1 {
		t.Errorf("the page of the group says %d times what waits for health, once is enough", n)
	}
	if strings.Contains(body, "freed when:</span> leasehold") {
		t.Error("a command is shown as if it were an event")
	}
}
