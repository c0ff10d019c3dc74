package evidence

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// aBite is the number of instances in a batch of a full pass, while nothing else happens.
const aBite = 1000

// TakeDirty returns the groups to plan on a cache of this revision, in order. A group whose last
// write by us is not in the cache yet stays dirty until the cache wakes us. Groups that share a
// budget are returned together. A full pass comes in batches, and only if nothing has happened to
// any group, or at every other call (REC-1): so no group waits for the whole pass, and the pass
// ends.
func (e *Evidence) TakeDirty(rev store.Revision, now time.Time) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.onlyDue)
	for _, name := range e.due.until(now) {
		e.onlyDue[name] = !e.dirty[name]
		e.dirty[name] = true
	}
	for name := range e.dirty {
		delete(e.pass, name)
	}
	if e.yielded || len(e.dirty) == 0 {
		e.passBatch()
		e.yielded = false
	} else {
		e.yielded = len(e.pass) > 0
	}
	late := e.sharing.together(e.dirty, func(group string) bool { return e.written[group] > rev })
	var out []string
	behind := map[string]bool{} // a new one: a map that once was large stays slow to walk
	for _, name := range slices.Sorted(maps.Keys(e.dirty)) {
		if e.written[name] > rev || late[name] {
			behind[name] = true
			continue
		}
		delete(e.written, name)
		e.due.drop(name)
		out = append(out, name)
	}
	e.dirty = behind
	return out
}

// passBatch marks the next groups of the pass as dirty.
func (e *Evidence) passBatch() {
	for size := 0; len(e.pass) > 0; e.course = e.course[1:] {
		name := e.course[0]
		n, there := e.pass[name]
		if !there {
			continue // it was planned meanwhile, because it had changed
		}
		if size > 0 && size+n > aBite {
			return
		}
		size += n
		delete(e.pass, name)
		e.onlyDue[name], e.dirty[name] = true, true
	}
}

// Wrote records a write of ours that concerns a group.
func (e *Evidence) Wrote(group string, rev store.Revision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.written[group] = max(e.written[group], rev)
}

// PlanAgain sets when to plan a group even if nothing happens; the earliest time counts.
func (e *Evidence) PlanAgain(group string, at time.Time) {
	if at.IsZero() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.due.add(group, at)
}

// NextDue returns the earliest time noted, and now as long as a full pass is not through; zero if
// there is nothing.
func (e *Evidence) NextDue() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pass) > 0 {
		return e.cfg.Now()
	}
	return e.due.next()
}

// Pass plans everything even if nothing happens. A pass that begins before the last one is complete
// continues with the rest of that one.
func (e *Evidence) Pass(c *cache.Content) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.markAll(c)
}

// markAll schedules everything for planning, in batches.
func (e *Evidence) markAll(c *cache.Content) {
	names := everything(c)
	e.pass = make(map[string]int, len(names))
	for name := range names {
		e.pass[name] = max(1, len(c.ByGroup[name]))
	}
	e.course = slices.Sorted(maps.Keys(names))
}

// markInstances schedules all groups with instances for planning, in batches.
func (e *Evidence) markInstances() {
	sizes := map[string]int{}
	for _, w := range e.instances {
		sizes[w.group]++
	}
	e.markSizes(sizes)
}

// markSizes schedules groups for planning, in batches, behind the groups that already wait: so each
// is planned, however often markSizes is called. Each group comes with the number of its instances.
func (e *Evidence) markSizes(sizes map[string]int) {
	var more []string
	for name := range sizes {
		if _, there := e.pass[name]; !there {
			more = append(more, name)
		}
	}
	slices.Sort(more)
	e.course = append(slices.Clone(e.course), more...)
	if e.pass == nil {
		e.pass = make(map[string]int, len(sizes))
	}
	maps.Copy(e.pass, sizes)
}

// everything returns all groups that have any key, and "" for the shard.
func everything(c *cache.Content) map[string]bool {
	names := c.GroupNames()
	names[""] = true
	for name := range c.ByGroup {
		names[name] = true
	}
	return names
}

// agenda holds when to plan each group. A change of one group is cheap, whatever the agenda's size.
type agenda struct {
	of    map[string]*appointment
	queue appointments
}

type appointment struct {
	group string
	at    time.Time
	place int // in the queue
}

func newAgenda() agenda { return agenda{of: map[string]*appointment{}} }

func (a *agenda) add(group string, at time.Time) {
	old, ok := a.of[group]
	switch {
	case !ok:
		x := &appointment{group: group, at: at}
		a.of[group] = x
		heap.Push(&a.queue, x)
	case at.Before(old.at):
		old.at = at
		heap.Fix(&a.queue, old.place)
	}
}

func (a *agenda) drop(group string) {
	if x, ok := a.of[group]; ok {
		heap.Remove(&a.queue, x.place)
		delete(a.of, group)
	}
}

func (a *agenda) next() time.Time {
	if len(a.queue) == 0 {
		return time.Time{}
	}
	return a.queue[0].at
}

// until removes and returns what is due at a time.
func (a *agenda) until(now time.Time) (groups []string) {
	for len(a.queue) > 0 && !a.queue[0].at.After(now) {
		group := a.queue[0].group
		a.drop(group)
		groups = append(groups, group)
	}
	return groups
}

// appointments is a heap, the earliest on top.
type appointments []*appointment

func (q appointments) Len() int           { return len(q) }
func (q appointments) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q appointments) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *appointments) Push(x any) {
	if a, ok := x.(*appointment); ok { // nothing else is ever pushed
		a.place = len(*q)
		*q = append(*q, a)
	}
}

func (q *appointments) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return x
}
