package evidence

import (
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// Listed records the whole content. Knowledge of an instance that is still in the same phase stays.
func (e *Evidence) Listed(c *cache.Content) {
	e.mu.Lock()
	e.takeAll(c)
	e.mu.Unlock()
	e.cfg.Wake()
}

func (e *Evidence) takeAll(c *cache.Content) {
	first := !e.known
	e.known = true
	if first && c.Served.Present() {
		// By wall clocks: a wrong one only lengthens a wait.
		e.gaps = gapsUntil(c.Served.Record, e.cfg.Now().UTC())
	}
	clear(e.specs) // in case it is another database than before
	clear(e.rooms)
	clear(e.slotNews)
	e.roomed = 0
	clear(e.rolling)
	for id := range e.instances {
		e.forget(c, id)
	}
	e.dropTimers(c)
	for id := range c.Instances {
		if w := e.instances[id]; w != nil && w.hasAlive {
			w.lastState = "" // if its key was deleted meanwhile, we did not see its last state
		}
		e.see(c, id, first)
	}
	clear(e.loads)
	for group, slots := range c.Slots {
		for n := range slots {
			e.seeSlot(c, group, n, first)
		}
	}
	for group := range c.Status {
		e.seeStatus(c, group, first)
	}
	e.sharing = newSharing()
	for group := range c.GroupNames() {
		e.seeSharing(c, group)
	}
	for id, r := range c.Replicas {
		e.counts[id] = r.Record.Disturbances
	}
	e.agents, e.noneAway = agents(c), noneAway(c)
	e.seeProviders(c)
	for id := range c.Strays {
		e.seeStray(c, id)
	}
	for id := range e.extras {
		e.seeStray(c, id)
	}
	e.recheckAll = true
	e.markAll(c)
	e.dropTallies(everything(c))
	e.seeHold(c)
	if first {
		e.disturb("a new leader began")
	} else {
		e.disturb("the watch was interrupted")
	}
}

// Changed records changes.
func (e *Evidence) Changed(c *cache.Content, changes []cache.Change) {
	var suspects []string
	e.mu.Lock()
	for _, change := range changes {
		if change.Loads != nil {
			e.seeLoads(c, change.Loads)
			continue
		}
		if change.Same {
			e.seeSame(c, change)
			continue
		}
		if change.Numbers {
			e.seeStatus(c, change.Name, false) // the wishes have timers
			continue
		}
		e.dirty[change.Group] = true
		if provider := e.take(c, change); provider != "" {
			suspects = append(suspects, provider)
		}
	}
	e.mu.Unlock()
	for _, provider := range suspects {
		e.cfg.Suspect(provider)
	}
	e.cfg.Wake() // the revision has grown, which may be what a group waits for
}

// take records one change. It returns the provider to list now, if any.
func (e *Evidence) take(c *cache.Content, change cache.Change) (suspect string) {
	switch change.Kind {
	case store.KindInstances, store.KindStatus, store.KindStrays, store.KindGone:
		e.recheck[change.Group] = true
	}
	if change.Kind == store.KindInstances && c.Unreadable[e.cfg.Keys.Instance(change.Name)] != "" {
		group, _, _, _ := e.placeOf(c, change.Name) // the change cannot say it if the record was never read
		e.recheck[group], e.dirty[group] = true, true
	}
	switch change.Kind {
	case store.KindInstances, store.KindAlive, store.KindReports:
		if e.forget(c, change.Name) {
			e.markOrders(c, c.ToInstance[change.Name])
			e.markOrders(c, c.ToGroup[change.Group])
			break
		}
		if w := e.instances[change.Name]; w != nil && change.Alive != nil {
			w.lastState = change.Alive.State
		}
		e.see(c, change.Name, false)
		if p := c.Instances[change.Name].Record.Spec.Provider; change.Kind == store.KindAlive && suspicious(c, change) &&
			p != store.ProviderNone {
			suspect = p
		}
		if change.Kind == store.KindInstances {
			e.seeStray(c, change.Name)
		}
	case store.KindRequests:
		e.markOrders(c, []string{change.Name})
	case store.KindGroups, store.KindStatic:
		e.seeSharing(c, change.Group)
		if len(e.tagged[change.Group]) > 0 {
			e.dirty[""] = true // the group may be paused or deleted, which concerns its extra machines
		}
		e.markOrders(c, c.ToGroup[change.Group])
	case store.KindStatus:
		e.seeStatus(c, change.Name, false)
		e.seeSharing(c, change.Name)
		e.markOrders(c, c.ToGroup[change.Group])
	case store.KindStrays:
		e.seeStray(c, change.Name)
		e.dirty[""] = true
	case store.KindSlots:
		if group, n, ok := store.SplitSlot(change.Name); ok {
			e.seeSlot(c, group, n, false)
		}
	case store.KindReplicas:
		e.seeReplica(c, change)
		e.seeAgents(c)
		e.seeProviders(c)
	case store.KindServed:
		e.seeAgents(c)
	case store.KindShard:
		e.seeHold(c)
		e.markAll(c)
	}
	return suspect
}

// markOrders marks what these requests concern as dirty.
func (e *Evidence) markOrders(c *cache.Content, ids []string) {
	for _, id := range ids {
		if r, there := c.Requests[id]; there {
			_, group := e.concerns(c, r.Record)
			e.dirty[group] = true
		}
	}
}

// forget drops what was observed of an instance without a record, and reports whether there is no
// record. If the record cannot be read, it is kept: calls for the instance may be in progress.
func (e *Evidence) forget(c *cache.Content, id string) bool {
	if _, ok := c.Instances[id]; ok {
		return false
	}
	e.touch(id)
	if c.Unreadable[e.cfg.Keys.Instance(id)] == "" {
		delete(e.instances, id)
		delete(e.timers, owner{kind: store.KindInstances, name: id})
		e.dropTraffic(id)
	}
	return true
}

// touch makes the next snapshot show an instance again.
func (e *Evidence) touch(id string) {
	if w := e.instances[id]; w != nil {
		w.version++
	}
}

// Interrupted only wakes the leader. The grace begins in Listed.
func (e *Evidence) Interrupted(error) { e.cfg.Wake() }

// see records one instance.
func (e *Evidence) see(c *cache.Content, id string, first bool) {
	now := e.cfg.Now()
	rec := c.Instances[id].Record
	w := e.instances[id]
	if w == nil {
		w = e.meet(rec, now, first)
		e.instances[id] = w
		if x, extra := e.extras[id]; extra {
			// it has a record now; once that is gone, only a later List proves that the machine is
			// gone as well
			e.dropExtra(x)
		}
	}
	w.version++
	w.group, w.provider, w.site, w.kind = rec.Group, rec.Spec.Provider, rec.Site, machineKindOf(rec)
	if token := restartOf(rec); w.phase != rec.Phase || w.restart != token && token != "" {
		w.phase, w.phaseStart = rec.Phase, now
		w.restart, w.calls.Missing = token, false
	}
	alive, hasAlive := c.Alive[id]
	if key := e.cfg.Keys.Alive(id); c.Unreadable[key] != "" {
		hasAlive = true // the key exists, readable or not
		if e.spoiled[key].IsZero() {
			e.spoiled[key] = now
		}
	}
	switch {
	case hasAlive:
		w.aliveGone = time.Time{}
	case w.hasAlive || w.aliveGone.IsZero():
		w.aliveGone = now
	}
	w.hasAlive = hasAlive
	w.seeStream(alive.Record, now, first)
	e.settle(c, id, w)
	w.seeReport(c.Reports[id].Modified, now, first)
	report := c.Reports[id].Record
	w.seeHealth(hasAlive && report.Healthy && report.BootID == alive.Record.BootID, report.BootID, now, first)
	e.seeTimers(owner{kind: store.KindInstances, name: id}, rec.Timers(), first)
	e.seeTraffic(&rec)
	// The agent of an existing machine may be trying to reach us, registered or not.
	var returns time.Duration
	if ttl := rec.Spec.Report.LeaseTTL.D(); ttl > 0 && (rec.Phase.Registered() || rec.Phase == store.Booting) {
		back := c.Shard.Record.Settings.ReconnectMax.D()
		returns = ttl + back + max(back/2, unanswered)
	}
	if returns < w.returns && now.Add(w.returns).After(w.returnsUntil) {
		w.returned, w.returnsUntil = w.returns, now.Add(w.returns)
	}
	w.returns = returns
}

// longestReturn returns how long the agent of any instance may need to return: lease_ttl and the
// reconnect back-off, current values and, until agents with the old values had their time, former
// ones.
func (e *Evidence) longestReturn(now time.Time) (longest time.Duration) {
	for _, w := range e.instances {
		longest = max(longest, w.returns)
		if now.Before(w.returnsUntil) {
			longest = max(longest, w.returned)
		}
	}
	return longest
}

// unanswered allows for two replicas that do not answer, one after the other, in an agent's round
// through all of them.
const unanswered = 2 * protocol.AnswerTimeout

// meet returns the observations of an instance that is seen for the first time.
func (e *Evidence) meet(rec store.Instance, now time.Time, first bool) *observed {
	w := &observed{phaseStart: now}
	if first { // in its phase since before our term
		w.phase, w.phaseStart = rec.Phase, now.Add(-e.led(rec.Since, now))
		w.restart = restartOf(rec)
	}
	w.born = w.phaseStart
	if !rec.Created.IsZero() {
		w.born = now.Add(-max(0, now.UTC().Sub(rec.Created)))
	}
	if rec.Called { // by an earlier leader, or by us when the record could not be read
		caps := e.cfg.Capabilities[rec.Spec.Provider]
		w.calls.AbsentFrom = now.Add(caps.CallTimeout + caps.Consistency)
		w.uncertain = true
	}
	return w
}

// restartOf returns the token of the restart in a record: one at the next level restarts its phase.
func restartOf(rec store.Instance) string {
	if rec.Restart == nil {
		return ""
	}
	return rec.Restart.Token
}

// seeStream records since when the stream is in its state. It may have entered the state in our
// first listing before our term.
func (w *observed) seeStream(alive store.Alive, now time.Time, first bool) {
	switch {
	case !w.hasAlive:
	case !alive.State.Troubled():
		w.silentSince = time.Time{}
	case w.silentSince.IsZero():
		w.silentSince = now
	}
	switch {
	case !w.hasAlive:
		w.stream, w.streamSince = "", time.Time{}
	case w.stream == alive.State:
	case first && !alive.Since.IsZero():
		w.stream, w.streamSince = alive.State, now.Add(-max(0, now.UTC().Sub(alive.Since)))
	default:
		w.stream, w.streamSince = alive.State, now
	}
}

// seeHealth records since when the instance is healthy in its current boot. An instance that was
// running and healthy before our term counts as healthy since it began to run.
func (w *observed) seeHealth(healthy bool, boot string, now time.Time, first bool) {
	switch {
	case !healthy:
		w.healthySince = time.Time{}
	case !w.healthySince.IsZero() && w.healthyBoot == boot:
	case first && w.phase == store.Running:
		w.healthySince = w.phaseStart
	default:
		w.healthySince = now
	}
	w.healthyBoot = boot
}

func (e *Evidence) seeStatus(c *cache.Content, group string, first bool) {
	status := c.Status[group].Record
	e.seeTimers(owner{kind: store.KindStatus, name: group}, status.Timers(), first)
	if status.Rollout != nil {
		e.rolling[group] = true
	} else {
		delete(e.rolling, group)
	}
}

func (e *Evidence) seeSlot(c *cache.Content, group string, n int, first bool) {
	slot := c.Slots[group][n].Record
	e.slotNews[group]++
	e.seeTimers(owner{kind: store.KindSlots, name: group, number: n}, slot.Timers(), first)
}

// seeHold begins a grace at the end of a hold (SAFE-12).
func (e *Evidence) seeHold(c *cache.Content) {
	held := c.Shard.Record.Hold != nil
	if e.held && !held {
		e.disturb("the shard's hold was released")
	}
	e.held = held
}

// seeReplica treats a disturbance of another replica, and its end, as a disturbance (SAFE-1,
// SAFE-11).
func (e *Evidence) seeReplica(c *cache.Content, change cache.Change) {
	r, there := c.Replicas[change.Name]
	e.seeUnnoted(change.Name, r.Record)
	before, known := e.counts[change.Name]
	switch {
	case !there:
		delete(e.counts, change.Name)
		if known {
			e.disturb("replica " + change.Name + " vanished")
		}
	case r.Record.Disturbances > before && r.Record.Last != nil:
		e.disturb("replica " + change.Name + ": " + r.Record.Last.What)
		e.counts[change.Name] = r.Record.Disturbances
	default:
		e.counts[change.Name] = r.Record.Disturbances
	}
}

// seeUnnoted records that a replica has, or had until now, agents without a record that it cannot
// note: machines that seem unwanted may be theirs.
func (e *Evidence) seeUnnoted(replica string, r store.Replica) {
	if r.Unnoted > 0 || e.crowded[replica] {
		e.unnoted = e.cfg.Now()
	}
	if r.Unnoted > 0 {
		e.crowded[replica] = true
	} else {
		delete(e.crowded, replica) // also of a replica that is gone
	}
}

// suspicious reports whether a change of an alive key requires a List: the key is gone, or its
// state is not open.
func suspicious(c *cache.Content, change cache.Change) bool {
	return change.Deleted || c.Alive[change.Name].Record.State != store.StreamOpen
}
