package coordinator

import (
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/picture"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// evidence is what a tenure has seen since it began. All its times are of our own clock.
type evidence struct {
	keys         store.Keys
	capabilities map[string]provider.Capabilities

	mu        sync.Mutex
	known     bool        // whether the records were seen at all
	gaps      []store.Gap // in which nobody led, before us (SAFE-13)
	graceEnd  time.Time
	graceWhy  string
	held      bool          // the shard is on hold
	longest   time.Duration // lease_ttl + reconnect back-off, of any instance
	instances map[string]*witness
	retries   map[string]retry // of flapping slots, by key
	extras    map[string]plan.Extra
	full      map[string]map[string]time.Time // see plan.Snapshot
	dirty     map[string]bool                 // groups to plan; "" stands for the shard itself
	due       map[string]time.Time            // when to plan them again unasked
	written   map[string]store.Revision       // our last write to them
	counts    map[string]int                  // disturbances of other replicas

	wake    func()                // something has changed
	suspect func(provider string) // a machine of this provider should be looked at now (DET-3)
}

// witness is what was seen of one instance.
type witness struct {
	group      string
	phase      store.Phase
	phaseStart time.Time
	hasAlive   bool
	aliveGone  time.Time
	lastState  store.StreamState
	sighting   plan.Sighting
	counted    time.Time // when the last List was begun that counted in sighting.Times
	calls      plan.Calls
	failures   int  // of calls in a row
	uncertain  bool // a Create may still take effect that nobody waits for any more
}

// retry is when a flapping slot may be filled again.
type retry struct {
	timer store.Timer
	at    time.Time
}

func newEvidence(keys store.Keys, providers map[string]provider.Provider, wake func(), suspect func(string)) *evidence {
	e := &evidence{
		keys: keys, capabilities: map[string]provider.Capabilities{}, instances: map[string]*witness{}, retries: map[string]retry{},
		extras: map[string]plan.Extra{}, full: map[string]map[string]time.Time{}, dirty: map[string]bool{"": true}, counts: map[string]int{}, due: map[string]time.Time{}, written: map[string]store.Revision{},
		wake: wake, suspect: suspect,
	}
	for name, p := range providers {
		e.capabilities[name] = p.Capabilities()
	}
	return e
}

// swarm is how long further disturbances are covered by the grace of the first.
const swarm = time.Second

// disturb begins a time of grace, or lengthens it.
func (e *evidence) disturb(why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.disturbLocked(why)
}

func (e *evidence) disturbLocked(why string) {
	if e.longest == 0 {
		return // there is no agent who could have to return
	}
	now := time.Now()
	if now.Add(e.longest).Before(e.graceEnd) {
		return // the end that was noted a moment ago will do: troubles come in swarms
	}
	e.graceEnd, e.graceWhy = now.Add(e.longest+swarm), why
	for _, w := range e.instances {
		e.dirty[w.group] = true
	}
}

// Listed takes the whole content up. What was known of an instance that is still in the same phase stays known.
func (e *evidence) Listed(c *picture.Content) {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := !e.known
	e.known = true
	if first && c.Served.Present() {
		// By wall clocks: a wrong one only lengthens a wait.
		e.gaps = gapsUntil(c.Served.Record, time.Now().UTC())
	}
	for id := range e.instances {
		e.forget(c, id)
	}
	for id := range c.Instances {
		if w := e.instances[id]; w != nil && w.hasAlive {
			w.lastState = "" // if its key went meanwhile, we did not see what it said at last
		}
		e.see(c, id, first)
	}
	for group, slots := range c.Slots {
		for n := range slots {
			e.seeSlot(c, group, n, first)
		}
	}
	for name := range c.Groups {
		e.dirty[name] = true
	}
	for name := range c.Status {
		e.dirty[name] = true
	}
	for group := range c.ByGroup {
		e.dirty[group] = true
	}
	for id, r := range c.Replicas {
		e.counts[id] = r.Record.Disturbances
	}
	e.dirty[""] = true
	e.seeHold(c)
	if first {
		e.disturbLocked("a new leader began")
	} else {
		e.disturbLocked("the watch was interrupted")
	}
	e.wake()
}

// Changed takes changes up.
func (e *evidence) Changed(c *picture.Content, changes []picture.Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, change := range changes {
		if change.Same {
			continue
		}
		e.dirty[change.Group] = true
		switch change.Kind {
		case store.KindInstances, store.KindAlive:
			if e.forget(c, change.Name) {
				continue
			}
			if w := e.instances[change.Name]; w != nil && change.Alive != nil {
				w.lastState = change.Alive.State
			}
			e.see(c, change.Name, false)
			if change.Kind == store.KindAlive && suspicious(c, change) {
				e.suspect(c.Instances[change.Name].Record.Spec.Provider)
			}
		case store.KindSlots:
			if group, n, ok := store.SplitSlot(change.Name); ok {
				e.seeSlot(c, group, n, false)
			}
		case store.KindReplicas:
			e.seeReplica(c, change)
		case store.KindShard:
			e.seeHold(c)
			for group := range c.ByGroup {
				e.dirty[group] = true
			}
			for name := range c.Groups {
				e.dirty[name] = true
			}
		}
	}
	e.wake() // the revision has grown, which may be what a group waits for
}

// forget drops the witness of an instance that has no record, and says whether there is none. One whose record cannot be
// read is not forgotten: calls for it may be under way.
func (e *evidence) forget(c *picture.Content, id string) bool {
	if _, ok := c.Instances[id]; ok {
		return false
	}
	if c.Unreadable[e.keys.Instance(id)] == "" {
		delete(e.instances, id)
	}
	return true
}

// Interrupted is told in Listed, when the time to return begins.
func (e *evidence) Interrupted(error) { e.wake() }

// see takes one instance up.
func (e *evidence) see(c *picture.Content, id string, first bool) {
	now := time.Now()
	rec := c.Instances[id].Record
	w := e.instances[id]
	if w == nil {
		w = &witness{phaseStart: now}
		if first {
			// In its phase since before our time. A clock that was wrong then or is now can make the timer run
			// its full length again, or end after the grace of our beginning: neither harms.
			served := now.UTC().Sub(rec.Since)
			for _, gap := range e.gaps {
				served -= gap.Within(rec.Since)
			}
			w.phaseStart = now.Add(-max(0, served))
			w.phase = rec.Phase
		}
		if rec.Called { // by a leader before us, or by us when the record could not be read
			w.calls.AbsentFrom = now.Add(e.callTimeout(rec) + e.consistency(rec))
			w.uncertain = true
		}
		e.instances[id] = w
	}
	w.group = rec.Group
	if w.phase != rec.Phase {
		w.phase, w.phaseStart = rec.Phase, now
	}
	_, alive := c.Alive[id]
	switch {
	case alive:
		w.aliveGone = time.Time{}
	case w.hasAlive || w.aliveGone.IsZero():
		w.aliveGone = now
	}
	w.hasAlive = alive
	// An agent whose machine is there may be trying to reach us, registered or not.
	if ttl := rec.Spec.Report.LeaseTTL.D(); ttl > 0 && (rec.Phase.Registered() || rec.Phase == store.Booting) {
		back := c.Shard.Record.Settings.ReconnectMax.D()
		e.longest = max(e.longest, ttl+back+back/2) // the half is for addresses that do not answer, one after the other
	}
}

// seeHold has the end of a hold begin a time of grace (SAFE-12).
func (e *evidence) seeHold(c *picture.Content) {
	held := c.Shard.Record.Hold != nil
	if e.held && !held {
		e.disturbLocked("the shard's hold was released")
	}
	e.held = held
}

const (
	mostGaps = 100
	gapsKept = 25 * time.Hour // the longest timer that stands still in them is a day's
)

// gapsUntil adds to the gaps in a record the one between its time and now.
func gapsUntil(s store.Served, now time.Time) []store.Gap {
	var gaps []store.Gap
	for _, gap := range s.Gaps {
		if now.Sub(gap.To) < gapsKept {
			gaps = append(gaps, gap)
		}
	}
	if s.At.Before(now) {
		gaps = append(gaps, store.Gap{From: s.At, To: now})
	}
	return gaps[max(0, len(gaps)-mostGaps):]
}

// servedGaps are the gaps to be written down for the next leader.
func (e *evidence) servedGaps() []store.Gap {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gaps
}

func (e *evidence) seeSlot(c *picture.Content, group string, n int, first bool) {
	v, ok := c.Slots[group][n]
	key := fmt.Sprintf("%s/%d", group, n)
	if !ok || v.Record.Retry == nil {
		delete(e.retries, key)
		return
	}
	timer := *v.Record.Retry
	if old, ok := e.retries[key]; ok && old.timer == timer {
		return
	}
	left := timer.For.D()
	if first {
		left = min(left, max(0, timer.Start.Add(timer.For.D()).Sub(time.Now().UTC())))
	}
	e.retries[key] = retry{timer: timer, at: time.Now().Add(left)}
}

// seeReplica takes what another replica suffered for a disturbance, and its end too (SAFE-1, SAFE-11).
func (e *evidence) seeReplica(c *picture.Content, change picture.Change) {
	r, there := c.Replicas[change.Name]
	before, known := e.counts[change.Name]
	switch {
	case !there:
		delete(e.counts, change.Name)
		if known {
			e.disturbLocked("replica " + change.Name + " vanished")
		}
	case r.Record.Disturbances > before && r.Record.Last != nil:
		e.disturbLocked("replica " + change.Name + ": " + r.Record.Last.What)
		e.counts[change.Name] = r.Record.Disturbances
	default:
		e.counts[change.Name] = r.Record.Disturbances
	}
}

func (e *evidence) callTimeout(rec store.Instance) time.Duration {
	return e.capabilities[rec.Spec.Provider].CallTimeout
}

func (e *evidence) consistency(rec store.Instance) time.Duration {
	return e.capabilities[rec.Spec.Provider].Consistency
}

// suspicious says whether a change of an alive key calls for a look at the machine: it is gone, or says anything but open.
func suspicious(c *picture.Content, change picture.Change) bool {
	return change.Deleted || c.Alive[change.Name].Record.State != store.StreamOpen
}
