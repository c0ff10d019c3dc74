package gateway_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// wanted returns the wanted states that the agent received since the last call, one per line. It
// skips other messages.
func (a *agent) wanted() []string {
	a.t.Helper()
	synctest.Wait()
	for range len(a.in) {
		if msg := <-a.in; msg.GetWanted() != nil {
			a.told = append(a.told, msg.GetWanted())
		}
	}
	var out []string
	for _, w := range a.told {
		line := fmt.Sprintf("%s %s run %v", w.GetLifecycle(), w.GetConfigHash(), w.GetRun())
		for _, name := range slices.Sorted(maps.Keys(w.GetVars())) {
			line += fmt.Sprintf(" %s=%s", name, w.GetVars()[name])
		}
		for _, c := range w.GetChecks() {
			line += fmt.Sprintf(" check %s every %s", c.GetName(), c.GetInterval().AsDuration())
		}
		if w.GetRestartToken() != "" {
			line += " restart " + w.GetRestartToken()
		}
		if l := w.GetOnLeaseLost(); l != nil {
			line += fmt.Sprintf(" without lease %s %v", l.GetAction(), l.GetRun())
		}
		if n := w.GetNotices(); n != nil {
			line += fmt.Sprintf(" watch %s %s%s", n.GetSource(), n.GetFile(), n.GetEndpoint())
		}
		if d := w.GetDrain(); d != nil {
			line += fmt.Sprintf(" drain %s %v for %s", d.GetToken(), d.GetHook(), d.GetTimeout().AsDuration())
		}
		if d := w.GetDrill(); d != nil {
			line += fmt.Sprintf(" kill its %s for %s", d.GetKind(), d.GetToken())
		}
		if u := w.GetUpgrade(); u != nil {
			line += fmt.Sprintf(" upgrade %s from %v, %s left", u.GetToken(), u.GetAddresses(), u.GetLeft().AsDuration())
		}
		out = append(out, line)
	}
	a.told = nil
	return out
}

func (a *agent) wantTold(what string, want ...string) {
	a.t.Helper()
	if got := a.wanted(); !slices.Equal(got, want) {
		a.t.Errorf("%s: told %q, want %q", what, got, want)
	}
}

// workloadRecord makes an instance's record with a workload.
func (w *world) workloadRecord(id string, change func(*store.Instance)) {
	w.t.Helper()
	rec := store.Instance{
		Schema: store.Schema, ID: id, Group: "web", Phase: store.Running, Managed: true, Config: "c1",
		Spec: store.InstanceSpec{
			Provider: "mem", Report: store.ReportSpec{
				Interval: store.Duration(interval),
				LeaseTTL: store.Duration(leaseTTL),
			},
			Workload: store.Workload{Run: []string{"./web"}}, Vars: map[string]string{"greeting": "hello"},
			Lifecycle: store.LifecycleService,
			Drain:     store.DrainSpec{Timeout: store.Duration(5 * time.Minute), Hook: []string{"./drain", "${port}"}},
		},
	}
	if change != nil {
		change(&rec)
	}
	w.put(w.keys.Instance(id), store.Encode(rec))
}

// proves ROLL-2, HEAL-1, DRAIN-1
func TestAgentIsSentWhatItsRecordWants(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.wantTold("after the welcome", "service c1 run [./web] greeting=hello")
		drain := &store.Drain{Token: "d1", Timer: store.Timer{Start: time.Now(), For: store.Duration(2 * time.Minute)}}
		for _, step := range []struct {
			what   string
			change func(*store.Instance)
			want   []string
		}{
			{"another phase", func(i *store.Instance) { i.Phase = store.Checking }, nil},
			{"other vars", func(i *store.Instance) {
				i.Config, i.Spec.Vars = "c2", map[string]string{"greeting": "hi"}
			}, []string{"service c2 run [./web] greeting=hi"}},
			{"the same again", func(i *store.Instance) {
				i.Config, i.Spec.Vars = "c2", map[string]string{"greeting": "hi"}
			}, nil},
			{"restart", func(i *store.Instance) {
				i.Phase, i.Restart = store.Stopping, &store.Restart{Level: store.RestartWorkload, Token: "r1"}
			}, []string{"service c1 run [./web] greeting=hello restart r1"}},
			{"restart done", func(i *store.Instance) {
				i.Phase, i.Restart = store.Starting, &store.Restart{Level: store.RestartWorkload, Token: "r1"}
			}, nil}, // another boot may have come up, to which it is as new
			{"healthy", nil, []string{"service c1 run [./web] greeting=hello"}},
			{"restart of the machine", func(i *store.Instance) {
				i.Phase, i.Restart = store.Stopping,
					&store.Restart{Level: store.RestartMachine, Token: "r2", Renews: true}
			}, nil},
			{"boot that may not know what to run", func(i *store.Instance) {
				i.Phase, i.Restart = store.Checking,
					&store.Restart{Level: store.RestartMachine, Token: "r2", Renews: true}
			}, []string{"service c1 run [./web] greeting=hello restart r2"}},
			{"boot that knows", func(i *store.Instance) {
				i.Phase, i.Restart = store.Checking, &store.Restart{Level: store.RestartMachine, Token: "r2"}
			}, []string{"service c1 run [./web] greeting=hello"}},
			{"drain", func(i *store.Instance) { i.Phase, i.Drain = store.Draining, drain }, []string{
				"service c1 run [./web] greeting=hello drain d1 [./drain ${port}] for 2m0s",
			}},
			{
				"returned", func(i *store.Instance) { i.Drain = drain },
				[]string{"service c1 run [./web] greeting=hello"},
			},
			{
				"task", func(i *store.Instance) { i.Spec.Lifecycle = store.LifecycleTask },
				[]string{"task c1 run [./web] greeting=hello"},
			},
			{"checks", func(i *store.Instance) {
				i.Config, i.Spec.Checks = "c3",
					[]store.Check{{
						Name: "tcp:80", Interval: store.Duration(5 * time.Second),
						TCP: &store.TCPCheck{Port: "80"},
					}}
			}, []string{"service c3 run [./web] greeting=hello check tcp:80 every 5s"}},
			{"of unknown making", func(i *store.Instance) { i.Config = "" }, []string{"service  run []"}},
		} {
			w.workloadRecord("web-0", step.change)
			a.wantTold(step.what, step.want...)
		}
		w.put(w.keys.Instance("web-0"), []byte("{"))
		a.wantTold("unreadable")
	})
}

// An agent receives an offer as soon as a replica serves it, even if the record of the offer
// existed before.
//
// proves PROV-7
func TestAnOfferAwaitsWhoServesIt(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		const bare = "service c1 run [./web] greeting=hello"
		a.wantTold("after the welcome", bare)
		w.workloadRecord("web-0", func(i *store.Instance) {
			i.Upgrade = &store.AgentUpgrade{
				Version: "v1.1.0", Token: "u1", Within: store.Duration(time.Minute),
				Timer: store.Timer{Start: time.Now(), For: store.Duration(8 * time.Minute)},
			}
		})
		a.wantTold("of an offer that no replica serves")
		two := store.Replica{
			Schema: store.Schema, ID: "two", Address: "two", Downloads: "192.0.2.1:1",
			AgentReleases: []store.AgentRelease{{Version: "v1.1.0", Platform: "linux/amd64", Statement: "s", Path: "/a"}},
		}
		w.put(w.keys.Replica("two"), store.Encode(two))
		a.wantTold("of an offer that is served", bare+" upgrade u1 from [192.0.2.1:1], 8m0s left")
		two.Version = "v2"
		w.put(w.keys.Replica("two"), store.Encode(two))
		a.wantTold("of the same again")
		w.remove(w.keys.Replica("two"))
		a.wantTold("of an offer that is no longer served", bare)
		two.Downloads = "192.0.2.2:1"
		pass(time.Millisecond)
		w.put(w.keys.Replica("two"), store.Encode(two))
		a.wantTold("of an offer that is served again", bare+" upgrade u1 from [192.0.2.2:1], 7m59.999s left")
	})
}

// A replica whose cache is old has read the record when the agent said hello, and nothing older
// counts.
//
// proves HEAL-1
func TestOldCacheSendsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", func(i *store.Instance) {
			i.Phase, i.Restart = store.Stopping, &store.Restart{Level: store.RestartWorkload, Token: "r1"}
		})
		synctest.Wait()
		r.store.Faults().StallWatches()
		w.workloadRecord("web-0", nil)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.wantTold("with an old cache", "service c1 run [./web] greeting=hello")
		r.store.Faults().ReleaseWatches()
		pass(time.Second)
		a.wantTold("with a new cache")
	})
}

// The wanted state reaches the agent however much changes while its stream is busy: only the last
// one counts.
//
// proves HEAL-1
func TestWhatIsWantedIsNeverDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.wanted()
		r.beforeRenewing(func(context.Context) {
			for i := range 100 {
				w.workloadRecord("web-0", func(rec *store.Instance) { rec.Config = fmt.Sprintf("c%d", i) })
			}
			synctest.Wait() // the gateway has seen them all
		})
		a.reports()
		a.wantTold("after the last change", "service c99 run [./web] greeting=hello")
	})
}

// proves DET-16, ROLL-2, HEAL-1, DRAIN-1
func TestWhatAnAgentHasDoneIsPersistedAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", nil)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		report := &protocol.Report{Healthy: true}
		a.report(report)
		seen := timestamppb.New(time.Now())
		for _, step := range []struct {
			what string
			say  func()
			got  func(store.Report) bool
		}{
			{"config hash", func() { report.ConfigHash = "c1" }, func(r store.Report) bool { return r.Config == "c1" }},
			{"restart", func() { report.Restarted = "r1" }, func(r store.Report) bool { return r.Restarted == "r1" }},
			{"drain", func() { report.Drained = "d1" }, func(r store.Report) bool { return r.Drained == "d1" }},
			{"notice", func() {
				report.Notice = &protocol.Notice{
					Kind: "spot", Why: "taken back", In: durationpb.New(2 * time.Minute),
					At: seen,
				}
			}, func(r store.Report) bool {
				n := r.Notice
				return n != nil && n.Kind == "spot" && n.Why == "taken back" && n.In.D() == 2*time.Minute &&
					n.At.Equal(seen.AsTime())
			}},
			{"notice withdrawn", func() { report.Notice = nil }, func(r store.Report) bool { return r.Notice == nil }},
			{
				"exit", func() { report.WorkloadExit = &protocol.WorkloadExit{} },
				func(r store.Report) bool { return r.Workload != nil },
			},
		} {
			step.say()
			a.report(report)
			if got := w.report("web-0").Record; !step.got(got) || got.Sequence != a.number {
				t.Errorf("%s: persisted is %+v", step.what, got)
			}
		}
		report.Notice = &protocol.Notice{Kind: "spot", In: durationpb.New(2 * time.Minute), At: seen}
		a.report(report)
		before := w.report("web-0").Modified
		report.Notice.In = durationpb.New(time.Minute)
		a.report(report)
		if w.report("web-0").Modified != before {
			t.Error("that a notice's time runs is taken for news")
		}
		report.Notice.In = durationpb.New(-time.Minute)
		report.Restarted = "r2"
		a.report(report)
		if n := w.report("web-0").Record.Notice; n == nil || n.In != 0 {
			t.Errorf("notice of a time that is over is %+v, want no time left", n)
		}
	})
}

// proves SPOT-1
func TestAgentIsSentTheSourceOfNotices(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", func(i *store.Instance) {
			i.Spec.Notices = store.NoticeSpec{Source: store.NoticeFile, File: "/run/notice"}
		})
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.wantTold("after the welcome", "service c1 run [./web] greeting=hello watch file /run/notice")
		w.workloadRecord("web-0", func(i *store.Instance) { i.Spec.Notices = store.NoticeSpec{} })
		a.wantTold("when nothing is to be watched any more", "service c1 run [./web] greeting=hello")
	})
}

// proves SAFE-9
func TestAgentIsSentWhatToDoWithoutALease(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.workloadRecord("web-0", func(i *store.Instance) {
			i.Spec.Report.OnLeaseLost = store.LeaseLost{Do: store.LeaseLostRun, Run: []string{"./fence"}}
		})
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.wantTold("after the welcome", "service c1 run [./web] greeting=hello without lease run [./fence]")
		w.workloadRecord("web-0", func(i *store.Instance) {
			i.Spec.Report.OnLeaseLost = store.LeaseLost{Do: store.LeaseLostNone}
		})
		a.wantTold("when nothing is to be done any more", "service c1 run [./web] greeting=hello")
	})
}

// A drill is sent soon after its order, on the stream that the leader named, and on no later one:
// an agent that was killed and returns keeps running.
//
// proves DAY-6
func TestDrillIsSentOnOneStream(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.webGroup(false)
		w.workloadRecord("web-0", nil)
		a := r.welcomed(hello("web-0", "boot1", 1))
		a.wantTold("after the welcome", "service c1 run [./web] greeting=hello")
		order := func(kind store.DrillKind, token string, epoch uint64, ago time.Duration) {
			w.workloadRecord("web-0", func(i *store.Instance) {
				i.Drill = &store.Drill{Request: token, Kind: kind, Epoch: epoch, At: time.Now().Add(-ago), Asked: true}
			})
		}
		order(store.DrillMachine, "r0", 1, 0)
		order(store.DrillAgent, "r1", 1, 2*store.DrillTold)
		order(store.DrillAgent, "r2", 2, 0)
		a.wantTold("of a machine, too late, for another stream")
		order(store.DrillAgent, "r3", 1, 0)
		a.wantTold("its agent", "service c1 run [./web] greeting=hello kill its agent for r3")
		a.hangUp()
		b := r.welcomed(hello("web-0", "boot1", 2))
		defer b.hangUp()
		b.wantTold("back", "service c1 run [./web] greeting=hello")
	})
}

// webGroup makes the group of the instances.
func (w *world) webGroup(paused bool) {
	w.t.Helper()
	g := store.DefaultGroup()
	g.Schema, g.Name, g.Provider, g.Paused = store.Schema, "web", "mem", paused
	w.put(w.keys.Group("web"), store.Encode(g))
}

// An agent in a static group receives drills, with or without an override.
//
// proves DAY-6, REC-6, REC-13
func TestDrillIsSentInAStaticGroup(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		order := func(token string) {
			w.workloadRecord("web-0", func(i *store.Instance) {
				i.Drill = &store.Drill{Request: token, Kind: store.DrillWorkload, Epoch: 1, At: time.Now(), Asked: true}
			})
		}
		beside := func(paused bool) {
			o := store.Override{Schema: store.Schema, Name: "web"}
			o.Paused = paused
			w.put(w.keys.Group("web"), store.Encode(o))
		}
		g := store.DefaultGroup()
		g.Schema, g.Name, g.Provider = store.Schema, "web", "mem"
		w.put(w.keys.Static("web"), store.Encode(g))
		w.workloadRecord("web-0", nil)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.wantTold("after the welcome", "service c1 run [./web] greeting=hello")
		order("r0")
		a.wantTold("the file alone", "service c1 run [./web] greeting=hello kill its workload for r0")
		beside(true)
		order("r1")
		a.wantTold("paused beside it", "service c1 run [./web] greeting=hello")
		beside(false)
		order("r2")
		a.wantTold("the pause is over", "service c1 run [./web] greeting=hello kill its workload for r2")
	})
}

// No drill is sent while the shard is on hold or the group is paused, nor after that time: the
// order was for another moment.
//
// proves DAY-6, SAFE-12, REC-13
func TestDrillIsNotSentInAHoldOrAPause(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		shard := func(hold *store.Hold) {
			w.put(w.keys.Shard(), store.Encode(store.Shard{
				Schema: store.Schema, ID: shardID, Settings: store.DefaultShardSettings(), Hold: hold,
			}))
		}
		order := func(token string) {
			w.workloadRecord("web-0", func(i *store.Instance) {
				i.Drill = &store.Drill{Request: token, Kind: store.DrillWorkload, Epoch: 1, At: time.Now(), Asked: true}
			})
		}
		w.workloadRecord("web-0", nil)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.wantTold("after the welcome", "service c1 run [./web] greeting=hello")
		order("r0")
		a.wantTold("without the group")
		w.webGroup(false)
		shard(&store.Hold{By: "ada", Why: "y"})
		order("r1")
		a.wantTold("on hold")
		shard(nil)
		a.wantTold("the hold is over")
		w.webGroup(true)
		order("r2")
		a.wantTold("paused")
		w.webGroup(false)
		a.wantTold("the pause is over")
		order("r3")
		a.wantTold("ordered again", "service c1 run [./web] greeting=hello kill its workload for r3")
	})
}
