package planning

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// Change is the cost of one kind of change, from the event to the plan.
type Change struct {
	What    string `json:"what"`
	Changes int    `json:"changes"`
	Decided int    `json:"decided"` // actions in the plans, statuses included
	Spread  Spread `json:"spread"`
	Each    Each   `json:"each"`
}

// Each returns the mean of one change.
type Each struct {
	CPU         time.Duration `json:"cpu_ns"`
	Allocations uint64        `json:"allocations"`
	Bytes       uint64        `json:"bytes"`
}

func (c Cost) each(n int) Each {
	if n == 0 {
		return Each{}
	}
	return Each{CPU: c.CPU / time.Duration(n), Allocations: c.Allocations / uint64(n), Bytes: c.Bytes / uint64(n)}
}

// trial is one group that is changed, and then restored.
type trial struct {
	l     *leader
	group string
	size  int
	keys  map[string]store.KV // as they were
}

func newTrial(l *leader, g int, size Size) *trial {
	t := &trial{l: l, group: groupName(g), size: size.of(g), keys: map[string]store.KV{}}
	for _, kv := range settled(t.group, t.size) {
		t.keys[kv.Key] = kv
	}
	return t
}

func (t *trial) id() string { return instanceID(t.group, t.size/2) }

func put(key string, record any) store.Event {
	return store.Event{KV: store.KV{Key: key, Value: store.Encode(record)}}
}

func deleted(key string) store.Event { return store.Event{KV: store.KV{Key: key}, Deleted: true} }

// silence is how long an agent is overdue before its lease ends.
const silence = 10 * time.Second

// undo restores the group, and passes that to the leader.
func (t *trial) undo() {
	var events []store.Event
	for _, id := range append([]string(nil), t.l.content.ByGroup[t.group]...) {
		if _, there := t.keys[keys.Instance(id)]; !there {
			events = append(events, deleted(keys.Instance(id)))
		}
	}
	for n := range t.l.content.Slots[t.group] {
		if _, there := t.keys[keys.Slot(t.group, n)]; !there {
			events = append(events, deleted(keys.Slot(t.group, n)))
		}
	}
	for _, kv := range t.keys {
		events = append(events, store.Event{KV: kv})
	}
	t.l.happens(events)
	t.l.settle()
}

// kind is a kind of change: its unmeasured preparation, the event itself, and how long the planner
// waits until it decides.
type kind struct {
	what   string
	before func(t *trial)
	event  func(t *trial, n int) store.Event
	wait   time.Duration
}

// kinds returns the kinds that are measured, the cheapest first.
func kinds() []kind {
	return []kind{
		{what: "a report with new numbers", event: func(t *trial, n int) store.Event {
			r := reportOf(t.id(), t.config(), true)
			r.Sequence += uint64(n)
			r.Host.CPUPercent++
			return put(keys.Report(t.id()), r)
		}},
		{what: "a report of a failed check", event: func(t *trial, _ int) store.Event {
			return put(keys.Report(t.id()), reportOf(t.id(), t.config(), false))
		}},
		{
			what: "a lost lease, until it is judged",
			before: func(t *trial) {
				t.l.happens([]store.Event{put(keys.Alive(t.id()), aliveOf(t.id(), store.StreamOverdue))})
				t.l.pass(silence)
				t.l.settle()
			},
			event: func(t *trial, _ int) store.Event { return deleted(keys.Alive(t.id())) },
			wait:  time.Second, // its confirmation: DET-17
		},
		{what: "a group edited: one more instance", event: func(t *trial, _ int) store.Event {
			return put(keys.Group(t.group), groupOf(t.group, t.size+1))
		}},
		{what: "a group edited: another template", event: func(t *trial, n int) store.Event {
			g := groupOf(t.group, t.size)
			g.Template.Settings = map[string]any{"image": fmt.Sprintf("ami-%d", n)}
			return put(keys.Group(t.group), g)
		}},
	}
}

// happen runs what is measured: the event, and the plans that follow from it.
func (k kind) happen(l *leader, e store.Event) plan.Plan {
	l.happens([]store.Event{e})
	p, _ := l.step()
	if k.wait > 0 {
		l.pass(k.wait)
		p, _ = l.step()
	}
	return p
}

// config returns the hash that the agents of the group report.
func (t *trial) config() string {
	return t.l.content.Instances[t.id()].Record.Config
}

// measureChange measures one kind of change on several groups in turn.
func measureChange(k kind, trials []*trial, rounds int, progress func(int)) Change {
	c := Change{What: k.what}
	var took measure.Histogram
	var all Cost
	for n := range rounds {
		t := trials[n%len(trials)]
		if k.before != nil {
			k.before(t)
		}
		event := k.event(t, n)
		var p plan.Plan
		cost := costOf(func() { p = k.happen(t.l, event) })
		took.Add(cost.Took)
		all = all.plus(cost)
		c.Decided += len(p.Actions)
		c.Changes++
		t.undo()
		progress(n)
	}
	c.Spread, c.Each = spreadOf(took), all.each(rounds)
	return c
}
