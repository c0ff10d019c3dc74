package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// waiter is a command with --wait under way.
type waiter struct {
	w        *world
	done     chan struct{}
	code     Code
	out, err bytes.Buffer
}

func (w *world) start(args string) *waiter {
	r := &waiter{w: w, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.code = Run(w.t.Context(), w.env(&r.out, &r.err), strings.Fields(args))
	}()
	synctest.Wait()
	return r
}

func (r *waiter) expect(code Code, says ...string) {
	r.w.t.Helper()
	<-r.done
	if r.code != code {
		r.w.t.Errorf("exit %d, want %d: %s", r.code, code, r.err.String())
	}
	for _, s := range says {
		if !strings.Contains(r.err.String(), s) {
			r.w.t.Errorf("%q is missing in\n%s", s, r.err.String())
		}
	}
}

func waitWorld(t *testing.T, begin func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.now = time.Now
		w.serve()
		w.put(store.KindGroups, "web", webGroup(1))
		begin(w)
	})
}

func TestWaitUntilAllRun(t *testing.T) {
	waitWorld(t, func(w *world) {
		r := w.start("group scale web 2 --wait")
		rev := store.Revision(9)
		g := w.spec("web")
		w.put(store.KindStatus, "web", statusOf(g, rev, 0))
		w.put(store.KindInstances, "web-0-a", instanceOf(g, 0, "web-0-a", store.Running))
		w.put(store.KindInstances, "web-1-b", instanceOf(g, 1, "web-1-b", store.Checking))
		now := time.Now()
		e := store.JournalEntry{Schema: 1, At: now, Rule: "REC-3", Group: "web", Instance: "web-1-b", What: "checking"}
		w.put(store.KindEvents, strings.TrimPrefix(w.keys.Event(now, "x"), w.keys.Of(store.KindEvents)), e)
		synctest.Wait()
		select {
		case <-r.done:
			t.Fatal("it did not wait for web-1-b: ", r.err.String())
		default:
		}
		w.put(store.KindInstances, "web-1-b", instanceOf(g, 1, "web-1-b", store.Running))
		r.expect(Done, "waiting for web: 2 running on t", "REC-3    web-1-b        checking",
			"done: web 2/2 running on t")
		if strings.Contains(r.err.String(), "[") || strings.Contains(r.err.String(), "\r") {
			t.Errorf("a line was rewritten without a terminal: %q", r.err.String())
		}
		if r.out.String() != "web size 1 -> 2 rev 9\n" {
			t.Errorf("printed %q", r.out.String())
		}
	})
}

func TestWaitForSurplusToGo(t *testing.T) {
	waitWorld(t, func(w *world) {
		g := webGroup(1)
		w.put(store.KindInstances, "web-0-a", instanceOf(g, 0, "web-0-a", store.Running))
		w.put(store.KindInstances, "web-1-b", instanceOf(g, 1, "web-1-b", store.Running))
		// A group whose name begins with ours is none of our business.
		w.put(store.KindInstances, "web-x-0-c",
			store.Instance{Schema: 1, ID: "web-x-0-c", Group: "web-x", Phase: store.Creating, Managed: true})
		w.put(store.KindStatus, "web", statusOf(g, 8, 1))
		r := w.start("group scale web 1 --wait")
		w.put(store.KindInstances, "web-1-b", instanceOf(g, 1, "web-1-b", store.Draining))
		synctest.Wait()
		select {
		case <-r.done:
			t.Fatal("it did not wait for web-1-b to go: ", r.err.String())
		default:
		}
		w.put(store.KindInstances, "web-1-b", instanceOf(g, 1, "web-1-b", store.Deleting))
		r.expect(Done, "done: web 1/1 running", "; 1 more is still being deleted")
	})
}

func TestWaitEndsWhenItCannotCome(t *testing.T) {
	for _, c := range []struct {
		name  string
		after func(w *world)
		code  Code
		says  string
	}{
		{"invalid", func(w *world) {
			w.put(store.KindStatus, "web",
				store.Status{
					Schema: 1, Group: "web",
					Invalid: &store.InvalidSpec{Revision: 9, Why: "no such provider"},
				})
		}, Failed, "the spec of revision 9 was not accepted: no such provider"},
		{
			"changed again", func(w *world) { w.put(store.KindGroups, "web", webGroup(5)) }, Conflict,
			"it was changed (revision 10)",
		},
		{"the roll takes too long", func(w *world) {
			g := webGroup(2)
			g.Workload.Run = []string{"./old"}
			for slot, id := range []string{"web-0-a", "web-1-b"} {
				w.put(store.KindInstances, id, instanceOf(g, slot, id, store.Running))
			}
			w.put(store.KindStatus, "web", statusOf(webGroup(2), 9, 2))
		}, TimedOut, "gave up after 10m: web 0/2 running on t0b66a48b, 2 outdated"},
		{
			"the roll is stalled", func(w *world) {
				st := outdatedWorld(w)
				st.Rollout.Stalled = "web-2-c is not healthy"
				w.put(store.KindStatus, "web", st)
			}, Failed,
			"is stuck at 1 of 2: web-2-c is not healthy\nnext: leasehold explain web; or leasehold group rollback web",
		},
		{"the template is blamed", func(w *world) {
			st := outdatedWorld(w)
			st.Rollout.Blamed = "two of two failed"
			w.put(store.KindStatus, "web", st)
		}, Failed, "is stuck at 1 of 2: two of two failed"},
		{
			"all that is not healthy is given up", func(w *world) {
				st := statusOf(webGroup(2), 9, 1)
				st.State = store.GroupErrored
				st.Blocked = []store.Blocked{{
					Rule: "FLAP-3", What: "replacement of web-1-b", Why: "slot 1 is given up",
					Until: "leasehold group retry web",
				}}
				w.put(store.KindStatus, "web", st)
			}, Failed,
			"each slot that is not healthy is given up (FLAP-3) | held: FLAP-3 replacement of web-1-b: " +
				"slot 1 is given up; until leasehold group retry web\nnext: leasehold explain web; or leasehold group retry web",
		},
		{"a change is not confirmed yet", func(w *world) {
			st := outdatedWorld(w)
			w.put(store.KindInstances, "web-1-b", instanceOf(webGroup(2), 1, "web-1-b", store.Running))
			w.put(store.KindStatus, "web", st)
		}, TimedOut, "web 2/2 running"},
		{"another roll was stalled", func(w *world) {
			st := outdatedWorld(w)
			st.Rollout.Template, st.Rollout.Stalled = "told", "it was stalled"
			w.put(store.KindStatus, "web", st)
		}, TimedOut, "1/2 running"},
		{
			"nothing happens", func(*world) {}, TimedOut,
			"gave up after 10m: web: waiting for the coordinator to accept revision 9",
		},
		{"no leader", func(w *world) {
			txn := store.Txn{Writes: []store.Write{
				store.Delete(w.keys.Of(store.KindLeader) + "1a"),
				store.Delete(w.keys.Of(store.KindLeader) + "1b"),
			}}
			if _, err := w.st.Commit(w.t.Context(), txn); err != nil {
				w.t.Error(err)
			}
		}, TimedOut, "no coordinator is running, waiting for one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			waitWorld(t, func(w *world) {
				r := w.start("group scale web 2 --wait")
				c.after(w)
				r.expect(c.code, c.says)
			})
		})
	}
}

// outdatedWorld has one instance that is up to date and one that is not, and returns the status
// with the roll to the wanted template.
func outdatedWorld(w *world) store.Status {
	g := webGroup(2)
	w.put(store.KindInstances, "web-0-a", instanceOf(g, 0, "web-0-a", store.Running))
	st := statusOf(g, 9, 2)
	st.Rollout = &store.Rollout{Template: g.InstanceSpec().TemplateHash(), Done: 1, Total: 2}
	g.Workload.Run = []string{"./old"}
	w.put(store.KindInstances, "web-1-b", instanceOf(g, 1, "web-1-b", store.Running))
	return st
}

// An opportunistic roll replaces no outdated instance, so waiting for one never ends.
func TestWaitForAnOpportunisticRoll(t *testing.T) {
	waitWorld(t, func(w *world) {
		g := webGroup(1)
		g.Rollout.Strategy = store.StrategyOpportunistic
		w.put(store.KindGroups, "web", g)
		r := w.start("group scale web 2 --wait")
		w.put(store.KindStatus, "web", outdatedWorldAt(w, 10))
		r.expect(Failed,
			"but 1 of 2 instances is outdated (web-1-b), and rollout.strategy opportunistic replaces none for that "+
				"alone\nnext: leasehold instance replace web-1-b\n")
	})
}

func outdatedWorldAt(w *world, at store.Revision) store.Status {
	st := outdatedWorld(w)
	st.AcceptedRevision = at
	return st
}

// proves REC-11
func TestWaitForAGroupToStop(t *testing.T) {
	waitWorld(t, func(w *world) {
		g := webGroup(1)
		w.put(store.KindInstances, "web-0-a", instanceOf(g, 0, "web-0-a", store.Running))
		r := w.start("group stop web --confirm=web --wait")
		w.put(store.KindStatus, "web", statusOf(g, 10, 1))
		w.put(store.KindInstances, "web-0-a", instanceOf(g, 0, "web-0-a", store.Deleting))
		synctest.Wait()
		select {
		case <-r.done:
			t.Fatal("it did not wait for web-0-a to go: ", r.err.String())
		default:
		}
		if _, err := w.st.Commit(w.t.Context(),
			store.Txn{Writes: []store.Write{store.Delete(w.keys.Instance("web-0-a"))}}); err != nil {
			t.Fatal(err)
		}
		r.expect(Done, "waiting for web: no instance left", "done: web has 0 instances left")
	})
}

// proves ROLL-1
func TestWaitForARestart(t *testing.T) {
	waitWorld(t, func(w *world) {
		g := webGroup(1)
		i := instanceOf(g, 0, "web-0-a", store.Running)
		w.put(store.KindInstances, "web-0-a", i)
		r := w.start("group restart web --wait")
		w.put(store.KindStatus, "web", statusOf(g, 10, 1))
		synctest.Wait()
		select {
		case <-r.done:
			t.Fatal("it did not wait for web-0-a to be restarted: ", r.err.String())
		default:
		}
		i.Relaunch = 1
		w.put(store.KindInstances, "web-0-a", i)
		r.expect(Done, "done: web 1/1 running")
	})
}

func TestWaitOnATerminalRewritesOneLine(t *testing.T) {
	waitWorld(t, func(w *world) {
		w.terminal = true
		r := w.start("group scale web 2 --wait --timeout 90s")
		<-time.After(3 * time.Second) // of the bubble's own clock: the line shows it
		synctest.Wait()
		r.expect(TimedOut,
			noWrap+"[gives up in 1m28s | web: waiting for the coordinator to accept revision 9 | 2s so far]"+wrap+
				"\r\x1b[K"+noWrap+"[gives up in 1m27s", "\r\x1b[Kerror: gave up after 1m30s")
	})
}

// A wait shows the progress of checks: how many pass, and which fails. It does not wait for
// optional ones.
//
// proves DET-9
func TestWaitReportsChecks(t *testing.T) {
	waitWorld(t, func(w *world) {
		w.put(store.KindStatus, "web", statusOf(w.spec("web"), 8, 0))
		w.put(store.KindInstances, "web-0-a", instanceOf(w.spec("web"), 0, "web-0-a", store.Checking))
		w.put(store.KindReports, "web-0-a",
			store.Report{Schema: 1, Instance: "web-0-a", Why: "http:8081: status 503", Checks: []store.CheckReport{
				{Name: "process", Healthy: true},
				{Name: "side", Optional: true},
				{Name: "http:8081", Why: "status 503"},
			}})
		r := w.start("group scale web 1 --wait --timeout 10s")
		r.expect(TimedOut, "gave up after 10s: web 0/1 running on ", " | web-0-a checking: checks 1/2, not http:8081")
	})
}

// What was written stays when the operator stops waiting for it, and that is said.
func TestWaitInterrupted(t *testing.T) {
	for _, c := range []struct{ name, args, says string }{
		{
			"changed", "group scale web 2 --wait",
			"stopped waiting: group web keeps its spec (revision 9), and work in progress continues\nnext: " +
				"leasehold events -g web --follow\n",
		},
		{
			"unchanged", "group scale web 1 --wait",
			"stopped waiting: group web keeps its spec (revision 8), and work in progress continues\nnext: " +
				"leasehold events -g web --follow\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			waitWorld(t, func(w *world) {
				w.terminal = true
				ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
				defer cancel()
				code, _, stderr := w.runCtx(ctx, strings.Fields(c.args)...)
				if code != Interrupted || !strings.HasSuffix(stderr, "\r\x1b[K"+c.says) {
					t.Errorf("exit %d: %q", code, stderr)
				}
			})
		})
	}
}

func TestWaitSurvivesALossOfEtcd(t *testing.T) {
	waitWorld(t, func(w *world) {
		st := w.db.Connect()
		w.st = st
		r := w.start("group scale web 2 --wait")
		st.Faults().Cut()
		<-time.After(10 * time.Second) // of the bubble's own clock: longer than a watch may be silent
		other := *w
		other.st = w.db.Connect()
		g := webGroup(2)
		for slot, id := range []string{"web-0-a", "web-1-b"} {
			other.put(store.KindInstances, id, instanceOf(g, slot, id, store.Running))
		}
		other.put(store.KindStatus, "web", statusOf(g, 9, 2))
		st.Faults().Mend()
		r.expect(Done, "done: web 2/2 running")
	})
}

func TestCountSlots(t *testing.T) {
	g := webGroup(2)
	hash := g.InstanceSpec().TemplateHash()
	with := func(slot int, id string, p store.Phase, change func(*store.Instance)) store.Instance {
		i := instanceOf(g, slot, id, p)
		if change != nil {
			change(&i)
		}
		return i
	}
	old := func(i *store.Instance) { i.Template = "told" }
	for _, c := range []struct {
		name                               string
		have                               []store.Instance
		running, missing, surplus, leaving int
		outdated                           int
	}{
		{"none", nil, 0, 2, 0, 0, 0},
		{"full", []store.Instance{with(0, "a", store.Running, nil), with(1, "b", store.Running, nil)}, 2, 0, 0, 0, 0},
		{"being replaced", []store.Instance{
			with(0, "a", store.Running, nil), with(1, "b", store.Running, nil),
			with(1, "c", store.Checking, nil),
		}, 2, 0, 1, 0, 0},
		{
			"outdated",
			[]store.Instance{with(0, "a", store.Running, old), with(1, "b", store.Running, nil)},
			1, 0, 0, 0,
			1,
		},
		{"outdated beside new", []store.Instance{
			with(0, "a", store.Running, old), with(0, "b", store.Running, nil),
			with(1, "c", store.Running, nil),
		}, 2, 0, 1, 0, 0},
		{"above size", []store.Instance{
			with(0, "a", store.Running, nil), with(1, "b", store.Running, nil),
			with(2, "c", store.Running, nil),
		}, 2, 0, 1, 0, 0},
		{"shrunk", []store.Instance{with(1, "b", store.Running, nil), with(2, "c", store.Running, nil)}, 2, 0, 0, 0, 0},
		{
			"on demand",
			[]store.Instance{with(0, "a", store.Running, func(i *store.Instance) { i.Managed = false })},
			0,
			2, 0, 0, 0,
		},
		{"done", []store.Instance{with(0, "a", store.Finished, old), with(1, "b", store.Running, nil)}, 2, 0, 0, 0, 0},
		{
			"leaving",
			[]store.Instance{with(0, "a", store.Deleting, nil), with(0, "b", store.Running, nil)},
			1, 1, 0, 1,
			0,
		},
	} {
		have := map[string]store.Instance{}
		for _, i := range c.have {
			have[i.ID] = i
		}
		got := countSlots(g, hash, have, nil)
		if got.running != c.running || got.missing != c.missing || got.surplus != c.surplus ||
			got.leaving != c.leaving || len(got.outdated) != c.outdated {
			t.Errorf("%s: got %+v", c.name, got)
		}
	}
}
