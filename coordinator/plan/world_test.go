package plan

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// world is a shard in memory: records with revisions, machines, agents, and a leader, which is
// coordinator/leader. What the coordinator leaves to chance (how calls go, when lists answer, who
// comes in between) is drawn by fate.
type world struct {
	t       failer
	fate    fate
	keys    store.Keys
	now     time.Time
	rev     store.Revision
	kvs     map[string]store.KV
	decoded map[string]any      // records as they were read last
	listed  map[string][]string // the names below each kind's prefix, while no key comes or goes

	group    string // the one that is spoken of; there may be others
	machines map[string]*machine
	agents   map[string]*agent

	lead   Lead
	term   int
	served time.Time // when the leader was last at work
	work   []*work   // that takes time
	plan   Plan      // the last one
	done   []Action  // of it, what was not overtaken
	// What a test has every leader know.
	knows   map[string][]func(*Instance)
	full    map[string]map[string]time.Time
	outages map[string]Outage // instead of what the evidence shows; nil: as it shows
	stale   string
	noGrace bool

	// onCommit is called before each action is carried out, with all actions of its plan.
	onCommit func(s *Snapshot, p *Plan, a *Action)
	told     func(a Action)  // of each action carried out
	zones    []string        // of the provider
	noRoom   map[string]bool // zones without room
	hookFor  time.Duration   // how long a drain hook takes; 0: it never ends
	sick     string          // the instance type with which no workload gets healthy
	// unmakable is the instance type that the provider refuses for good.
	unmakable string
	dumb      bool            // no new agent registers
	wrong     string          // the check that fails wherever it is done
	crashes   bool            // every workload that is started ends at once
	hidden    map[string]bool // machines that the provider forgets to list
	// load is what the group's instances share (cpu and network), or have each (memory); nil:
	// nothing is reported.
	load map[string]float64
}

// failer is what a world needs of a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// fate decides what the world leaves open.
type fate interface {
	// happens says whether something of the given probability happens now.
	happens(what string, percent int) bool
	// wait says how long something takes.
	wait(what string, most time.Duration) time.Duration
}

// calm is a fate in which nothing goes wrong and nothing takes time.
type calm struct{}

func (calm) happens(string, int) bool                 { return false }
func (calm) wait(string, time.Duration) time.Duration { return 0 }

// What the leader of a world knows of its provider and of replicas.
const (
	CallTimeout = 20 * time.Second
	Consistency = 4 * time.Second
	SessionTTL  = 5 * time.Second
)

const (
	reconnectMax = 30 * time.Second
	cloud        = "cloud"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t failer, f fate) *world {
	w := &world{
		t: t, fate: f, keys: store.KeysOf("test"), now: epoch, rev: 10, kvs: map[string]store.KV{},
		decoded: map[string]any{}, group: "web",
		machines: map[string]*machine{}, agents: map[string]*agent{}, zones: []string{"a", "b"},
		noRoom: map[string]bool{}, served: epoch, hookFor: 10 * time.Second,
		hidden: map[string]bool{}, knows: map[string][]func(*Instance){}, full: map[string]map[string]time.Time{},
	}
	settings := store.DefaultShardSettings()
	settings.ReconnectMax = store.Duration(reconnectMax)
	w.begin()
	w.put(w.keys.Shard(), store.Shard{
		Schema: store.Schema, ID: "shard", Name: "test", Created: epoch,
		Settings: settings,
	})
	w.now = epoch.Add(-time.Minute)
	w.listDue() // what follows is not the first List
	w.now = epoch
	t.Cleanup(func() {
		w.isUnchanged()
	})
	return w
}

func (w *world) put(key string, record any) {
	w.write(store.Put(key, store.Encode(record)))
}

func (w *world) drop(key string) { w.write(store.Delete(key)) }

// write makes writes at one revision, and shows them to the leader.
func (w *world) write(writes ...store.Write) {
	w.rev++
	var events []store.Event
	for _, op := range writes {
		old, there := w.kvs[op.Key]
		if there == op.Delete {
			w.listed = nil
		}
		kv := store.KV{Key: op.Key, Value: op.Value, Created: w.rev, Modified: w.rev}
		if there {
			kv.Created = old.Created
		}
		if op.Delete {
			delete(w.kvs, op.Key)
		} else {
			w.kvs[op.Key] = kv
		}
		if there || !op.Delete {
			events = append(events, store.Event{KV: kv, Deleted: op.Delete})
		}
	}
	w.lead.Changed(w.rev, events)
}

// commit is a transaction with the leader's fence and entries of the journal, as far as their
// number goes.
func (w *world) commit(conditions []store.Condition, writes []store.Write, entries int) bool {
	w.t.Helper()
	unique := append([]store.Condition{store.Exists("fence")}, conditions...)
	slices.SortFunc(unique, func(a, b store.Condition) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	unique = slices.Compact(unique)
	txn := store.Txn{Conditions: unique, Writes: slices.Clone(writes)}
	for n := range entries {
		txn.Writes = append(txn.Writes, store.Put(fmt.Sprint("journal", n), nil))
	}
	if err := txn.Validate(); len(txn.Writes) > 0 && err != nil {
		w.t.Fatalf("transaction is not possible: %v\n%+v", err, txn)
	}
	if !w.holds(conditions) {
		return false
	}
	if len(writes) > 0 {
		w.write(writes...)
	}
	return true
}

// read reads a record. The caller must not change what it points to: the next caller gets the same
// one.
func read[T any](w *world, key string) store.Versioned[T] {
	kv, ok := w.kvs[key]
	if !ok {
		return store.Versioned[T]{Key: key}
	}
	if v, ok := w.decoded[key].(store.Versioned[T]); ok && v.Modified == kv.Modified {
		return v
	}
	v, err := store.Decode[T](kv)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	w.decoded[key] = v
	return v
}

// names lists what is below a kind's prefix, in order.
func (w *world) names(kind string) []string {
	if out, known := w.listed[kind]; known {
		return slices.Clone(out)
	}
	var out []string
	for key := range w.kvs {
		if name, ok := strings.CutPrefix(key, w.keys.Of(kind)); ok {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	if w.listed == nil {
		w.listed = map[string][]string{}
	}
	w.listed[kind] = out
	return slices.Clone(out)
}

func (w *world) instance(id string) store.Versioned[store.Instance] {
	return read[store.Instance](w, w.keys.Instance(id))
}

func (w *world) instances() []store.Versioned[store.Instance] {
	var out []store.Versioned[store.Instance]
	for _, id := range w.names(store.KindInstances) {
		out = append(out, w.instance(id))
	}
	return out
}

func (w *world) spec() store.Versioned[store.Group] {
	return read[store.Group](w, w.keys.Group(w.group))
}

// edit changes the group's spec, from the defaults if there is none.
func (w *world) edit(change func(*store.Group)) {
	g := w.spec().Record
	if g.Schema == 0 {
		g = store.DefaultGroup()
		g.Name, g.Provider = w.group, cloud
		g.Flap.Noise = 0
		g.Complete()
	}
	change(&g)
	w.put(w.keys.Group(w.group), g)
}

func (w *world) editShard(change func(*store.Shard)) {
	s := read[store.Shard](w, w.keys.Shard()).Record
	change(&s)
	w.put(w.keys.Shard(), s)
}

// step plans once and carries the plan out. It returns the plan, and what of it was not overtaken.
func (w *world) step() (Plan, []Action) {
	w.t.Helper()
	w.served = w.now
	w.plan, w.done = Plan{}, nil
	w.lead.Plan(w.everything())
	return w.plan, w.done
}

// newTestWorld is a calm world for a table test.
func newTestWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, calm{})
}
