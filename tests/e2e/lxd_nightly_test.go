//go:build nightly

package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	faults "github.com/leasehold/leasehold/tests/faults/history"
)

var (
	containerSeeds = flag.Uint64("container-seeds", 1, "how many seeds of harm to containers are played")
	containerFirst = flag.Uint64("container-first", 1, "the first of them")
	containerSeed  = flag.Uint64("container-seed", 0, "play this one alone")
)

// chaos causes faults in a group of containers, from a seed, and knows which instances may be
// replaced for them.
type chaos struct {
	*containers
	seen       *observer
	rng        *rand.Rand
	size       int
	generation int
	may        map[string]string // instances that were harmed, and how
}

// A group of containers is hurt at random, with coordinators killed and etcd restarted in between,
// while it is scaled and rolled. After each round LXD has exactly the machines that are recorded.
// Instances are only removed because they were harmed, or by an order that came after they were
// recorded; and the judge of tests/faults finds no broken promise in the history of it all.
//
// proves PROV-8, SAFE-1, SAFE-8
func TestContainersUnderRandomHarm(t *testing.T) {
	first, last := *containerFirst, *containerFirst+*containerSeeds-1
	if *containerSeed != 0 {
		first, last = *containerSeed, *containerSeed
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := &chaos{
				containers: newContainers(t), rng: rand.New(rand.NewPCG(seed, 16)), size: 4, generation: 1,
				may: map[string]string{},
			}
			c.seen = newObserver(c.containers)
			c.apply()
			c.exact("the group", c.size)
			before := c.caughtUp()
			for round := range 12 {
				what := c.round()
				t.Logf("round %d: %s", round, strings.Join(what, "; "))
				c.exact(fmt.Sprintf("round %d: %s", round, strings.Join(what, "; ")), c.size)
			}
			c.seen.verdict(c.size)
			for _, e := range c.h.entries(before, func(n noted) bool { return n.To == store.Deleting }) {
				if c.may[e.Instance] == "" && !c.byOrder(e, before) &&
					!(e.Rule == "ROLL-1" && c.ofLastGood(e.Instance, before)) {
					t.Errorf("removed, and nothing was wrong with it: %s", e)
				}
			}
			c.seen.close()
			c.must("group", "delete", "web", "--confirm", "web", "--wait")
			c.await("nothing being left", func() bool { return len(c.listed()) == 0 })
		})
	}
}

func (c *chaos) apply() {
	c.t.Helper()
	c.must("group", "apply", "-f", c.groupOf(c.size, c.generation, leaseTTL, "none"), "--confirm", "web")
}

// round causes one or two faults at once, and returns what they were.
func (c *chaos) round() []string {
	c.t.Helper()
	well := slices.Clone(c.h.wanted("web"))
	c.rng.Shuffle(len(well), func(i, j int) { well[i], well[j] = well[j], well[i] })
	harms := []func(id string) string{c.killHard, c.stopIt, c.freeze, c.cutOff, c.freezeBriefly, c.cutBriefly, c.restart}
	troubles := []func() string{c.killLeader, c.killOther, c.restartEtcd, c.scale, c.roll}
	before := c.may[well[0]]
	what := []string{harms[c.rng.IntN(len(harms))](well[0])}
	if c.rng.IntN(2) == 0 {
		what = append(what, troubles[c.rng.IntN(len(troubles))]())
	}
	if c.may[well[0]] != before {
		c.await("the replacement of "+well[0], func() bool { return !slices.Contains(c.h.wanted("web"), well[0]) })
	}
	return what
}

func (c *chaos) hurt(id, how string) string {
	c.may[id] = how
	return id + " was " + how
}

func (c *chaos) killHard(id string) string {
	c.seen.harm(id, faults.Crashed, false)
	pid, err := c.lxd.InitPID(c.machine(id).Name)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return c.hurt(id, "killed")
}

func (c *chaos) stopIt(id string) string {
	c.seen.harm(id, faults.Crashed, false)
	c.setState(id, "stop")
	return c.hurt(id, "stopped")
}

func (c *chaos) freeze(id string) string {
	c.seen.harm(id, faults.Frozen, false)
	c.setState(id, "freeze")
	return c.hurt(id, "frozen")
}

func (c *chaos) cutOff(id string) string {
	c.seen.harm(id, faults.Cut, false)
	c.cut(id)
	return c.hurt(id, "cut off")
}

// freezeBriefly freezes a machine for less than its lease lasts.
func (c *chaos) freezeBriefly(id string) string {
	c.seen.harm(id, faults.Frozen, false)
	c.setState(id, "freeze")
	c.pass(time.Duration(c.rng.Int64N(int64(2 * interval))))
	c.setState(id, "unfreeze")
	c.seen.harm(id, faults.Frozen, true)
	return id + " was frozen briefly"
}

// cutBriefly cuts a machine off for less than its lease lasts.
func (c *chaos) cutBriefly(id string) string {
	c.seen.harm(id, faults.Cut, false)
	c.cut(id)
	c.pass(time.Duration(c.rng.Int64N(int64(2 * interval))))
	c.mend(id)
	c.seen.harm(id, faults.Cut, true)
	return id + " was cut off briefly"
}

func (c *chaos) restart(id string) string {
	boot := c.h.alive(id).Record.BootID
	c.must("instance", "restart", id)
	c.await("another boot of "+id, func() bool {
		now := c.h.alive(id).Record.BootID
		return now != "" && now != boot
	})
	return id + " was restarted"
}

func (c *chaos) killLeader() string {
	id := c.h.leader()
	if id == "" {
		return "there was no leader"
	}
	c.kill(id)
	return "coordinator " + id + ", which led, was killed"
}

func (c *chaos) killOther() string {
	for id := range c.replicas {
		if id != c.h.leader() {
			c.kill(id)
			return "coordinator " + id + " was killed"
		}
	}
	return "there is no other coordinator"
}

// kill kills a coordinator and starts it again.
func (c *chaos) kill(id string) {
	c.seen.during("coordinator killed", id, func() {
		c.replicas[id].KillGroup()
		c.replica(id)
	})
}

func (c *chaos) restartEtcd() string {
	c.seen.during("etcd restarted", "its only member", func() {
		c.etcd.KillGroup()
		c.startEtcd()
	})
	return "etcd was killed and started again"
}

// scale changes the size; who goes is the planner's choice.
func (c *chaos) scale() string {
	c.size = 3 + c.rng.IntN(3)
	c.apply()
	return fmt.Sprintf("scaled to %d", c.size)
}

func (c *chaos) roll() string {
	c.generation++
	c.apply()
	return fmt.Sprintf("rolled to generation %d", c.generation)
}

// ofLastGood reports whether a machine was made amid a roll to replace another one: from the last
// good template (ROLL-9), so that the roll then replaces it too.
func (c *chaos) ofLastGood(id string, since store.Revision) bool {
	return len(c.h.entries(since, func(n noted) bool {
		text := n.String()
		return strings.Contains(text, id+" requested") && strings.Contains(text, "made from the last good template")
	})) > 0
}

// byOrder reports whether the group was scaled or rolled while the instance was recorded, before
// its removal. The leader may record an instance at any time, also between two steps of this test,
// so revisions decide.
func (c *chaos) byOrder(removal noted, since store.Revision) bool {
	all := c.h.changesOf(store.KindInstances, 0)
	first := slices.IndexFunc(all, func(i change) bool { return i.name == removal.Instance })
	if first < 0 {
		return false
	}
	made := all[first].KV.Modified
	return slices.ContainsFunc(c.h.changesOf(store.KindGroups, since), func(order change) bool {
		return made < order.KV.Modified && order.KV.Modified <= removal.Revision
	})
}
