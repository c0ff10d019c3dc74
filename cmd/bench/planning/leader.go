package planning

import (
	"math"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	core "github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// leader drives the leader's core without etcd and providers: what it decides happens when carryOut
// is called.
type leader struct {
	now      time.Time
	content  *cache.Content
	evidence *evidence.Evidence
	core     *core.Leader
	commit   *core.Commit // the transaction to carry out; nil: none
}

func newLeader() *leader {
	return &leader{now: epoch.Add(bootedAfter), content: cache.NewContent()}
}

// read takes keys of a listing up.
func (l *leader) read(kvs []store.KV) {
	l.content.Take(keys, kvs)
	for _, kv := range kvs {
		l.content.Revision = max(l.content.Revision, kv.Modified)
	}
}

// begin has the leader see all that it took up.
func (l *leader) begin() {
	l.lead(func() {})
	l.evidence.Listed(l.content)
}

// lead begins a term. Its fence is later than all records: nothing deposes it.
func (l *leader) lead(wake func()) {
	jitter := func(most time.Duration) time.Duration { return most }
	capabilities := map[string]provider.Capabilities{machines: {
		Zones:       []string{"a", "b", "c"},
		CallTimeout: time.Minute, Consistency: time.Second,
	}}
	l.evidence = evidence.New(evidence.Config{
		Keys: keys, Capabilities: capabilities, SessionTTL: 5 * time.Second, Seed: 7,
		Now: func() time.Time { return l.now }, Jitter: jitter,
		Wake: wake, Suspect: func(string) {}, Validate: func(string, store.Group) string { return "" },
	})
	l.core = core.New(core.Config{
		Keys: keys, Fence: store.Fence{Key: keys.Leader(1), Created: math.MaxInt64}, Evidence: l.evidence,
		Capabilities: capabilities,
		Settings:     store.DefaultShardSettings(), Began: l.now, Jitter: jitter,
	})
}

// machines are what the provider lists: all run.
func (l *leader) machines() []provider.Machine {
	list := make([]provider.Machine, 0, len(l.content.Instances))
	for id, in := range l.content.Instances {
		list = append(list, listed(in.Record.Group, id))
	}
	return list
}

// seesMachines takes up what the provider lists.
func (l *leader) seesMachines() { l.evidence.ListedBy(machines, l.now, l.machines(), l.content) }

// pass lets time go by.
func (l *leader) pass(d time.Duration) { l.now = l.now.Add(d) }

// happens takes changes up that come in one batch of the watch.
func (l *leader) happens(events []store.Event) {
	l.content.Revision++
	rev := l.content.Revision
	changes := make([]cache.Change, 0, len(events))
	for _, e := range events {
		if e.KV.Modified = rev; e.KV.Created == 0 {
			e.KV.Created = rev
		}
		if change, ok := l.content.Apply(keys, e); ok {
			changes = append(changes, change)
		}
	}
	l.evidence.Changed(l.content, changes)
}

// step plans once: what has changed or is due. It returns how many groups that were; 0: there was
// nothing. What the plan before decided and carryOut did not carry out is given up.
func (l *leader) step() (p plan.Plan, groups int) {
	l.giveUp()
	c, there := l.look()
	if !there {
		return p, 0
	}
	p = plan.Compute(*c.Snapshot, l.now)
	l.take(core.Planned{Plan: p})
	return p, len(c.Groups)
}

// look returns what is to be planned; false if there is nothing.
func (l *leader) look() (core.Compute, bool) {
	for _, command := range l.core.Step(l.now, core.View{Content: l.content, Heard: l.now}, core.Wake{}) {
		if c, ok := command.(core.Compute); ok {
			return c, true
		}
	}
	return core.Compute{}, false
}

// take has the core take an event up, and keeps the transaction that it asks for. There are no
// providers here: their calls and Lists are never answered.
func (l *leader) take(e core.Event) {
	l.commit = nil
	for _, command := range l.core.Step(l.now, core.View{Content: l.content, Heard: l.now}, e) {
		if c, ok := command.(core.Commit); ok {
			l.commit = &c
		}
	}
}

// giveUp has the transactions of the plan conflict.
func (l *leader) giveUp() {
	for l.commit != nil {
		l.take(core.Committed{Err: store.ErrConflict})
	}
}

// carryOut has everything that was decided happen.
func (l *leader) carryOut() (written []store.Write) {
	for l.commit != nil {
		var events []store.Event
		for _, w := range append(plan.GoneWrites(l.commit.Actions, 0), l.commit.Writes...) {
			events = append(events, store.Event{KV: store.KV{Key: w.Key, Value: w.Value}, Deleted: w.Delete})
		}
		written = append(written, l.commit.Writes...)
		l.happens(events)
		l.take(core.Committed{Revision: l.content.Revision})
	}
	return written
}

// mostSteps ends a leader that does not come to rest.
const mostSteps = 1_000_000

// settle plans and carries out until there is nothing to do.
func (l *leader) settle() (written []store.Write) {
	for range mostSteps {
		if _, n := l.step(); n == 0 {
			break
		}
		written = append(written, l.carryOut()...)
	}
	return written
}
