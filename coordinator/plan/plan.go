package plan

import (
	"fmt"
	"sort"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Plan is what to do now, in this order, and when to look again if nothing happens meanwhile.
type Plan struct {
	Actions   []Action
	Calls     []Call
	Judgments map[string]Judgment        // of every instance, by ID
	Held      map[string][]store.Blocked // by group: what was decided and may not be done, and why
	Next      time.Time                  // zero: only when something changes
	Due       map[string]time.Time       // the same for each group; "" is the shard
	Tallies   map[string]Tally           // the losses of each group: see Snapshot.Elsewhere
}

// Action is one transaction.
type Action struct {
	Group    string
	Instance string
	Slot     *int
	Rule     string
	What     string // a sentence for people, without the name of the instance
	Why      string
	Evidence []string
	// Otherwise says what would have kept it from happening.
	Otherwise string
	From, To  store.Phase
	Verdict   store.Verdict

	Conditions []store.Condition
	Writes     []store.Write
	// Silent actions leave no journal entry: they change no machine's fate.
	Silent bool
}

// CallKind is what is asked of a provider.
type CallKind string

// The kinds of call.
const (
	CallCreate CallKind = "create" // of an instance that is pending or creating
	CallRemove CallKind = "remove" // stop, then delete, of an instance that is deleting
	// CallRestart is the restart of the machine of an instance that is stopping.
	CallRestart CallKind = "restart"
)

// Call is work for a provider. It follows from the phase of a record, so whoever leads next finds it again.
type Call struct {
	Kind     CallKind
	Instance string
	Group    string
	Rank     int            // the lower the more urgent
	Record   store.Revision // of the instance as planned: the call is void if it has changed
	Revision store.Revision // of the picture
	// Conditions must hold when the call leaves the queue.
	Conditions []store.Condition
}

// Compute decides what to do. It never changes the snapshot.
func Compute(s Snapshot, now time.Time) Plan {
	p := Plan{Judgments: map[string]Judgment{}, Due: map[string]time.Time{}, Held: map[string][]store.Blocked{}}
	for i := range s.Groups {
		d := newDraft(&s, &s.Groups[i], now)
		d.decide()
		p.Actions = append(p.Actions, d.actions...)
		p.Calls = append(p.Calls, d.calls...)
		for _, m := range d.members {
			p.Judgments[m.ID()] = m.judgment
		}
		p.Next = sooner(p.Next, d.next)
		p.Due[d.g.Name] = d.next
		p.Held[d.g.Name] = d.held
	}
	for _, r := range s.Lost {
		p.Actions = append(p.Actions, refuse(r, "there is no such group or instance"))
	}
	actions, next := planExtras(&s, now)
	p.Actions = append(p.Actions, actions...)
	p.Next = sooner(p.Next, next)
	p.Due[""] = next
	return p
}

func (d *draft) decide() {
	d.accept()
	for _, m := range d.members {
		m.judgment = judge(m.Instance, d.s, d.spec, d.now)
		d.wake(m.judgment.Until)
	}
	if d.g.Unreadable != "" {
		return // what cannot be read is not guessed at, least of all written over
	}
	d.progress()
	d.orders()
	d.finishRemovals()
	if d.spec != nil && d.mayAct() {
		switch {
		case d.spec.Deleting:
			d.empty()
		default:
			d.cleanSlots()
			d.scaleDown()
			d.heal()
			d.scaleUp()
		}
	}
	d.status()
	d.callProvider()
}

// mayAct says whether machines may be made and removed at all, and records why not.
func (d *draft) mayAct() bool {
	if h := d.s.Shard.Record.Hold; h != nil {
		d.block("SAFE-12", "all changes", fmt.Sprintf("the shard is on hold since %s by %s: %s", h.At.UTC().Format(time.RFC3339), h.By, h.Why), "the hold is released", "")
		return false
	}
	if d.spec.Paused {
		d.block("REC-13", "all changes", "the group is paused", "leasehold group resume "+d.g.Name, "")
		return false
	}
	if d.s.Stale != "" {
		d.block("SAFE-3", "all changes", "our picture is stale: "+d.s.Stale, "a fresh list of etcd", "")
		return false
	}
	return true
}

func sooner(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero() || a.Before(b):
		return a
	default:
		return b
	}
}

// nobodys is the group of an extra machine whose tag names none. No operator can name a group so.
const nobodys = "(none)"

// planExtras takes up machines that nobody recorded, once they were seen for long enough, so that they are removed
// like any other (REC-8). The record comes first, so that one wins.
func planExtras(s *Snapshot, now time.Time) (actions []Action, next time.Time) {
	if s.Shard.Record.Hold != nil || s.Stale != "" {
		return nil, time.Time{}
	}
	grace := s.Shard.Record.Settings.OrphanGrace.D()
	extras := append([]Extra(nil), s.Extras...)
	sort.Slice(extras, func(i, j int) bool { return extras[i].Instance < extras[j].Instance })
	for _, x := range extras {
		if x.Stray {
			continue
		}
		due := x.Since.Add(grace)
		if now.Before(due) {
			next = sooner(next, due)
			continue
		}
		why := fmt.Sprintf("%s lists it with our tag since %s and there is no record of it", x.Provider, now.Sub(x.Since).Round(time.Second))
		if x.Group == "" {
			x.Group = nobodys
		}
		rec := store.Instance{
			Schema: store.Schema, ID: x.Instance, Group: x.Group, Slot: -1, Phase: store.Deleting, Zone: x.Zone, Ref: x.Ref, Called: true,
			Since: now.UTC(), Created: now.UTC(),
			Spec: store.InstanceSpec{Provider: x.Provider},
			Last: store.Decision{Rule: "REC-8", Why: why, Revision: s.Revision, At: now.UTC()},
		}
		key := s.Keys.Instance(x.Instance)
		actions = append(actions, Action{
			Group: x.Group, Instance: x.Instance, Rule: "REC-8", What: "extra machine is removed", Why: why, To: store.Deleting,
			Evidence:   []string{"provider " + x.Provider + " ref " + x.Ref, "orphan_grace " + grace.String()},
			Conditions: []store.Condition{store.Absent(key), store.Absent(s.Keys.Stray(x.Instance)), s.Shard.Unchanged()},
			Writes:     []store.Write{store.Put(key, store.Encode(rec))},
		})
	}
	return actions, next
}
