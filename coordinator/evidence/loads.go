package evidence

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
)

// loads are the last reports of a group that came together, and when. The content has them once
// the report of an instance is looked at: nearly always the next ones come before.
type loads struct {
	*cache.Loads
	seen  time.Time
	taken []bool // by place: the content has it, or a later one
}

// find returns the place of an instance's report that the content does not have; it may be the one
// guessed.
func (l *loads) find(id string, guess int) (at int, there bool) {
	if l == nil {
		return 0, false
	}
	if at, there = guess, guess < len(l.Instances) && l.Instances[guess] == id; !there {
		at, there = slices.BinarySearch(l.Instances, id)
	}
	return at, there && !l.taken[at]
}

// seeLoads records reports in which only the load is new.
func (e *Evidence) seeLoads(c *cache.Content, l *cache.Loads) {
	now := e.cfg.Now()
	if before := e.loads[l.Group]; before != nil && !slices.Equal(before.Instances, l.Instances) {
		for i, id := range before.Instances {
			if w := e.instances[id]; w != nil {
				e.takeLoad(c, before, i, w)
			}
		}
	}
	e.loads[l.Group] = &loads{Loads: l, seen: now, taken: make([]bool, len(l.Instances))}
	e.loadDue(c, l.Group, now)
}

// settle writes the last load of an instance into the content.
func (e *Evidence) settle(c *cache.Content, id string, w *observed) {
	l := e.loads[w.group]
	if at, there := l.find(id, 0); there {
		e.takeLoad(c, l, at, w)
	}
}

func (e *Evidence) takeLoad(c *cache.Content, l *loads, at int, w *observed) {
	if l.taken[at] {
		return
	}
	l.taken[at] = true
	w.report, w.reportSeen = l.Revisions[at], l.seen
	w.numbers++
	id := l.Instances[at]
	if v := c.Reports[id]; v.Present() && v.Modified < l.Revisions[at] {
		l.Write(at, &v)
		c.Reports[id] = v
	}
}

// show makes a place of a snapshot show the last load of its instance.
func (l *loads) show(at int, in *plan.Instance) {
	l.Write(at, &in.Report)
	in.ReportSeen = l.seen
}

// loadDue has a group planned for new numbers, if its size follows them.
func (e *Evidence) loadDue(c *cache.Content, group string, now time.Time) {
	if spec := c.Status[group].Record.Accepted; spec != nil && spec.Scale != nil {
		e.due.add(group, now.Add(loadEvery))
	}
}
