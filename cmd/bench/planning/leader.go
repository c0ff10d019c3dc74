package planning

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// leader is a term without a world: it sees records, plans, and what it decides happens when it is
// told to.
type leader struct {
	now      time.Time
	content  *cache.Content
	evidence *evidence.Evidence
}

func newLeader() *leader {
	return &leader{now: epoch.Add(bootedAfter), content: cache.NewContent()}
}

// take takes keys of a listing up.
func (l *leader) take(kvs []store.KV) {
	l.content.Take(keys, kvs)
	for _, kv := range kvs {
		l.content.Revision = max(l.content.Revision, kv.Modified)
	}
}

// begin has the leader see all that it took up.
func (l *leader) begin() {
	l.evidence = l.newEvidence(func() {})
	l.evidence.Listed(l.content)
}

func (l *leader) newEvidence(wake func()) *evidence.Evidence {
	return evidence.New(evidence.Config{
		Keys: keys,
		Capabilities: map[string]provider.Capabilities{machines: {
			Zones:       []string{"a", "b", "c"},
			CallTimeout: time.Minute, Consistency: time.Second,
		}},
		SessionTTL: 5 * time.Second, Seed: 7, Now: func() time.Time { return l.now },
		Jitter: func(most time.Duration) time.Duration { return most },
		Wake:   wake, Suspect: func(string) {}, Validate: func(string, store.Group) string { return "" },
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

// step plans once, as a term does: what has changed or is due. It says how many groups that were;
// 0: there was nothing.
func (l *leader) step() (p plan.Plan, groups int) {
	ready := l.evidence.TakeDirty(l.content.Revision, l.now)
	if len(ready) == 0 {
		return p, 0
	}
	s := l.evidence.Snapshot(l.content, ready)
	p = plan.Compute(s, l.now)
	l.evidence.Tallied(p.Tallies)
	for _, name := range ready {
		l.evidence.LookAgain(name, p.Due[name])
	}
	return p, len(ready)
}

// carryOut has everything that was decided happen.
func (l *leader) carryOut(p plan.Plan) (written []store.Write) {
	for i := range p.Actions {
		var events []store.Event
		a := &p.Actions[i]
		for _, w := range append(plan.GoneWrites([]*plan.Action{a}, 0), a.Writes...) {
			events = append(events, store.Event{KV: store.KV{Key: w.Key, Value: w.Value}, Deleted: w.Delete})
		}
		l.happens(events)
		written = append(written, p.Actions[i].Writes...)
	}
	return written
}

// mostSteps ends a leader that does not come to rest.
const mostSteps = 1_000_000

// settle plans and carries out until there is nothing to do.
func (l *leader) settle() (written []store.Write) {
	for range mostSteps {
		p, n := l.step()
		if n == 0 {
			break
		}
		written = append(written, l.carryOut(p)...)
	}
	return written
}
