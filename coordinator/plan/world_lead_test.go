package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// Lead is the leader of a world: coordinator/leader on coordinator/evidence.
type Lead interface {
	// Changed shows it changes of records.
	Changed(revision store.Revision, events []store.Event)
	// Disturb begins a time of grace.
	Disturb(why string)
	// Snapshot is what it plans some groups on. It is valid until the next one.
	Snapshot(groups []string) Snapshot
	// Tick has it list machines and begin calls that are due.
	Tick()
	// Plan has it plan these groups, whether they are due or not, and carry the plan out.
	Plan(groups []string)
	// Unchanged reports whether its cache is what the records say.
	Unchanged() bool
}

// NewLead returns a leader that begins its term. Package plan_test sets it.
var NewLead func(Outside) Lead

// Outside is what a leader acts on. What takes time is answered by calling done.
type Outside interface {
	Fatalf(format string, args ...any)
	Keys() store.Keys
	Now() time.Time
	Seed() uint64
	Provider() string
	Zones() []string
	Listing() store.Listing
	Compute(s *Snapshot) Plan
	Commit(s *Snapshot, p *Plan, actions []*Action, c []store.Condition, w []store.Write) (store.Revision, error)
	// Begin is the transaction with which a call to the provider begins.
	Begin(c []store.Condition, w []store.Write, done func(store.Revision, error))
	List(done func([]provider.Machine, error))
	Invoke(kind CallKind, instance string, done func(provider.Machine, error))
}

// outside is a world as its leader has it.
type outside struct{ *world }

func (o outside) Fatalf(format string, args ...any) { o.t.Fatalf(format, args...) }
func (o outside) Keys() store.Keys                  { return o.keys }
func (o outside) Now() time.Time                    { return o.now }
func (o outside) Seed() uint64                      { return uint64(o.term) }
func (o outside) Provider() string                  { return cloud }
func (o outside) Zones() []string                   { return o.zones }

func (o outside) Listing() store.Listing {
	l := store.Listing{Revision: o.rev}
	for _, kv := range o.kvs {
		l.KVs = append(l.KVs, kv)
	}
	return l
}

// Compute makes the plan of a snapshot, to which is added what the test has the leader know.
func (o outside) Compute(s *Snapshot) Plan {
	*s = o.known(*s)
	o.plan = Compute(*s, o.now)
	return o.plan
}

// Commit carries out actions in one transaction.
func (o outside) Commit(s *Snapshot, p *Plan, actions []*Action, conditions []store.Condition,
	writes []store.Write,
) (store.Revision, error) {
	if o.onCommit != nil {
		for _, a := range actions {
			o.onCommit(s, p, a)
		}
	}
	entries := 0
	for _, a := range actions {
		entries += len(a.JournalEntries())
	}
	if !o.commit(conditions, writes, entries) {
		return 0, store.ErrConflict
	}
	rev := o.rev
	for _, a := range actions {
		o.done = append(o.done, *a)
		for _, told := range a.JournalEntries() {
			if o.told != nil {
				o.told(told)
			}
		}
	}
	return rev, nil
}

// snapshot is what the leader would plan on now, with all groups. It shares no list of instances
// with other snapshots.
func (w *world) snapshot() Snapshot { return w.known(w.lead.Snapshot(w.everything())) }

// everything lists what there is to plan: the shard as such, and all groups.
func (w *world) everything() []string { return append([]string{""}, w.groups()...) }

// known adds to a snapshot what a test has the leader know.
func (w *world) known(s Snapshot) Snapshot {
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Instances, g.Slots = slices.Clone(g.Instances), slices.Clone(g.Slots)
		for j := range g.Instances {
			for _, change := range w.knows[g.Instances[j].Record.ID] {
				change(&g.Instances[j])
			}
		}
	}
	if w.stale != "" {
		s.Stale = store.Cause{Kind: store.CauseRecordSpoiled, Text: w.stale}
	}
	s.Zones = map[string][]string{cloud: w.zones}
	for p, zones := range w.full {
		s.Full[Market{Provider: p}] = maps.Clone(zones)
	}
	if w.outages != nil {
		s.Outages = w.outages
	}
	if w.noGrace {
		s.GraceEnd = time.Time{}
	}
	return s
}

// see has every leader know something of an instance besides what it finds out.
func (w *world) see(id string, change func(*Instance)) {
	w.knows[id] = append(w.knows[id], change)
}

// groups lists the groups of which there is anything, in order.
func (w *world) groups() []string {
	all := map[string]bool{w.group: true}
	for _, kind := range []string{store.KindGroups, store.KindStatic, store.KindStatus} {
		for _, name := range w.names(kind) {
			all[name] = true
		}
	}
	for _, v := range w.instances() {
		all[v.Record.Group] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// leaderChange puts a new leader in place, who has to go by the records. What the old one asked of
// the provider may still happen; its answers are lost, and calls that had not begun are fenced.
func (w *world) leaderChange() {
	w.work = slices.DeleteFunc(w.work, func(p *work) bool { return !p.begun })
	w.put(w.keys.Served(), store.Served{Schema: store.Schema, At: w.served, Replica: "r1"})
	w.begin()
}

// begin begins a term.
func (w *world) begin() {
	if w.lead != nil {
		w.isUnchanged()
	}
	w.term++
	w.lead = NewLead(outside{w})
}

// groupOf is what the leader would plan of a group.
func (w *world) groupOf(name string) Group { return *w.groupIn(new(w.snapshot()), name) }

// isUnchanged checks that no record in the leader's cache, which snapshots share, was changed.
func (w *world) isUnchanged() {
	w.t.Helper()
	if !w.lead.Unchanged() {
		w.t.Fatalf("the planner changed records in memory")
	}
}
