package sim

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// Epoch is when a world begins, unless its Config says otherwise.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// World is a shard in virtual time. It is for one goroutine.
type World struct {
	cfg      Config
	keys     store.Keys
	chance   chance
	clock    time.Duration // since it began
	agenda   agenda
	number   uint64
	business int // events that are no routine

	db         database
	replicas   []*replica
	leader     *term         // nil: no replica leads
	vacant     time.Duration // no replica is elected before: the session of the last leader has not ended
	terms      int
	skew       time.Duration // of the next leader's clock
	clouds     []*cloud
	balancers  map[string]*traffic
	agents     map[string]*agent // by instance
	bad        map[string]Flaw   // templates by hash
	orders     int
	lost       int // of a hundred commits, whose answers get lost
	interferes int // of a hundred commits, before which something happens to those concerned
	// of a hundred calls to load balancers, that fail
	balancersFail int
	stuckHooks    int              // of a hundred drain hooks, that never end
	loads         map[string]*load // of groups
}

// New makes a world in which the groups have just been applied and a leader is about to be elected.
func New(cfg Config) *World {
	cfg = cfg.withDefaults()
	w := &World{
		cfg: cfg, keys: store.KeysOf(cfg.Shard), chance: newChance(cfg.Seed), db: newDatabase(),
		agents: map[string]*agent{}, bad: map[string]Flaw{},
	}
	for _, p := range cfg.Providers {
		w.clouds = append(w.clouds, newCloud(w, p))
	}
	w.balancers = balancersOf(w)
	w.put(w.keys.Shard(), store.Shard{
		Schema: store.Schema, ID: shardID, Name: cfg.Shard, Created: w.Now(),
		Settings: cfg.Settings,
	}, 0)
	for i := range cfg.Replicas {
		r := &replica{id: fmt.Sprintf("r%d", i+1)}
		w.replicas = append(w.replicas, r)
		w.startReplica(r)
	}
	for _, g := range cfg.Groups {
		w.put(w.keys.Group(g.Name), g, 0)
	}
	return w
}

// Now is the time in the world.
func (w *World) Now() time.Time { return w.cfg.Begins.Add(w.clock) }

// Elapsed is for how long the world has been there.
func (w *World) Elapsed() time.Duration { return w.clock }

// Step has the next event happen. There is always one: a coordinator's day has no end.
func (w *World) Step() {
	if len(w.agenda) == 0 {
		return
	}
	e, ok := heap.Pop(&w.agenda).(event)
	if !ok {
		return
	}
	if !e.routine {
		w.business--
	}
	w.clock = max(w.clock, e.at)
	e.do()
}

// RunUntil has all events happen up to a time.
func (w *World) RunUntil(t time.Time) {
	end := t.Sub(w.cfg.Begins)
	for len(w.agenda) > 0 && w.agenda[0].at <= end {
		w.Step()
	}
	w.clock = max(w.clock, end)
}

// Skip lets time go by until a time, or until something is about to happen before, without what
// happens again and again meanwhile: it happens once, at the end. It does so only where that makes
// no difference: all is quiet, and the leader waits for nothing. Numbers that a group follows come
// when they are due: to the planner a time without any is a pause of the coordinator (AUTO-2). It
// returns how much was skipped.
func (w *World) Skip(until time.Time) time.Duration {
	t := w.leader
	if t == nil || !w.Quiet() || w.db.down || t.frozen > w.clock || t.leader.Pressing() {
		return 0
	}
	if _, wake := t.leader.Next(t.now()); !wake.IsZero() && wake.Add(-t.skew).Before(until) {
		until = wake.Add(-t.skew)
	}
	if at := w.nextNumber(); !at.IsZero() && at.Before(until) {
		until = at
	}
	most := until.Add(-time.Second).Sub(w.Now())
	if most < leastSkip {
		return 0
	}
	w.clock += most
	return most
}

// leastSkip is what is worth skipping: what happens again and again happens at the end of it.
const leastSkip = 8 * time.Second

// Quiet reports whether nothing is about to happen but what happens again and again anyway.
func (w *World) Quiet() bool { return w.business == 0 }

// At has something happen at a time.
func (w *World) At(t time.Time, do func()) { w.after(t.Sub(w.Now()), do) }

// Keys spells the keys of the world's shard.
func (w *World) Keys() store.Keys { return w.keys }

// note tells those who watch what happens outside of the coordinator.
func (w *World) note(format string, args ...any) {
	if w.cfg.Observer.Noted != nil {
		w.cfg.Observer.Noted(w.Now(), fmt.Sprintf(format, args...))
	}
}

// Judgment is what the leader judged of an instance last; false if it did not, or no replica leads.
func (w *World) Judgment(id string) (plan.Judgment, bool) {
	if w.leader == nil {
		return plan.Judgment{}, false
	}
	j, ok := w.leader.judged[id]
	return j, ok
}
