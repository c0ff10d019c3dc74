package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// world is the content of etcd at one revision, as far as the judge needs it. Worlds of successive
// steps share what did not change.
type world struct {
	keys      store.Keys
	raw       map[string]history.Event   // every key, by its last change
	instances map[string]*store.Instance // by ID
	groups    map[string]map[string]bool // IDs by group
	alive     map[string]*store.Alive    // by ID
	reports   map[string]*store.Report   // by ID
	slots     map[string]*store.Slot     // by the key's name
	specs     map[string]*inForce        // by group; nil until it is asked for
	statuses  map[string]*store.Status   // by group
	shard     *store.Shard               // nil if there is none, or none that can be read
	requests  map[string]store.Request   // by ID
	line      int
}

// inForce is the spec in force of a group.
type inForce struct {
	there bool
	spec  store.Group
	hash  string // of the template
}

// transition is what one step does to an instance's record.
type transition struct {
	id    string
	old   *store.Instance // nil: there was none
	next  *store.Instance // nil: it is gone
	event history.Event
}

func (t transition) begins() bool { return t.old == nil && t.next != nil }

// requests reports whether a managed instance is requested by it. The machine of one that is
// adopted exists already.
func (t transition) requests() bool {
	return t.begins() && t.next.Managed && t.next.Phase == store.Pending
}

// leaves reports whether the instance is taken down by it.
func (t transition) leaves() bool {
	return t.old != nil && t.next != nil && going(t.next.Phase) && !going(t.old.Phase)
}

func going(p store.Phase) bool {
	return p == store.Stopping || p == store.Draining || p == store.Deleting
}

// entry is a journal entry.
type entry struct {
	store.JournalEntry
	event history.Event
}

// step is one revision: all changes of one transaction. Keys that were only found are a step as
// well, whose author is unknown.
type step struct {
	at          history.Time
	line        int
	revision    store.Revision
	found       bool
	fresh       bool // another line begins with it
	byHand      bool // no replica wrote it: an operator put records back, or spoiled them
	changes     []history.Event
	records     []any // of each change: a pointer to the record, or nil
	transitions []transition
	journal     []entry
	obeyed      []store.Request // orders that were removed with it
}

// replay groups the changes into steps, each with its effect on instances. Other effects need the
// state before it: see walk.
func (in *inquiry) replay() []*step {
	var steps []*step
	var now *step
	line := -1
	for _, e := range in.events {
		c := e.Change
		if c == nil {
			continue
		}
		fresh := c.Line != line
		if now == nil || fresh || c.Revision != now.revision || c.Found != now.found {
			now = &step{at: e.At, line: c.Line, revision: c.Revision, found: c.Found, fresh: fresh}
			steps = append(steps, now)
			line = c.Line
		}
		now.at = e.At
		record := in.decode(e)
		now.changes, now.records = append(now.changes, e), append(now.records, record)
		if j, ok := record.(*store.JournalEntry); ok {
			now.journal = append(now.journal, entry{JournalEntry: *j, event: e})
		}
	}
	in.walk(steps, func(w *world, s *step) { s.transitions, s.obeyed = w.transitions(s), w.obeyed(s) })
	return steps
}

// walk shows each step with the world before it, and ends with the world after the last.
func (in *inquiry) walk(steps []*step, look func(before *world, s *step)) *world {
	w := newWorld(in.keys)
	for _, s := range steps {
		if s.fresh {
			w = newWorld(in.keys)
			w.line = s.line
		}
		look(w, s)
		w.apply(s)
	}
	return w
}

func newWorld(keys store.Keys) *world {
	return &world{
		keys: keys, raw: map[string]history.Event{}, instances: map[string]*store.Instance{},
		groups: map[string]map[string]bool{},
		alive:  map[string]*store.Alive{}, reports: map[string]*store.Report{}, slots: map[string]*store.Slot{},
		specs:    map[string]*inForce{},
		statuses: map[string]*store.Status{}, requests: map[string]store.Request{},
	}
}

// decode decodes the record of an event; nil if it is gone, unreadable, or not relevant to the
// judge.
func (in *inquiry) decode(e history.Event) any {
	kind, _, ok := in.keys.Split(e.Change.Key)
	if !ok || e.Change.Deleted {
		return nil
	}
	switch kind {
	case store.KindInstances:
		return read[store.Instance](e)
	case store.KindAlive:
		return read[store.Alive](e)
	case store.KindReports:
		return read[store.Report](e)
	case store.KindSlots:
		return read[store.Slot](e)
	case store.KindStatus:
		return read[store.Status](e)
	case store.KindShard:
		return read[store.Shard](e)
	case store.KindRequests:
		return read[store.Request](e)
	case store.KindEvents:
		return read[store.JournalEntry](e)
	default:
		return nil
	}
}

func read[T any](e history.Event) any {
	v, err := store.Decode[T](store.KV{Key: e.Change.Key, Value: e.Change.Value})
	if err != nil {
		return nil
	}
	return &v.Record
}

// as returns a record of a kind; nil if it is another.
func as[T any](record any) *T {
	r, _ := record.(*T) // nil if it is gone
	return r
}

func (w *world) transitions(s *step) []transition {
	var out []transition
	for i, e := range s.changes {
		if kind, id, ok := w.keys.Split(e.Change.Key); ok && kind == store.KindInstances {
			t := transition{id: id, old: w.instances[id], next: as[store.Instance](s.records[i]), event: e}
			if t.next == nil && !e.Change.Deleted {
				continue // an operator wrote garbage into it
			}
			out = append(out, t)
		}
	}
	return out
}

func (w *world) obeyed(s *step) []store.Request {
	var out []store.Request
	for _, e := range s.changes {
		if kind, id, ok := w.keys.Split(e.Change.Key); ok && kind == store.KindRequests && e.Change.Deleted {
			if r, known := w.requests[id]; known {
				out = append(out, r)
			}
		}
	}
	return out
}

func set[T any](m map[string]*T, name string, v *T) {
	if v == nil {
		delete(m, name)
		return
	}
	m[name] = v
}

func (w *world) apply(s *step) {
	for _, t := range s.transitions {
		if t.old != nil {
			delete(w.groups[t.old.Group], t.id)
		}
		set(w.instances, t.id, t.next)
		if t.next != nil {
			if w.groups[t.next.Group] == nil {
				w.groups[t.next.Group] = map[string]bool{}
			}
			w.groups[t.next.Group][t.id] = true
		}
	}
	for i, e := range s.changes {
		c, record := e.Change, s.records[i]
		kind, name, ok := w.keys.Split(c.Key)
		if !ok || kind == store.KindEvents {
			continue
		}
		if c.Deleted {
			delete(w.raw, c.Key)
		} else {
			w.raw[c.Key] = e
		}
		switch kind {
		case store.KindShard:
			w.shard = as[store.Shard](record)
		case store.KindGroups, store.KindStatic:
			delete(w.specs, name)
		case store.KindStatus:
			set(w.statuses, name, as[store.Status](record))
			delete(w.specs, name)
		case store.KindAlive:
			set(w.alive, name, as[store.Alive](record))
		case store.KindReports:
			set(w.reports, name, as[store.Report](record))
		case store.KindSlots:
			set(w.slots, name, as[store.Slot](record))
		case store.KindRequests:
			delete(w.requests, name)
			if r := as[store.Request](record); r != nil {
				w.requests[name] = *r
			}
		}
	}
}

// value returns the value of a key; nil if it is absent.
func (w *world) value(key string) []byte {
	e, there := w.raw[key]
	if !there {
		return nil
	}
	return e.Change.Value
}

// inForce returns the spec in force of a group: what operators wrote if that is valid, otherwise
// what was accepted last (SAFE-10).
func (w *world) inForce(group string) *inForce {
	if f := w.specs[group]; f != nil {
		return f
	}
	f := &inForce{}
	static, dynamic := w.value(w.keys.Static(group)), w.value(w.keys.Group(group))
	if static != nil || dynamic != nil {
		if g, err := store.ReadInForce(static, dynamic); err == nil && g.Name == group {
			f.there, f.spec = true, g
		}
	}
	if st := w.statuses[group]; !f.there && st != nil && st.Accepted != nil {
		f.there, f.spec = true, *st.Accepted
	}
	if f.there {
		f.hash = f.spec.InstanceSpec().TemplateHash()
	}
	w.specs[group] = f
	return f
}

// inGroup returns the managed instances of a group, in order.
func (w *world) inGroup(group string) []*store.Instance {
	var out []*store.Instance
	for _, id := range slices.Sorted(maps.Keys(w.groups[group])) {
		if r := w.instances[id]; r.Managed {
			out = append(out, r)
		}
	}
	return out
}

// inGroupAfter returns them after a step.
func (w *world) inGroupAfter(group string, s *step) []*store.Instance {
	var out []*store.Instance
	changed := map[string]bool{}
	for _, t := range s.transitions {
		changed[t.id] = true
		if t.next != nil && t.next.Group == group && t.next.Managed {
			out = append(out, t.next)
		}
	}
	for _, m := range w.inGroup(group) {
		if !changed[m.ID] {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *store.Instance) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// hasEnded reports whether the agent reports the end of its workload, so that restarting it
// interrupts nothing (REC-18).
func (w *world) hasEnded(id string) bool {
	a, r := w.alive[id], w.reports[id]
	return a != nil && r != nil && r.BootID == a.BootID && r.Workload != nil
}

// looksWell reports whether the records show a healthy instance: its stream is open, and a report
// of its present boot says so.
func (w *world) looksWell(id string) bool {
	a, r := w.alive[id], w.reports[id]
	return a != nil && r != nil && a.State == store.StreamOpen && r.Healthy && r.BootID == a.BootID
}
