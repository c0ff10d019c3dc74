package evidence

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/picture"
	"github.com/leasehold/leasehold/store"
)

// TakeDirty hands over the groups that are to be planned on a picture of this revision, in order. Those of which our own last
// write is not in the picture yet stay behind, until the picture wakes us.
func (e *Evidence) TakeDirty(rev store.Revision, now time.Time) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range e.due.until(now) {
		e.dirty[name] = true
	}
	var out []string
	behind := map[string]bool{} // a new one: a map that once was large stays slow to walk
	for _, name := range slices.Sorted(maps.Keys(e.dirty)) {
		if e.written[name] > rev {
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

// Wrote notes a write of ours that concerns a group.
func (e *Evidence) Wrote(group string, rev store.Revision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.written[group] = max(e.written[group], rev)
}

// LookAgain notes when a group is to be planned even if nothing happens; the earliest time counts.
func (e *Evidence) LookAgain(group string, at time.Time) {
	if at.IsZero() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.due.add(group, at)
}

// NextDue is the earliest time noted; zero if there is none.
func (e *Evidence) NextDue() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.due.next()
}

// MarkDirty has groups planned even if nothing happens.
func (e *Evidence) MarkDirty(groups ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range groups {
		e.dirty[g] = true
	}
}

// Groups lists all groups that there is anything of, in order, after "" for the shard.
func (e *Evidence) Groups(c *picture.Content) []string {
	names := map[string]bool{"": true}
	addKeys(names, c.Groups)
	addKeys(names, c.Static)
	addKeys(names, c.Status)
	addKeys(names, c.ByGroup)
	return slices.Sorted(maps.Keys(names))
}

// markAll has everything planned.
func (e *Evidence) markAll(c *picture.Content) {
	e.dirty[""] = true
	addKeys(e.dirty, c.Groups)
	addKeys(e.dirty, c.Static)
	addKeys(e.dirty, c.Status)
	addKeys(e.dirty, c.ByGroup)
}

func addKeys[T any](names map[string]bool, of map[string]T) {
	for name := range of {
		names[name] = true
	}
}

// agenda says when groups are to be looked at, each once. Whatever its size, a change of one group is cheap.
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

// until takes out what is due at a time.
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
