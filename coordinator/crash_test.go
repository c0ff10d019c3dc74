package coordinator_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// crash kills a replica at one of the boundaries that it comes to, counted from 1.
type crash struct {
	at      int
	die     func()
	release <-chan struct{} // closed when what stands at a boundary of the dead replica goes on
	late    bool            // that is after the next leader took over
	boots   int             // how often a machine may boot; 0: once

	mu     sync.Mutex
	passed int
	where  string // the boundary at which the replica died; "" as long as it lives
}

func (c *crash) before(boundary, instance string) {
	c.mu.Lock()
	c.passed++
	if c.where == "" && c.passed == c.at {
		c.where = boundary + " " + instance
		c.die()
	}
	dead := c.where != ""
	c.mu.Unlock()
	if dead {
		<-c.release // others of the same process that come here are as dead
	}
}

func (c *crash) struck() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.where
}

// wire is the provider as a process reaches it: what the process has sent arrives, though it has
// died meanwhile.
type wire struct {
	*fake.Provider
	most func() // checks, after each call, that there are not too many machines
}

func (p wire) Create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	defer p.most()
	return p.Provider.Create(context.WithoutCancel(ctx), req)
}

func (p wire) Stop(ctx context.Context, shard, instance string, timeout time.Duration) error {
	return p.Provider.Stop(context.WithoutCancel(ctx), shard, instance, timeout)
}

func (p wire) Restart(ctx context.Context, shard, instance, boot string) error {
	return p.Provider.Restart(context.WithoutCancel(ctx), shard, instance, boot)
}

func (p wire) Delete(ctx context.Context, shard, instance string) error {
	return p.Provider.Delete(context.WithoutCancel(ctx), shard, instance)
}

// How many boundaries a story has at least.
const (
	// three machines are made and three are removed, each in three steps of the provider's, besides
	// all transactions
	ofALife     = 18
	ofADeletion = 6
	ofARestart  = 20
)

// everyBoundary plays a story with the leader dying at the first boundary, then the one so far
// apart from it, and so on, until the story has no more; at least so many there must be.
func everyBoundary(t *testing.T, apart, least int, story func(*world, *crash)) {
	t.Helper()
	for name, late := range map[string]bool{
		"and never speaks again": false,
		"and what it was about to do is done after the next leader took over": true,
	} {
		t.Run(name, func(t *testing.T) {
			struck, left := 0, false // out by -run
			for at := 1; at < 1000; at += apart {
				ran, where := false, ""
				t.Run(fmt.Sprint(at), func(t *testing.T) {
					ran = true
					where = walk(t, at, late, story)
				})
				left = left || !ran
				if t.Failed() {
					t.Fatalf("the leader died at boundary %d: %s", at, where)
				}
				if ran && where == "" {
					break
				}
				struck++
			}
			if struck < (least+apart-1)/apart && !left {
				t.Errorf("the leader died at %d boundaries only", struck)
			}
		})
	}
}

// walk plays a story once and returns the boundary at which the leader died, "" if it came to none
// with this number.
func walk(t *testing.T, at int, late bool, story func(*world, *crash)) (where string) {
	inWorld(t, callsOf(200*time.Millisecond),
		func(w *world) {
			release := make(chan struct{})
			free := sync.OnceFunc(func() { close(release) })
			defer free()
			c := &crash{at: at, release: release, late: late}
			reached := wire{w.provider, func() {
				if n := len(w.provider.Existing()); n > 3 {
					t.Errorf("%d machines exist at once: 2 are wanted, and one may be replaced", n)
				}
			}}
			secured := w.secured()
			first := w.start("first", secured, func(_ *coordinator.Config, deps *coordinator.Deps) {
				deps.Before, deps.Providers = c.before, map[string]provider.Provider{"mem": reached}
			})
			c.die = first.kill
			w.leads(time.Second, "first")
			w.start("second", secured)
			w.until(time.Second, "both replicas serve",
				func() bool { return len(w.list(w.keys.Of(store.KindReplicas))) == 2 })
			if late {
				go w.afterTakeover("second", free)
			}
			story(w, c)
			w.pass(2 * time.Minute) // and it stays so: nothing late makes a machine
			w.sameMachines()
			for _, l := range w.provider.Ledger() {
				if l.Made > 1 || l.Boots > max(1, c.boots) || l.Overlapped && !c.late {
					t.Errorf("machine of %s: made %d times, booted %d times", l.Instance, l.Made, l.Boots)
				}
			}
			where = c.struck()
		})
	return where
}

// afterTakeover does something some seconds after a replica began to lead.
func (w *world) afterTakeover(id string, do func()) {
	defer do()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for seen := 0; seen < 30; {
		select {
		case <-w.over:
			return
		case <-tick.C:
		}
		if w.leader() == id && w.told(id, "ELECT-1") > 0 {
			seen++
		}
	}
}

func lifeOfAGroup(w *world, _ *crash) {
	g := w.group("web", 2)
	w.apply(g)
	ids := w.up(2)
	w.provider.Crash(ids[0], "exit 1")
	w.until(5*time.Minute, "the crashed one is replaced", func() bool {
		return w.settled(2) && !slices.Contains(w.ids(), ids[0]) && len(w.provider.Existing()) == 2
	})
	w.sameMachines()
	g.Size = 1
	w.apply(g)
	w.until(5*time.Minute, "one is left", func() bool { return w.settled(1) && len(w.provider.Existing()) == 1 })
	w.sameMachines()
	w.deleteGroup(g)
	if n := w.made(); n != 3 {
		w.t.Errorf("%d machines were made for 2 slots and one replacement", n)
	}
}

func deletedMeanwhile(w *world, c *crash) {
	g := w.group("web", 2)
	w.apply(g)
	w.until(5*time.Minute, "the leader is dead or all is done", func() bool { return c.struck() != "" || w.settled(2) })
	w.deleteGroup(g)
}

// deleteGroup deletes a group and waits until nothing of it is left.
func (w *world) deleteGroup(g store.Group) {
	w.t.Helper()
	g.Deleting = true
	w.apply(g)
	w.until(5*time.Minute, "the group is gone", func() bool {
		return len(w.list(w.keys.Group(g.Name))) == 0 && len(w.instances()) == 0 && len(w.provider.Existing()) == 0
	})
	for _, kind := range []string{
		store.KindInstances, store.KindSlots, store.KindStatus, store.KindAlive,
		store.KindReports, store.KindGroups, store.KindJoined,
	} {
		for _, kv := range w.list(w.keys.Of(kind)) {
			w.t.Errorf("%s is left", kv.Key)
		}
	}
}

// sameMachines checks that there is a machine for each record and a record for each machine.
func (w *world) sameMachines() {
	w.t.Helper()
	if ids := w.ids(); !slices.Equal(ids, w.provider.Existing()) {
		w.t.Errorf("records are of %v, machines of %v", ids, w.provider.Existing())
	}
}
