package plan_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// The leader imports package plan, so its tests cannot import the leader: they are handed it here.
func TestMain(m *testing.M) {
	plan.NewLead = newLead
	m.Run()
}

// lead drives leader.Leader for a world: it hands events to it and has the world carry out its
// commands.
type lead struct {
	o        plan.Outside
	content  *cache.Content
	evidence *evidence.Evidence
	leader   *leader.Leader
	events   []leader.Event // to be taken up, in order
	busy     bool           // taking them up
}

func newLead(o plan.Outside) plan.Lead {
	l := &lead{o: o, content: cache.FromListing(o.Keys(), o.Listing())}
	capabilities := map[string]provider.Capabilities{o.Provider(): {
		Zones: o.Zones(), CallTimeout: plan.CallTimeout, Consistency: plan.Consistency,
	}}
	jitter := func(most time.Duration) time.Duration { return most / 2 }
	l.evidence = evidence.New(evidence.Config{
		Keys: o.Keys(), Capabilities: capabilities, SessionTTL: plan.SessionTTL, Seed: o.Seed(), Now: o.Now, Jitter: jitter,
		Wake: func() {}, Suspect: func(name string) { l.events = append(l.events, leader.ListRequested{Provider: name}) },
		Validate: func(string, store.Group) string { return "" },
	})
	l.evidence.Listed(l.content)
	l.leader = leader.New(leader.Config{
		Keys: o.Keys(), Evidence: l.evidence, Capabilities: capabilities, Settings: l.content.Shard.Record.Settings,
		Began: o.Now(), Jitter: jitter,
		Fence: store.Fence{Key: o.Keys().Of(store.KindLeader) + "only", Created: math.MaxInt64}, // it is never deposed
	})
	return l
}

func (l *lead) Changed(revision store.Revision, events []store.Event) {
	var changes []cache.Change
	for _, e := range events {
		if change, ok := l.content.Apply(l.o.Keys(), e); ok {
			changes = append(changes, change)
		}
	}
	l.content.Revision = revision
	l.evidence.Changed(l.content, changes)
}

func (l *lead) Disturb(why string) { l.evidence.Disturb(why) }

func (l *lead) Snapshot(groups []string) plan.Snapshot { return l.evidence.Snapshot(l.content, groups) }

func (l *lead) Tick() {
	l.step(leader.ListRequested{Provider: l.o.Provider()})
	l.step(leader.Tick{})
}

func (l *lead) Plan(groups []string) {
	for _, name := range groups {
		l.evidence.PlanAgain(name, l.o.Now())
	}
	l.step(leader.Wake{})
}

func (l *lead) Unchanged() bool {
	c := cache.FromListing(l.o.Keys(), l.o.Listing())
	return reflect.DeepEqual(c.Shard, l.content.Shard) && reflect.DeepEqual(c.Instances, l.content.Instances) &&
		reflect.DeepEqual(c.Status, l.content.Status) && reflect.DeepEqual(c.Slots, l.content.Slots) &&
		reflect.DeepEqual(c.Alive, l.content.Alive) && reflect.DeepEqual(c.Reports, l.content.Reports) &&
		reflect.DeepEqual(c.Requests, l.content.Requests)
}

// step has the leader take up an event, and all that follows from it.
func (l *lead) step(e leader.Event) {
	l.events = append(l.events, e)
	if l.busy {
		return
	}
	l.busy = true
	for len(l.events) > 0 {
		e := l.events[0]
		l.events = l.events[1:]
		view := leader.View{Content: l.content, Heard: l.o.Now()}
		for _, c := range l.leader.Step(l.o.Now(), view, e) {
			l.perform(c)
		}
	}
	l.busy = false
}

func (l *lead) perform(c leader.Command) {
	switch c := c.(type) {
	case leader.Recall:
		l.step(leader.Recalled{}) // there is no history of etcd here
	case leader.Compute:
		l.step(leader.Planned{Plan: l.o.Compute(c.Snapshot)})
	case leader.Commit:
		rev, err := l.o.Commit(c.Snapshot, c.Plan, c.Actions, c.Conditions, append(plan.GoneWrites(c.Actions, 0),
			c.Writes...))
		l.step(leader.Committed{Revision: rev, Err: err})
	case leader.List:
		l.o.List(func(machines []provider.Machine, err error) {
			l.step(leader.Listed{Provider: c.Provider, Begun: c.Begun, Machines: machines, Err: err})
		})
	case leader.Record:
		l.o.Begin(c.Conditions, c.Writes, func(rev store.Revision, err error) {
			l.step(leader.Recorded{Operation: c.Operation, Revision: rev, Err: err})
		})
	case leader.Verify:
		l.o.Begin(c.Conditions, nil, func(_ store.Revision, err error) {
			l.step(leader.Verified{Operation: c.Operation, Err: err})
		})
	case leader.Invoke:
		kind := plan.CallCreate
		switch c.Method {
		case leader.Stop: // Delete follows
			l.step(leader.Answered{Operation: c.Operation})
			return
		case leader.Restart:
			kind = plan.CallRestart
		case leader.Delete:
			kind = plan.CallRemove
		case leader.RemoveCopy:
			kind = plan.CallRemoveCopy
		case leader.Halt:
			kind = plan.CallHalt
		case leader.Create:
		}
		l.o.Invoke(kind, c.Instance.ID, func(m provider.Machine, err error) {
			l.step(leader.Answered{Operation: c.Operation, Machine: m, Err: err})
		})
	case leader.Illegal:
		l.o.Fatalf("%s: %v", c.Action.What(), c.Err)
	}
}
