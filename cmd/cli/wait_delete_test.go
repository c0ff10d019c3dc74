package cli

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A wait for a deletion shows what it waits for, and why, until nothing of the group is left.
//
// proves REC-7
func TestWaitForADeletion(t *testing.T) {
	inShard(t, drains(named("web", 2)), func(w *shard) {
		ids := w.ids()
		code, out, stderr := w.run("group", "delete", "web", "--confirm=web", "--wait", "--timeout=20s")
		if code != TimedOut || !strings.HasPrefix(out, "web deleting rev ") {
			t.Errorf("exit %d: %s%s", code, out, stderr)
		}
		saysInOrder(w.t, stderr, "waiting for web: the group gone, with all its instances, at most 20s\n", ids[0]+" ",
			"draining", "REC-7",
			"error: gave up after 20s: web has 2 instances left, 2 draining | held: DRAIN-1 removal of "+ids[0]+
				": it drains: the group is being deleted; until its hook ends, 5m0s is over, or leasehold instance drained "+
				ids[0]+"\n",
			"next: leasehold group show web\n")

		r := w.start("group delete web --wait") // again, to continue waiting
		for _, id := range ids {
			w.must("instance", "drained", id)
		}
		r.expect(Done, "it is already being deleted", ids[1]+" ", "gone", "done: web is gone after ")
		if left := len(w.ids()) + len(w.list(store.KindGroups)) + len(w.list(store.KindStatus)); left > 0 ||
			r.out.String() == "" {
			t.Errorf("%d keys are left: %s", left, r.out.String())
		}
	})
}

// An instance on demand stays, and the output says so.
//
// proves REC-2
func TestWaitLeavesAloneWhatIsOnDemand(t *testing.T) {
	for command, done := range map[string]string{
		"stop":   "done: web has 0 instances left after ",
		"delete": "done: web is gone after ",
	} {
		inShard(t, named("web", 1), func(w *shard) {
			w.must("instance", "create", "-g", "web")
			w.until("it is there", func() bool { return w.status("web").OnDemand == 1 })
			code, _, stderr := w.run("group", command, "web", "--confirm=web", "--wait")
			if left := w.ids(); code != Done || len(left) != 1 {
				t.Errorf("%s: exit %d, left %v: %s", command, code, left, stderr)
			} else {
				saysInOrder(w.t, stderr, done, "; created on demand, and left alone: "+left[0]+"\n")
			}
		})
	}
}

// A wait for an impossible deletion ends at once; an interrupted wait says that the deletion
// continues.
func TestWaitForADeletionEnds(t *testing.T) {
	for name, c := range map[string]struct {
		begin, after func(w *shard)
		code         Code
		says         string
	}{
		"paused": {
			func(w *shard) { w.must("group", "pause", "web") }, func(*shard) {}, Failed,
			"group web is paused: no work is done in it\nnext: leasehold group resume web",
		},
		"held": {
			func(w *shard) { w.must("hold", "etcd is restored") },
			func(w *shard) { w.pass(time.Minute); w.must("release") }, Done, "done: web is gone",
		},
		"written again": {
			func(*shard) {}, func(w *shard) { w.put(store.KindGroups, "web", named("web", 5)) }, Conflict,
			"group web: it was changed (revision ",
		},
		"interrupted": {
			func(*shard) {}, nil, Interrupted,
			"stopped waiting: group web is still being deleted (revision ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inShard(t, drains(named("web", 1)), func(w *shard) {
				c.begin(w)
				ctx, cancel := context.WithCancel(w.t.Context())
				defer cancel()
				r := &waiter{w: w.world, done: make(chan struct{})}
				go func() {
					defer close(r.done)
					r.code = Run(ctx, w.env(&r.out, &r.err),
						[]string{"group", "delete", "web", "--confirm=web", "--wait"})
				}()
				synctest.Wait()
				if c.after == nil {
					cancel()
				} else {
					c.after(w)
				}
				r.expect(c.code, c.says)
			})
		})
	}
}

func drains(g store.Group) store.Group {
	return with(g, func(g *store.Group) { g.Drain.Hook = []string{"./drain"} })
}

// saysInOrder checks that a text says all of this, in this order.
func saysInOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("it does not say %q, or not in this place:\n%s", part, text)
			continue
		}
		rest = after
	}
}
