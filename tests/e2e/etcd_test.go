package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/machines"
)

// awaitCalm waits until nothing of a disturbance is left to happen: every stream is open, and the
// time of grace that follows the last disturbance that any replica tells of is over.
func (c *cluster) awaitCalm(group string, ids []string) {
	c.t.Helper()
	since, last := time.Now(), ""
	c.await("calm", func() bool {
		if ever := c.h.everRecorded(); !slices.Equal(ever, ids) {
			c.t.Fatalf("replaced: there were %v, and by now %v", ids, ever)
		}
		state := c.h.leader()
		for _, id := range ids {
			a := c.h.alive(id)
			state += fmt.Sprintf(" %s %s %d", id, a.Record.State, a.Modified)
			if a.Record.State != store.StreamOpen {
				since = time.Now()
			}
		}
		replicas := currentOf[store.Replica](c.h, store.KindReplicas)
		for _, id := range slices.Sorted(maps.Keys(replicas)) {
			state += fmt.Sprintf(" %s %d", id, replicas[id].Record.Disturbances)
		}
		if state != last || c.h.leader() == "" {
			since, last = time.Now(), state
		}
		return time.Since(since) > grace+time.Second
	})
	c.unreplaced(group, ids)
}

// etcd stands still for longer than the leases and the coordinators' sessions last. Awake again it
// ends leases whose agents live: that is evidence of nothing.
//
// proves SAFE-1, SAFE-5, DET-17
func TestEtcdFreezes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	ids := c.apply("web", 4)
	before := c.caughtUp()
	c.etcd.Signal(syscall.SIGSTOP)
	c.pass(leaseTTL + 4*time.Second)
	c.etcd.Signal(syscall.SIGCONT)
	c.awaitLeader(before, "a", "b")
	c.awaitCalm("web", ids)
	ended := 0
	for _, ch := range c.h.changesOf(store.KindAlive, before) {
		if ch.Deleted {
			ended++
		}
	}
	t.Logf("etcd ended the leases of %d of %d living agents", ended, len(ids))
	// The leader can judge again: the loss of an agent is seen.
	c.signalAgent(ids[0], syscall.SIGSTOP)
	c.awaitEntry("the loss of "+ids[0], before,
		func(n noted) bool { return n.Verdict == store.Lost && n.Instance == ids[0] })
	c.await("a replacement", func() bool { return len(c.h.everRecorded()) == 5 })
	c.awaitComplete("web", 4)
}

// etcd is stopped and started again, for an upgrade say.
//
// proves SAFE-1, SAFE-5
func TestEtcdRestarts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	ids := c.apply("web", 3)
	c.caughtUp()
	c.etcd.Signal(syscall.SIGTERM)
	c.waitEnd(c.etcd)
	if c.etcd.ExitCode() != 0 {
		t.Fatalf("etcd ended with %d: %s", c.etcd.ExitCode(), c.etcd.stderr.String())
	}
	c.pass(leaseTTL + 2*time.Second)
	for _, id := range ids {
		if len(c.residentsOf(id)) < 2 {
			t.Fatalf("of %s there runs only %v while etcd is away", id, c.residentsOf(id))
		}
	}
	c.recovers("web", ids)
}

// etcd is killed and comes back on the same data: what it had confirmed is there.
//
// proves SAFE-5
func TestEtcdIsKilled(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	ids := c.apply("web", 3)
	c.caughtUp()
	c.etcd.KillGroup()
	c.recovers("web", ids)
}

// All coordinators are away for several leases.
//
// proves SAFE-1, SAFE-5, ELECT-3
func TestCoordinatorsAreAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	ids := c.apply("web", 4)
	for _, id := range []string{"a", "b"} {
		c.replicas[id].Signal(syscall.SIGKILL)
	}
	c.waitEnd(c.replicas["a"])
	c.waitEnd(c.replicas["b"])
	before := c.caughtUp()
	c.await("the end of all leases", func() bool { return len(currentOf[store.Alive](c.h, store.KindAlive)) == 0 })
	c.pass(2 * leaseTTL)
	c.startReplica("b")
	c.awaitLeader(before, "b")
	c.awaitCalm("web", ids)
	c.heals("web", 4)
}

// The leader is killed while it makes machines. Another one finishes that, agents move over before
// their leases end, and nothing is made twice. With the leader its process provider is killed: a
// machine whose start that cut short is the only one that may be replaced.
//
// proves ELECT-1, ELECT-2, ELECT-3, SAFE-8, SAFE-11
func TestLeaderIsKilled(t *testing.T) {
	t.Parallel()
	for _, replicas := range [][]string{{"a", "b"}, {"a", "b", "c"}} {
		t.Run(fmt.Sprintf("of %d", len(replicas)), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, replicas...)
			ids := c.apply("web", 3)
			before := c.caughtUp()
			leader := c.h.leader()
			others := slices.DeleteFunc(slices.Clone(replicas), func(id string) bool { return id == leader })

			c.must("group", "scale", "web", "5")
			c.await("the scale-up being under way", func() bool { return len(c.h.everRecorded()) > 3 })
			killed := time.Now()
			c.replicas[leader].Signal(syscall.SIGKILL)

			next := c.awaitLeader(before, others...)
			took := next.At.Sub(killed)
			t.Logf("another leads after %s (target: %s)", took.Round(time.Millisecond), sessionTTL+time.Second)
			if took > sessionTTL+15*time.Second {
				t.Errorf("it took %s until another led", took)
			}
			c.awaitComplete("web", 5)
			c.await("all agents at other replicas", func() bool {
				for _, a := range currentOf[store.Alive](c.h, store.KindAlive) {
					if !slices.Contains(others, a.Record.Replica) {
						return false
					}
				}
				return true
			})
			for _, ch := range c.h.changesOf(store.KindAlive, before) {
				if ch.Deleted {
					t.Errorf("the lease of %s was lost at rev %d", ch.name, ch.KV.Modified)
				}
			}
			interrupted := c.h.entries(before, func(n noted) bool { return n.Replacement != "" })
			for _, n := range interrupted {
				if slices.Contains(ids, n.Instance) || !strings.Contains(n.Why, "its start was interrupted") {
					t.Errorf("replaced without need: %s", n)
				}
			}
			if ever := c.h.everRecorded(); len(ever) != 5+len(interrupted) {
				t.Errorf("3 were there, 2 were wanted more, and there were %v", ever)
			}
			for _, id := range ids {
				if !c.h.instance(id).Present() {
					t.Errorf("%s was replaced", id)
				}
			}
			c.await("no other machines", func() bool { return len(machines.Names(c.machines)) == 5 })
		})
	}
}

// The leader is told to end: it sends its agents away and resigns.
//
// proves ELECT-2, DET-8
func TestLeaderResigns(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	ids := c.apply("web", 3)
	before := c.caughtUp()
	leader, other := c.h.leader(), "a"
	if leader == "a" {
		other = "b"
	}
	told := time.Now()
	c.replicas[leader].Signal(syscall.SIGTERM)
	next := c.awaitLeader(before, other)
	took := next.At.Sub(told)
	t.Logf("another leads after %s (target: 1s)", took.Round(time.Millisecond))
	if took > sessionTTL-time.Second {
		t.Errorf("it took %s until another led: that is no resignation", took)
	}
	c.waitEnd(c.replicas[leader])
	if code := c.replicas[leader].ExitCode(); code != 0 {
		t.Errorf("the replica ended with %d: %s", code, c.replicas[leader].stderr.String())
	}
	c.await("the replica's record being gone", func() bool {
		_, there := currentOf[store.Replica](c.h, store.KindReplicas)[leader]
		return !there
	})
	c.await("all agents at the other replica", func() bool {
		for _, id := range ids {
			if a := c.h.alive(id).Record; a.Replica != other || a.State != store.StreamOpen {
				return false
			}
		}
		return true
	})
	for _, ch := range c.h.changesOf(store.KindAlive, before) {
		v, err := store.Decode[store.Alive](ch.KV)
		if ch.Deleted || err != nil || v.Record.State == store.StreamLost {
			t.Errorf("moving was no quiet affair: %s at rev %d: %s", ch.name, ch.KV.Modified, ch.KV.Value)
		}
	}
	c.unreplaced("web", ids)
	c.heals("web", 3)
}

// A leader stands still for longer than its session lasts. Awake again it is deposed, and writes
// nothing as a leader.
//
// proves SAFE-7, SAFE-1, ELECT-2
func TestLeaderStandsStill(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a", "b")
	ids := c.apply("web", 3)
	before := c.caughtUp()
	leader, other := c.h.leader(), "a"
	if leader == "a" {
		other = "b"
	}
	c.replicas[leader].Signal(syscall.SIGSTOP)
	next := c.awaitLeader(before, other)
	// There is work that it knew nothing of and would do if it believed itself to lead.
	c.must("group", "scale", "web", "4")
	c.pass(max(0, time.Until(next.At.Add(sessionTTL))))
	c.replicas[leader].Signal(syscall.SIGCONT)
	c.await("the replica that stood still being back", func() bool {
		r, there := currentOf[store.Replica](c.h, store.KindReplicas)[leader]
		return there && r.Created > next.rev
	})
	c.awaitComplete("web", 4)
	c.heals("web", 4)
	c.caughtUp()
	// any replica lets agents in
	ofALeader := func(n noted) bool { return n.By == leader && !strings.HasPrefix(n.Rule, "SEC-") }
	for _, n := range c.h.entries(next.rev, ofALeader) {
		t.Errorf("a deposed leader wrote %s", n)
	}
	for _, ch := range c.h.changesOf(store.KindServed, next.rev) {
		if v, err := store.Decode[store.Served](ch.KV); err != nil || v.Record.Replica == leader {
			t.Errorf("a deposed leader noted that it served: %s", ch.KV.Value)
		}
	}
	if c.h.leader() != other {
		t.Errorf("%q leads, and %s was never told to end", c.h.leader(), other)
	}
	for _, id := range ids[1:] {
		if !c.h.instance(id).Present() {
			t.Errorf("%s was replaced", id)
		}
	}
}

// recovers starts etcd on its data, and checks that the instances stay and that the group heals.
func (c *cluster) recovers(group string, ids []string) {
	c.t.Helper()
	c.startEtcd()
	c.await("a leader", func() bool { return c.h.leader() != "" })
	c.awaitCalm(group, ids)
	c.heals(group, len(ids))
}
