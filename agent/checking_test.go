package agent

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// webCheck checks a port. Another port makes it another check.
func webCheck(name, port string, optional bool) *protocol.CheckSpec {
	return &protocol.CheckSpec{
		Name: name, Interval: durationpb.New(2 * time.Second), Timeout: durationpb.New(time.Second),
		UnhealthyThreshold: 2, HealthyThreshold: 2, Optional: optional,
		Kind: &protocol.CheckSpec_Http{Http: &protocol.HTTPCheck{Port: port}},
	}
}

// checking returns what is wanted of an agent with these checks.
func checking(hash string, specs ...*protocol.CheckSpec) *protocol.Wanted {
	w := config(hash, "hi")
	w.Checks = specs
	return w
}

// checkStory is a story of an agent that knows from its document that there are checks, and not
// which.
func checkStory(t *testing.T, change func(*Config), tell func(t *testing.T, r *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newShard(t, "a")
		r := startAgent(t, s, newMachine(true), func(c *Config) {
			withOld(c)
			c.Bootstrap.Checked = true
			if change != nil {
				change(c)
			}
		})
		pass(time.Millisecond)
		tell(t, r)
		r.end()
		if !r.checker.closed {
			t.Error("the agent ended, and the checks go on")
		}
	})
}

// verdict checks what the last report says, and that there was one at once.
func (r *running) verdict(what string, healthy bool, why, hash string) *protocol.Report {
	r.t.Helper()
	report := r.tells(what)
	if report.GetHealthy() != healthy || report.GetWhy() != why || report.GetConfigHash() != hash {
		r.t.Errorf("%s: reported healthy %t, %q, configuration %q; want %t, %q, %q", what, report.GetHealthy(),
			report.GetWhy(), report.GetConfigHash(), healthy, why, hash)
	}
	return report
}

// proves DET-1, DET-9
func TestNewInstanceIsHealthyOnceItsChecksPass(t *testing.T) {
	checkStory(t, nil, func(t *testing.T, r *running) {
		r.verdict("before it knows what to check", false, "it is not known yet what to check", "")
		r.want(checking("c2", webCheck("http:1", "1", false), webCheck("http:2", "2", true)), 3)
		report := r.verdict("told", false, "http:1: not checked yet", "c2")
		if c := report.GetChecks(); len(c) != 3 || c[0].GetName() != "process" || c[1].GetKind() != "http" ||
			!c[1].GetPending() || !c[2].GetOptional() {
			t.Fatalf("checks are %v", c)
		}
		r.checker.result(t, 0, "refused")
		r.checker.result(t, 0, "")
		r.silent("nothing is decided")
		r.checker.result(t, 0, "")
		r.verdict("two passes", true, "", "c2")
		r.checker.result(t, 0, "hung")
		r.silent("one failure")
		r.checker.result(t, 0, "hung")
		if c := r.verdict("two failures", false, "http:1: hung", "c2").GetChecks()[1]; c.GetThreshold() != 2 ||
			c.GetAgainst() != 0 || c.GetPending() {
			t.Errorf("check is %v", c)
		}
	})
}

// proves DET-9
func TestOptionalCheckIsReportedAndChangesNothing(t *testing.T) {
	checkStory(t, nil, func(t *testing.T, r *running) {
		r.want(checking("c2", webCheck("http:1", "1", true)), 1)
		r.verdict("told", true, "", "c2")
		r.checker.result(t, 0, "refused")
		r.checker.result(t, 0, "refused")
		if c := r.verdict("it fails", true, "", "c2").GetChecks()[1]; c.GetHealthy() || c.GetWhy() != "refused" ||
			!c.GetOptional() {
			t.Errorf("check is %v", c)
		}
	})
}

// A check that comes while an instance is at work changes its verdict only by results, and is
// confirmed once there are enough: a roll waits for that.
//
// proves DET-9, ROLL-2
func TestNewCheckOnARunningInstance(t *testing.T) {
	for name, fails := range map[string]bool{"passes": false, "fails": true} {
		t.Run(name, func(t *testing.T) {
			checkStory(t, nil, func(t *testing.T, r *running) {
				r.want(checking("c2", webCheck("http:1", "1", false)), 1)
				r.checker.result(t, 0, "")
				r.checker.result(t, 0, "")
				r.verdict("healthy", true, "", "c2")
				since := r.checker.States()[0].Since

				r.want(checking("c3", webCheck("http:1", "1", false), webCheck("http:2", "2", false)), 3)
				r.verdict("updated", true, "", "c2") // it is at work, and does not say yet that it has the update
				if s := r.checker.States(); !s[0].Since.Equal(since) || s[0].Pending {
					t.Errorf("the check that is as before was started over: %+v", s)
				}
				if fails {
					r.checker.result(t, 1, "refused")
					r.checker.result(t, 1, "refused")
					r.verdict("checked", false, "http:2: refused", "c3")
					r.want(checking("c4", webCheck("http:1", "1", false), webCheck("http:2", "3", false)), 1)
					r.verdict("another definition", false, "http:2: not checked yet", "c4")
					r.checker.result(t, 1, "")
					r.checker.result(t, 1, "")
					r.verdict("mended", true, "", "c4")
					return
				}
				r.checker.result(t, 1, "")
				r.checker.result(t, 1, "")
				r.verdict("checked", true, "", "c3")
			})
		})
	}
}

// proves DET-9, HEAL-1
func TestRestartOfTheWorkloadIsCheckedAfresh(t *testing.T) {
	checkStory(t, nil, func(t *testing.T, r *running) {
		r.want(checking("c2", webCheck("http:1", "1", false)), 1)
		r.checker.result(t, 0, "")
		r.checker.result(t, 0, "")
		r.verdict("healthy", true, "", "c2")
		w := checking("c2", webCheck("http:1", "1", false))
		w.RestartToken = "r1"
		r.want(w, 3)
		if report := r.verdict("restarted", false, "http:1: not checked yet", "c2"); report.GetRestarted() != "r1" {
			t.Errorf("report is %v, want the token", report)
		}
	})
}

// proves DET-9
func TestVerdictsOutliveTheAgent(t *testing.T) {
	dir := t.TempDir()
	in := func(boot string) func(*Config) {
		return func(c *Config) { c.StateDir, c.BootID, c.Farewell, c.KeepWorkload = dir, boot, FarewellRestart, true }
	}
	specs := []*protocol.CheckSpec{webCheck("http:1", "1", false), webCheck("http:2", "2", false)}
	checkStory(t, in("boot-1"), func(t *testing.T, r *running) {
		r.want(checking("c2", specs...), 1)
		for i := range specs {
			r.checker.result(t, i, "")
			r.checker.result(t, i, "")
		}
		r.verdict("healthy", true, "", "c2")
	})
	checkStory(t, in("boot-1"), func(t *testing.T, r *running) {
		r.verdict("next run, before anything was checked", true, "", "c2")
		r.want(checking("c2", specs...), 2)
		r.silent("told what it knows")
		r.checker.result(t, 1, "refused")
		r.checker.result(t, 1, "refused")
		r.verdict("a threshold is reached", false, "http:2: refused", "c2")
	})
	if data, err := os.ReadFile(dir + "/agent.json"); err != nil || !strings.Contains(string(data), "refused") {
		t.Errorf("state is %s, %v", data, err)
	}
	checkStory(t, in("boot-1"), func(_ *testing.T, r *running) {
		r.verdict("the run after that", false, "http:2: refused", "c2")
	})
	checkStory(t, in("boot-2"), func(_ *testing.T, r *running) {
		r.verdict("another boot of one that was ill", false, "http:1: not checked yet", "c2")
		for i := range specs {
			r.checker.result(t, i, "")
			r.checker.result(t, i, "")
		}
		r.verdict("it is well", true, "", "c2")
	})
	checkStory(t, in("boot-3"), func(_ *testing.T, r *running) {
		r.verdict("another boot of one that was well", false, "http:1: not checked yet", "c2")
	})
}

// proves REC-12, DET-9
func TestTaskThatIsDoneIsNotCheckedAnyMore(t *testing.T) {
	checkStory(t, func(c *Config) { c.Bootstrap.Lifecycle = "task" }, func(t *testing.T, r *running) {
		w := checking("c2", webCheck("http:1", "1", false))
		w.Lifecycle = "task"
		r.want(w, 1)
		r.verdict("at work", false, "http:1: not checked yet", "c2")
		r.machine.exit(0)
		if report := r.verdict("done", true, "", "c2"); len(report.GetChecks()) != 1 {
			t.Errorf("checks are %v", report.GetChecks())
		}
	})
}

// proves DET-18
func TestRetiredInstanceIsNotChecked(t *testing.T) {
	checkStory(t, nil, func(t *testing.T, r *running) {
		r.want(checking("c2", webCheck("http:1", "1", false)), 1)
		refused := &protocol.Refused{Reason: protocol.Refused_RETIRED, Revision: 7, Phase: protocol.PhaseDeleting}
		r.shard.act("a", script{refuse: refused})
		r.shard.order(t, "a", &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Refused{Refused: refused}})
		if s := r.checker.States(); len(s) != 0 {
			t.Errorf("still checked: %+v", s)
		}
		r.shard.act("a", script{})
		pass(maxReconnect)
		if s := r.checker.States(); len(s) != 1 || s[0].Healthy {
			t.Errorf("welcomed again, the checks are %+v", s)
		}
	})
}

// An agent without a record has nothing to check, and reports that soon (REC-8).
//
// proves DET-9
func TestUnknownConfigurationHasNoChecks(t *testing.T) {
	checkStory(t, nil, func(_ *testing.T, r *running) {
		r.verdict("before", false, "it is not known yet what to check", "")
		r.want(&protocol.Wanted{Lifecycle: "service"}, 1)
		r.verdict("told", true, "", "")
	})
}
