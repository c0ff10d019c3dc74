package judge

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// story makes a history by telling it. Each thing that happens takes a tenth of a second.
type story struct {
	t      *testing.T
	keys   store.Keys
	events []history.Event
	now    history.Time
	rev    store.Revision
	line   int
	calls  uint64
	ids    int
	world  map[string]store.Instance // as recorded
	specs  map[string]store.Group
	lag    time.Duration // of the watcher
	fence  store.Fence   // of the leader
}

const beat = 100 * time.Millisecond

func tell(t *testing.T) *story {
	s := &story{
		t: t, keys: store.KeysOf("default"), now: history.Time(time.Minute), world: map[string]store.Instance{},
		specs: map[string]store.Group{}, fence: store.Fence{Key: "leader", Created: 1},
	}
	s.operator(put(s.keys.Shard(),
		store.Shard{Schema: 1, ID: "s", Name: "default", Settings: store.DefaultShardSettings()}))
	return s
}

func (s *story) add(e history.Event) {
	if e.At == 0 {
		e.At = s.now
	}
	s.events = append(s.events, e)
}

func (s *story) pass(d time.Duration) { s.now = s.now.Add(d) }

// write is one change of a transaction.
type write struct {
	key    string
	value  []byte
	delete bool
}

func put(key string, record any) write { return write{key: key, value: store.Encode(record)} }
func drop(key string) write            { return write{key: key, delete: true} }

// txn is a transaction of the leader, a.
func (s *story) txn(writes ...write) {
	s.rev++
	s.ids++
	c := history.Commit{ID: uint64(s.ids), Replica: "a", Process: 1, Fence: s.fence}
	for _, w := range writes {
		c.Keys = append(c.Keys, w.key)
	}
	begun, ended := c, c
	ended.Ended, ended.Outcome, ended.At = true, history.Happened, s.rev
	s.add(history.Event{Commit: &begun})
	s.pass(beat / 2)
	s.add(history.Event{Commit: &ended})
	s.write(writes...)
	s.pass(beat / 2)
}

// write is a change that no replica tells of.
func (s *story) write(writes ...write) {
	for _, w := range writes {
		s.add(history.Event{
			At:     s.now.Add(s.lag),
			Change: &history.Change{Line: s.line, Revision: s.rev, Key: w.key, Value: w.value, Deleted: w.delete},
		})
		if kind, id, _ := s.keys.Split(w.key); kind == store.KindInstances {
			if w.delete {
				delete(s.world, id)
				continue
			}
			v, err := store.Decode[store.Instance](store.KV{Key: w.key, Value: w.value})
			if err != nil {
				s.t.Fatal(err)
			}
			s.world[id] = v.Record
		}
	}
}

// operator writes without any replica.
func (s *story) operator(writes ...write) {
	s.rev++
	s.write(writes...)
	s.pass(beat)
}

func (s *story) group(name string, size int, change ...func(*store.Group)) {
	g, known := s.specs[name]
	if !known {
		g = store.DefaultGroup()
		g.Name, g.Provider = name, "cloud"
		g.Complete()
	}
	g.Size = size
	for _, c := range change {
		c(&g)
	}
	s.specs[name] = g
	s.operator(put(s.keys.Group(name), g))
}

func (s *story) entry(e store.JournalEntry) write {
	s.ids++
	e.Schema, e.By = 1, "a"
	if e.Rule == "" {
		e.Rule = "HEAL-2"
	}
	return put(s.keys.Event(time.Unix(0, int64(s.ids)), fmt.Sprint(s.ids)), e)
}

// record is an instance's, as it would be after a change.
func (s *story) record(id string, change func(*store.Instance)) write {
	r, known := s.world[id]
	if !known {
		s.t.Fatalf("no record of %s", id)
	}
	change(&r)
	return put(s.keys.Instance(id), r)
}

// fresh is the record of a new instance.
func (s *story) fresh(group, id string, slot int, replaces string) store.Instance {
	g := s.specs[group]
	return store.Instance{
		Schema: 1, ID: id, Group: group, Slot: slot, Phase: store.Pending, Managed: true, Replaces: replaces, Zone: "z",
		Template: g.InstanceSpec().TemplateHash(), Spec: g.InstanceSpec(), Relaunch: g.Relaunch.Number,
	}
}

// requested: the leader wants an instance, in the place of another if that is not "".
func (s *story) requested(group, id string, slot int, replaces string, more ...write) {
	r := s.fresh(group, id, slot, replaces)
	told := store.JournalEntry{Rule: "REC-3", What: "requested", Instance: id, Group: group, To: store.Pending}
	if replaces != "" {
		told = store.JournalEntry{
			What: "replacement " + id + " requested", Instance: replaces, Group: group,
			Verdict: store.Unhealthy, Why: "its checks fail",
		}
		if s.world[replaces].Condemned != nil {
			told.Verdict, told.Why = store.Live, "ordered"
		}
	}
	s.txn(append([]write{put(s.keys.Instance(id), r), s.entry(told)}, more...)...)
}

// step takes an instance to another phase, and says so in the journal.
func (s *story) step(id string, to store.Phase, change ...func(*store.Instance)) {
	s.stepFor(id, to, store.JournalEntry{}, change...)
}

func (s *story) stepFor(id string, to store.Phase, e store.JournalEntry, change ...func(*store.Instance)) {
	e.Instance, e.Group, e.From, e.To = id, s.world[id].Group, s.world[id].Phase, to
	s.txn(s.record(id, func(r *store.Instance) {
		r.Phase = to
		r.Called = r.Called || to == store.Creating
		for _, c := range change {
			c(r)
		}
	}), s.entry(e))
}

// call is one of the provider that takes no time.
func (s *story) call(m history.Method, id string) {
	s.begun(m, id)
	s.ended(m, id)
}

func (s *story) begun(m history.Method, id string) {
	s.calls++
	s.add(history.Event{Call: &history.Call{ID: s.calls, Replica: "a", Method: m, Instance: id}})
	s.pass(beat)
}

func (s *story) ended(m history.Method, id string) {
	s.add(history.Event{Call: &history.Call{ID: s.calls, Ended: true, Replica: "a", Method: m, Instance: id}})
}

func (s *story) machine(id string, what history.Step, why ...string) {
	m := history.Machine{Instance: id, What: what}
	if len(why) > 0 {
		m.Why = why[0]
	}
	s.add(history.Event{Machine: &m})
	s.pass(beat)
}

// made: its machine is made and comes up.
func (s *story) made(id string) {
	s.step(id, store.Creating)
	s.begun(history.Create, id)
	s.machine(id, history.Made)
	s.ended(history.Create, id)
	s.machine(id, history.Booted)
	s.step(id, store.Booting)
}

// shows writes what its agent tells.
func (s *story) shows(id string, healthy bool) {
	s.operator(put(s.keys.Alive(id), store.Alive{Schema: 1, Instance: id, BootID: "1", State: store.StreamOpen}))
	s.operator(put(s.keys.Report(id), store.Report{Schema: 1, Instance: id, BootID: "1", Healthy: healthy}))
}

func (s *story) silent(id string) { s.operator(drop(s.keys.Alive(id))) }

func (s *story) healthy(id string) {
	s.step(id, store.Checking)
	s.shows(id, true)
	s.step(id, store.Running)
}

// born is all of it.
func (s *story) born(group, id string, slot int) {
	s.requested(group, id, slot, "")
	s.made(id)
	s.healthy(id)
}

// removed: its machine is removed, and its record after it.
func (s *story) removed(id string) {
	s.begun(history.Stop, id)
	s.machine(id, history.Ended, history.ByCall)
	s.ended(history.Stop, id)
	s.begun(history.Delete, id)
	s.machine(id, history.Removed)
	s.ended(history.Delete, id)
	s.call(history.List, "")
	s.txn(drop(s.keys.Instance(id)), drop(s.keys.Alive(id)), drop(s.keys.Report(id)),
		s.entry(store.JournalEntry{Rule: "SAFE-8", What: "gone", Instance: id, From: store.Deleting}))
}

func (s *story) harm(id string, kind history.HarmKind) {
	s.add(history.Event{Harm: &history.Harm{Instance: id, Kind: kind}})
	s.pass(beat)
}

func (s *story) over(id string, kind history.HarmKind) {
	s.add(history.Event{Harm: &history.Harm{Instance: id, Kind: kind, Ends: true}})
	s.pass(beat)
}

func (s *story) mark(m history.Mark) { s.add(history.Event{Mark: &m}); s.pass(beat) }

// web is a group of two that has been well for a minute. Its budgets stand in nobody's way.
func web(t *testing.T) *story {
	s := tell(t)
	s.group("web", 2, func(g *store.Group) { g.Budget.MaxUnavailable = many(2) })
	s.born("web", "web-0-aaaaaa", 0)
	s.born("web", "web-1-aaaaaa", 1)
	s.pass(time.Minute)
	return s
}

func many(n store.Amount) *store.Amount { return &n }

// broken fails unless exactly the rules that are named were broken.
func (s *story) broken(rules ...string) {
	s.t.Helper()
	found := Judge(s.events, Terms{})
	var have []string
	for _, v := range found {
		have = append(have, v.Rule)
	}
	if fmt.Sprint(have) != fmt.Sprint(rules) {
		s.t.Fatalf("broken %v, and it should be %v:\n%s", have, rules, Tell(found))
	}
}

func (s *story) innocent() {
	s.t.Helper()
	s.broken()
}
