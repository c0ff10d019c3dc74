package plan

import (
	"iter"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Judgment is a verdict and its basis.
type Judgment struct {
	Verdict store.Verdict
	Rule    string
	Cause   store.Cause
	Facts   []store.Fact  // the facts behind it
	Awaits  store.Awaited // what a suspicion waits for
	Until   time.Time     // when it may change merely because time passes
	// Provider is what the provider says of a suspect instance.
	Provider *store.Fact
	// Absent is set if the instance is dead because its provider no longer lists it, not because
	// the provider says so (SAFE-2).
	Absent bool
}

// Why returns the judgment's cause as a sentence.
func (j *Judgment) Why() string { return reason.Short(j.Cause) }

// HeardSame reports whether the provider says the same of a suspect as in another judgment.
func (j *Judgment) HeardSame(o *Judgment) bool {
	if j.Provider == nil || o.Provider == nil {
		return j.Provider == o.Provider
	}
	return *j.Provider == *o.Provider
}

// FactsOfRecords returns the facts that are known without asking a provider: it leaves out that no
// list of machines has come yet.
func (j *Judgment) FactsOfRecords() []store.Fact {
	return slices.DeleteFunc(slices.Clone(j.Facts), func(f store.Fact) bool { return f.Kind == store.FactNoList })
}

// of returns a cause without fields.
func of(kind store.CauseKind) store.Cause { return store.Cause{Kind: kind} }

// effect is an effect without fields.
func effect(kind store.EffectKind) store.Effect { return store.Effect{Kind: kind} }

// named is an effect with a name.
func named(kind store.EffectKind, name string) store.Effect {
	return store.Effect{Kind: kind, Name: name}
}

// Judgments are the judgments of all instances of a plan's snapshot. They are valid until the
// snapshot changes, and one goroutine at a time may read them.
type Judgments struct {
	groups []*draft // ordered like the snapshot
	byID   map[string]*Judgment
}

// At returns the judgment of an instance by its index in the snapshot, which spares a planner of
// many instances a map in each plan.
func (j *Judgments) At(group, instance int) *Judgment {
	return &j.groups[group].members[instance].judgment
}

// Stand reports whether the last plan judged every instance of a group the same way. The group is
// named by its index in the snapshot.
func (j *Judgments) Stand(group int) bool { return j.groups[group].again }

// Of returns the judgment of an instance by its ID; one that is not in the snapshot has an empty
// one.
func (j *Judgments) Of(id string) Judgment {
	if j.byID == nil {
		j.byID = make(map[string]*Judgment, j.Len())
		for id, judgment := range j.All() {
			j.byID[id] = judgment
		}
	}
	if judgment := j.byID[id]; judgment != nil {
		return *judgment
	}
	return Judgment{}
}

// All returns the judgments by ID, in the order of the snapshot.
func (j *Judgments) All() iter.Seq2[string, *Judgment] {
	return func(yield func(string, *Judgment) bool) {
		for _, d := range j.groups {
			for i := range d.g.Instances {
				if m := d.members[i]; !yield(m.ID(), &m.judgment) {
					return
				}
			}
		}
	}
}

// Len returns how many there are.
func (j *Judgments) Len() int {
	n := 0
	for _, d := range j.groups {
		n += len(d.g.Instances)
	}
	return n
}
