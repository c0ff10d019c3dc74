package evidence

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// Snapshot puts together what the planner needs for some groups, which come in order of name; ""
// means the shard as a whole. It is valid until the next snapshot, which reuses its memory.
func (e *Evidence) Snapshot(c *cache.Content, groups []string) plan.Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seeDamage(c, groups)
	s := plan.Snapshot{
		Keys: e.cfg.Keys, Revision: c.Revision, Seed: e.cfg.Seed, Shard: c.Shard, Stale: e.stale(c),
		Damaged:         e.allDamage(),
		ShardUnreadable: c.Unreadable[e.cfg.Keys.Shard()] != "",
		GraceEnd:        e.graceEnd, GraceWhy: e.graceWhy, SessionTTL: e.cfg.SessionTTL,
		Zones: e.zones, Full: make(map[plan.Market]map[string]time.Time, len(e.full)), Elsewhere: e.elsewhere(groups),
		Recorded: len(c.Instances), Balancers: maps.Clone(e.traffic.balancers), Configured: configured(c),
		Providers: e.providers,
	}
	if s.Stale != e.wasStale { // that concerns every group
		e.wasStale = s.Stale
		e.markAll(c)
	}
	now := e.cfg.Now()
	for market, zones := range e.full {
		maps.DeleteFunc(zones, func(_ string, until time.Time) bool { return !until.After(now) })
		if len(zones) == 0 {
			delete(e.full, market)
			continue
		}
		s.Full[market] = maps.Clone(zones)
	}
	s.Refusals, s.ClocksApart = e.refused(), max(ClocksApart(c), e.clock.measure(now, now.Sub(e.began)))
	s.Outages, s.Agents, s.NoneAway = e.failing(), agents(c), noneAway(c)
	s.Limits, s.LimitsTurn = Limits(c), c.Turns[plan.LimitsTurn]
	s.BudgetTurns = e.budgetTurns(c)
	for _, name := range groups {
		if name == "" {
			e.shard(c, &s)
			continue
		}
		s.Groups = append(s.Groups, e.group(c, name))
	}
	return s
}

// ClocksApart returns how far the replicas' clocks differ from the leader's, as they measured it.
func ClocksApart(c *cache.Content) time.Duration {
	var behind, ahead store.Duration
	for _, r := range c.Replicas {
		behind, ahead = min(behind, r.Record.ClockOff), max(ahead, r.Record.ClockOff)
	}
	return (ahead - behind).D()
}

// room holds the memory for a group in snapshots, and what each place of an instance shows. Most
// plans are of the same groups, many times, and most of their instances have not changed: they are
// already there.
type room struct {
	instances []plan.Instance
	shown     []shown
	slots     []store.Versioned[store.Slot]
	news      int // of the slots that it shows: see slotNews
}

func (r room) size() int { return max(len(r.instances), len(r.slots)) }

// shown is the instance that a place in a snapshot holds, and what was seen of it by then. It is
// empty if there was no evidence on the instance.
type shown struct {
	of                      *observed
	version, numbers, lists uint64
}

// maxRoom limits how many instances memory is kept for: otherwise the garbage collector would scan
// a whole shard's worth for ever.
const maxRoom = 4096

// roomOf returns the memory for the instances and slots of a group: what its last snapshot had, if
// that is large enough.
func (e *Evidence) roomOf(c *cache.Content, group string) room {
	n, slots := len(c.ByGroup[group]), len(c.Slots[group])
	r := e.rooms[group]
	if n <= len(r.instances) && slots <= len(r.slots) {
		return r
	}
	kept := r.size()
	if n > len(r.instances) {
		r.instances, r.shown = make([]plan.Instance, n), make([]shown, n)
	}
	if slots > len(r.slots) {
		r.slots, r.news = make([]store.Versioned[store.Slot], slots), 0
	}
	delete(e.rooms, group)
	e.roomed -= kept
	switch size := r.size(); {
	case size > maxRoom:
		return r
	case e.roomed+size > maxRoom:
		clear(e.rooms) // of groups that are no longer planned, too
		e.roomed = 0
	}
	e.rooms[group], e.roomed = r, e.roomed+r.size()
	return r
}

func (e *Evidence) group(c *cache.Content, name string) plan.Group {
	g := plan.Group{
		Name: name, Turn: c.Turns[name], Spec: e.spec(c, name), Unreadable: e.unreadable(c, name),
		Status: c.Status[name],
		Due:    e.dueOf(owner{kind: store.KindStatus, name: name}), SlotDue: map[int]plan.Due{},
		Requests: e.requests(c, name), Extras: e.wanted(c, name), Readings: e.readingsOf(name),
	}
	g.Status.Key = e.cfg.Keys.Status(name)
	g.Damaged = e.damage[name]
	e.restoreStatus(c, &g)
	e.restoreSlots(c, &g)
	g.Unlisted = e.waitsFor(c, &g)
	_, g.OnlyNumbers = e.rooms[name]
	g.OnlyNumbers = g.OnlyNumbers && e.onlyDue[name] && !e.dirty[name]
	room := e.roomOf(c, name)
	e.slots(c.Slots[name], &g, room.slots, room.news == e.slotNews[name])
	if kept, there := e.rooms[name]; there {
		kept.news = e.slotNews[name]
		e.rooms[name] = kept
	}
	ids := c.ByGroup[name]
	if len(c.Unreadable) > 0 {
		ids = slices.DeleteFunc(slices.Clone(ids),
			func(id string) bool { return c.Unreadable[e.cfg.Keys.Instance(id)] != "" })
	}
	if len(ids) > 0 {
		g.Instances = room.instances[:len(ids):len(ids)]
		for i, id := range ids {
			if !e.show(c, id, &g.Instances[i], &room.shown[i], e.loads[name], i) {
				g.OnlyNumbers = false
			}
		}
	}
	return g
}

// slots adds the slots of a group, in order of number, if the room does not show them as they are
// already. Nearly always their numbers are those from 0 on.
func (e *Evidence) slots(slots map[int]store.Versioned[store.Slot], g *plan.Group,
	room []store.Versioned[store.Slot], shown bool,
) {
	if len(slots) == 0 {
		return
	}
	g.Slots = room[:len(slots):len(slots)]
	if shown {
		for i := range g.Slots {
			e.slotDue(g, &g.Slots[i])
		}
		return
	}
	var numbers []int // nil: from 0 on
	for i := 0; i < len(slots); i++ {
		n := i
		if numbers != nil {
			n = numbers[i]
		}
		v, there := slots[n]
		if !there {
			numbers, i = slices.Sorted(maps.Keys(slots)), -1 // once more
			continue
		}
		sl := &g.Slots[i]
		if sl.Record.Number != n || sl.Record.Group != g.Name || sl.Modified != v.Modified {
			*sl = v
		}
		e.slotDue(g, sl)
	}
}

func (e *Evidence) slotDue(g *plan.Group, sl *store.Versioned[store.Slot]) {
	if sl.Record.Retry == nil && sl.Record.GiveUp == nil { // nothing else in it has a timer
		return
	}
	if due := e.dueOf(owner{kind: store.KindSlots, name: g.Name, number: sl.Record.Number}); due != nil {
		g.SlotDue[sl.Record.Number] = due
	}
}

// show makes a place of a snapshot show an instance as it is now. Most often only the numbers of
// its report and the List are new: then it returns true.
func (e *Evidence) show(c *cache.Content, id string, in *plan.Instance, at *shown, l *loads, place int,
) (onlyNumbers bool) {
	w := at.of
	if w == nil || at.version != w.version || in.Record.ID != id {
		*at = e.instance(c, id, in)
		return false
	}
	if at.numbers != w.numbers {
		e.settle(c, id, w)
		in.Report, in.ReportSeen = c.Reports[id], w.reportSeen
	} else if i, there := l.find(id, place); there {
		l.show(i, in)
	}
	if at.lists != w.lists {
		in.Sighting = w.sighting
	}
	at.numbers, at.lists = w.numbers, w.lists
	return true
}

// instance collects what is known of an instance, and returns its version.
func (e *Evidence) instance(c *cache.Content, id string, in *plan.Instance) shown {
	*in = plan.Instance{}
	w := e.instances[id]
	if w != nil {
		e.settle(c, id, w)
	}
	in.Versioned, in.Alive, in.Report = c.Instances[id], c.Alive[id], c.Reports[id]
	in.Joined = c.Joined[id].Present()
	if in.Alive.Key == "" {
		in.Alive.Key = e.cfg.Keys.Alive(id)
	}
	if in.Report.Key == "" {
		in.Report.Key = e.cfg.Keys.Report(id)
	}
	if why := c.Unreadable[in.Alive.Key]; why != "" {
		in.AliveUnreadable, in.AliveSpoiled = why, e.spoiled[in.Alive.Key]
		in.Alive.Record.State = "" // the value is unknown now
		in.Alive.Modified, in.Alive.Lease = c.Spoiled[in.Alive.Key].Modified, c.Spoiled[in.Alive.Key].Lease
	}
	if s, spoiled := c.Spoiled[in.Report.Key]; spoiled {
		in.Report.Modified = s.Modified
	}
	if w == nil {
		return shown{}
	}
	in.PhaseStart, in.Born, in.HealthySince, in.StreamSince = w.phaseStart, w.born, w.healthySince, w.streamSince
	in.ReportSeen = w.reportSeen
	in.AliveGone, in.LastState, in.SilentSince = w.aliveGone, w.lastState, w.silentSince
	in.Sighting, in.Calls = w.sighting, w.calls
	in.MemberCalls = e.memberCalls(&in.Record)
	if rec := &in.Record; rec.Drain != nil || rec.Doomed != nil || rec.Protection != nil || rec.Awaits != nil ||
		rec.Upgrade != nil ||
		len(rec.Traffic) > 0 {
		// nothing else in it has a timer
		in.Due = e.dueOf(owner{kind: store.KindInstances, name: id})
	}
	return shown{of: w, version: w.version, numbers: w.numbers, lists: w.lists}
}

// stale returns why the cache must not be used to destroy anything; zero if it may be used.
func (e *Evidence) stale(c *cache.Content) store.Cause {
	if !c.Shard.Present() {
		return store.Cause{Kind: store.CauseShardMissing}
	}
	key, why := e.firstUnreadable(c, func(kind, name string) bool {
		if kind == store.KindInstances {
			group, _, _, _ := e.placeOf(c, name)
			return group == "" // it may be of any
		}
		return kind == store.KindShard
	})
	if key == "" {
		return store.Cause{}
	}
	return store.Cause{Kind: store.CauseRecordSpoiled, Name: key, Text: why}
}

// unreadable returns which record of the group alone cannot be read, and why; "" if all can, or if
// its former value is known.
func (e *Evidence) unreadable(c *cache.Content, group string) string {
	_, why := e.firstUnreadable(c, func(kind, name string) bool {
		key := e.cfg.Keys.Of(kind) + name
		switch kind {
		case store.KindStatus:
			remembered, known := c.Status[name]
			_, ok := before(e, key, remembered, known)
			return name == group && (!ok || c.Spoiled[key].Newer)
		case store.KindSlots:
			of, _, _ := store.SplitSlot(name)
			return of == group && (c.Spoiled[key].Newer || !e.asked(c, key))
		default:
			return false
		}
	})
	return why
}

// restoreStatus plans the group on the former value of a lost or unreadable status, and writes it
// back.
func (e *Evidence) restoreStatus(c *cache.Content, g *plan.Group) {
	why := c.Unreadable[g.Status.Key]
	if m, lost := c.Missing[g.Status.Key]; lost && m.Status != nil {
		g.Status.Record, g.StatusSpoiled = m.Status.Record, "the key was deleted, and not by a leader"
		return
	}
	if why == "" || g.Unreadable != "" {
		return
	}
	remembered, known := c.Status[g.Name]
	g.Status, _ = before(e, g.Status.Key, remembered, known)
	g.Status.Key = e.cfg.Keys.Status(g.Name)
	g.Status.Modified, g.StatusSpoiled = c.Spoiled[g.Status.Key].Modified, why
}

// restoreSlots writes back the slots that cannot be read.
func (e *Evidence) restoreSlots(c *cache.Content, g *plan.Group) {
	if len(c.Unreadable) == 0 || g.Unreadable != "" {
		return
	}
	for key, why := range c.Unreadable {
		kind, name, _ := e.cfg.Keys.Split(key)
		group, n, ok := store.SplitSlot(name)
		if kind != store.KindSlots || !ok || group != g.Name {
			continue
		}
		remembered, known := c.Slots[group][n]
		v, ok := before(e, key, remembered, known)
		if !ok { // it is reset, as a lost one is
			v.Record = store.Slot{Schema: store.Schema, Group: group, Number: n}
		}
		v.Key, v.Modified = key, c.Spoiled[key].Modified
		g.SlotsSpoiled = append(g.SlotsSpoiled, plan.SpoiledSlot{Versioned: v, Why: why})
	}
	slices.SortFunc(g.SlotsSpoiled, func(a, b plan.SpoiledSlot) int { return strings.Compare(a.Key, b.Key) })
}

// asked reports whether the former value of an unreadable slot is known, or known to be lost.
func (e *Evidence) asked(c *cache.Content, key string) bool {
	_, name, _ := e.cfg.Keys.Split(key)
	group, n, _ := store.SplitSlot(name)
	_, remembered := c.Slots[group][n]
	return remembered || e.recalled[key].of == c.Spoiled[key].Modified
}

// firstUnreadable returns the first of the keys that matter which cannot be read, and why; "" if
// all can.
func (e *Evidence) firstUnreadable(c *cache.Content, matters func(kind, name string) bool) (first, why string) {
	for key := range c.Unreadable {
		if kind, name, _ := e.cfg.Keys.Split(key); matters(kind, name) && (first == "" || key < first) {
			first = key
		}
	}
	return first, c.Unreadable[first]
}
