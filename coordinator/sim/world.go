package sim

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// Epoch is the time at which a world begins, unless its Config says otherwise.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// World is a shard in virtual time. It must be used by one goroutine.
type World struct {
	cfg      Config
	keys     store.Keys
	chance   chance
	clock    time.Duration // since the world began
	agenda   agenda
	number   uint64
	business int // number of events that are not routine

	db         database
	replicas   []*replica
	leader     *term         // nil: no replica leads
	vacant     time.Duration // no replica is elected before: the session of the last leader has not ended
	terms      int
	skew       time.Duration // skew of the next leader's clock
	clouds     []*cloud
	balancers  map[string]*traffic
	agents     map[string]*agent   // by instance
	inOrder    []*agent            // the same in order of instance; nil: to be sorted again
	ofGroup    map[string][]*agent // and by group; a list never changes
	bad        map[string]Flaw     // templates by hash
	orders     int
	lost       int // percentage of commits whose answers get lost
	interferes int // percentage of commits before which Interfere acts
	// percentage of calls to load balancers that fail
	balancersFail int
	stuckHooks    int              // percentage of drain hooks that never end
	loads         map[string]*load // by group
}

// New returns a world in which the groups have just been applied and a leader is about to be
// elected.
func New(cfg Config) *World {
	cfg = cfg.withDefaults()
	w := &World{
		cfg: cfg, keys: store.KeysOf(cfg.Shard), chance: newChance(cfg.Seed), db: newDatabase(),
		agents: map[string]*agent{}, ofGroup: map[string][]*agent{}, bad: map[string]Flaw{},
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

// Now returns the time in the world.
func (w *World) Now() time.Time { return w.cfg.Begins.Add(w.clock) }

// Elapsed returns the time since the world began.
func (w *World) Elapsed() time.Duration { return w.clock }

// Step performs the next event. There always is one.
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

// RunUntil performs all events up to a time.
func (w *World) RunUntil(t time.Time) {
	end := t.Sub(w.cfg.Begins)
	for len(w.agenda) > 0 && w.agenda[0].at <= end {
		w.Step()
	}
	w.clock = max(w.clock, end)
}

// Skip advances the time to until, or to just before the next event that is not routine, and skips
// routine events in between: they happen once, at the end. It does so only if that makes no
// difference: nothing is pending, and the leader waits for nothing. Numbers that a group follows
// arrive when they are due, because to the planner a time without any is a pause of the coordinator
// (AUTO-2). It returns how much time was skipped.
func (w *World) Skip(until time.Time) time.Duration {
	t := w.leader
	if t == nil || !w.Quiet() || w.db.down || t.frozen > w.clock || t.leader.Pressing() {
		return 0
	}
	if _, wake := t.leader.NextStep(t.now()); !wake.IsZero() && wake.Add(-t.skew).Before(until) {
		until = wake.Add(-t.skew)
	}
	if at := w.nextNumber(); !at.IsZero() && at.Before(until) {
		until = at
	}
	most := until.Add(-time.Second).Sub(w.Now())
	if most < minSkip {
		return 0
	}
	w.clock += most
	return most
}

// minSkip is the shortest time worth skipping, since routine events happen at its end.
const minSkip = 8 * time.Second

// Quiet reports whether no event but routine is scheduled.
func (w *World) Quiet() bool { return w.business == 0 }

// At schedules a function.
func (w *World) At(t time.Time, do func()) { w.after(t.Sub(w.Now()), do) }

// Keys returns the keys of the world's shard.
func (w *World) Keys() store.Keys { return w.keys }

// note reports to observers what happens outside of the coordinator.
func (w *World) note(format string, args ...any) {
	if w.cfg.Observer.Noted != nil {
		w.cfg.Observer.Noted(w.Now(), fmt.Sprintf(format, args...))
	}
}

// Judgment returns the leader's last judgment of an instance; false if there is none, or no replica
// leads.
func (w *World) Judgment(id string) (plan.Judgment, bool) {
	if w.leader == nil {
		return plan.Judgment{}, false
	}
	j, ok := w.leader.judged[id]
	return j, ok
}
