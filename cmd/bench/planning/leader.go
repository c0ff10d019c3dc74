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

// leader drives the leader's core without etcd and providers: its decisions take effect when
// carryOut is called.
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

// read adds keys of a listing to the cache.
func (l *leader) read(kvs []store.KV) {
	l.content.Take(keys, kvs)
	for _, kv := range kvs {
		l.content.Revision = max(l.content.Revision, kv.Modified)
	}
}

// begin makes the leader process all that was read.
func (l *leader) begin() {
	l.lead(func() {})
	l.evidence.Listed(l.content)
}

// lead begins a term. Its fence is newer than all records, so no leader deposes it.
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

// machines returns the provider's list: all machines run.
func (l *leader) machines() []provider.Machine {
	list := make([]provider.Machine, 0, len(l.content.Instances))
	for id, in := range l.content.Instances {
		list = append(list, listed(in.Record.Group, id))
	}
	return list
}

// seesMachines passes the provider's list to the leader.
func (l *leader) seesMachines() { l.evidence.ListedBy(machines, l.now, l.machines(), l.content) }

// pass advances the virtual time.
func (l *leader) pass(d time.Duration) { l.now = l.now.Add(d) }

// happens applies the changes of one batch of the watch.
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

// step plans once what has changed or is due, and returns how many groups that were; 0: nothing was
// due. Decisions of the previous plan that carryOut did not carry out are dropped.
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

// look returns the candidates for planning; false if nothing is due.
func (l *leader) look() (core.Compute, bool) {
	for _, command := range l.core.Step(l.now, core.View{Content: l.content, Heard: l.now}, core.Wake{}) {
		if c, ok := command.(core.Compute); ok {
			return c, true
		}
	}
	return core.Compute{}, false
}

// take passes an event to the core and keeps the transaction that it asks for. There are no
// providers here: their calls and lists are never answered.
func (l *leader) take(e core.Event) {
	l.commit = nil
	for _, command := range l.core.Step(l.now, core.View{Content: l.content, Heard: l.now}, e) {
		if c, ok := command.(core.Commit); ok {
			l.commit = &c
		}
	}
}

// giveUp reports a conflict for the plan's transactions.
func (l *leader) giveUp() {
	for l.commit != nil {
		l.take(core.Committed{Err: store.ErrConflict})
	}
}

// carryOut carries out everything that was decided.
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

// maxSteps bounds how long a leader may take to come to rest.
const maxSteps = 1_000_000

// settle plans and carries out until nothing is left to do.
func (l *leader) settle() (written []store.Write) {
	for range maxSteps {
		if _, n := l.step(); n == 0 {
			break
		}
		written = append(written, l.carryOut()...)
	}
	return written
}
