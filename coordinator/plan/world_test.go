package plan

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// world is a shard in memory: records with revisions, machines, agents, and a leader with the
// evidence that a leader has. It carries plans out as the coordinator does; what the coordinator
// leaves to chance (how calls go, when lists answer, who comes in between) is drawn by fate.
type world struct {
	t    failer
	fate fate
	keys store.Keys
	now  time.Time
	rev  store.Revision
	kvs  map[string]store.KV
	// decoded are records as they were read last. Snapshots share them, since the planner changes
	// nothing that it is given.
	decoded map[string]decoded
	specs   map[string]Spec     // of each group, as read last
	listed  map[string][]string // the names below each kind's prefix, while no key comes or goes

	group    string // the one that is spoken of; there may be others
	machines map[string]*machine
	agents   map[string]*agent

	// What the present leader knows; forgotten by leaderChange.
	seed     uint64
	graceEnd time.Time
	graceWhy string
	witness  map[string]*witness
	timers   map[owner]map[string]running
	extras   map[string]Extra
	full     map[string]map[string]time.Time
	list     *listing // under way
	stale    string
	term     int

	calls  []*call
	served time.Time
	// onCommit is called before each action is carried out, with those of the plan it is part of.
	onCommit func(s *Snapshot, p *Plan, a *Action)
	told     func(a Action)  // of each action carried out
	away     time.Duration   // for how long nobody led before the present leader
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
}

// decoded is a record and what it was read from.
type decoded struct {
	kv     store.KV
	record any
	anew   func() any // reads it once more
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

const (
	callTimeout  = 20 * time.Second
	consistency  = 4 * time.Second
	sessionTTL   = 5 * time.Second
	reconnectMax = 30 * time.Second
	provider     = "cloud"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(t failer, f fate) *world {
	w := &world{
		t: t, fate: f, keys: store.KeysOf("test"), now: epoch, rev: 10, kvs: map[string]store.KV{},
		decoded: map[string]decoded{}, specs: map[string]Spec{}, group: "web",
		machines: map[string]*machine{}, agents: map[string]*agent{}, zones: []string{"a", "b"},
		noRoom: map[string]bool{}, served: epoch, hookFor: 10 * time.Second,
		hidden: map[string]bool{},
	}
	settings := store.DefaultShardSettings()
	settings.ReconnectMax = store.Duration(reconnectMax)
	w.put(w.keys.Shard(), store.Shard{
		Schema: store.Schema, ID: "shard", Name: "test", Created: epoch,
		Settings: settings,
	})
	w.forget()
	t.Cleanup(func() {
		for _, d := range w.decoded {
			w.isUnchanged(d)
		}
	})
	return w
}

// forget makes the leader one who knows nothing yet.
func (w *world) forget() {
	w.term++
	w.seed = uint64(w.term)
	w.witness, w.timers, w.extras = map[string]*witness{}, map[owner]map[string]running{}, map[string]Extra{}
	w.full, w.list = map[string]map[string]time.Time{}, nil
}

func (w *world) put(key string, record any) {
	w.rev++
	w.write(store.Put(key, store.Encode(record)))
}

func (w *world) drop(key string) {
	w.rev++
	w.write(store.Delete(key))
}

func (w *world) write(op store.Write) {
	old, there := w.kvs[op.Key]
	if there == op.Delete {
		w.listed = nil
	}
	if op.Delete {
		delete(w.kvs, op.Key)
		return
	}
	kv := store.KV{Key: op.Key, Value: op.Value, Created: w.rev, Modified: w.rev}
	if there {
		kv.Created = old.Created
	}
	w.kvs[op.Key] = kv
}

// commit is a transaction with the leader's fence and a journal entry, as far as their number goes.
func (w *world) commit(conditions []store.Condition, writes []store.Write) bool {
	w.t.Helper()
	unique := append([]store.Condition{store.Exists("fence")}, conditions...)
	slices.SortFunc(unique, func(a, b store.Condition) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	unique = slices.Compact(unique)
	txn := store.Txn{
		Conditions: unique,
		Writes:     append(slices.Clone(writes), store.Put("journal", nil), store.Put("more news", nil)),
	}
	if err := txn.Validate(); err != nil {
		w.t.Fatalf("transaction is not possible: %v\n%+v", err, txn)
	}
	for _, c := range conditions {
		kv, there := w.kvs[c.Key]
		if c.Absent && there || c.Exists && !there || c.Modified != 0 && kv.Modified != c.Modified || c.Created != 0 &&
			kv.Created != c.Created {
			return false
		}
	}
	w.rev++
	for _, op := range writes {
		w.write(op)
	}
	w.observe(false)
	return true
}

// read reads a record. The caller must not change what it points to: the next caller gets the same
// one.
func read[T any](w *world, key string) store.Versioned[T] {
	kv, ok := w.kvs[key]
	if !ok {
		return store.Versioned[T]{Key: key}
	}
	old, known := w.decoded[key]
	if v, ok := old.record.(store.Versioned[T]); ok && v.Modified == kv.Modified {
		return v
	}
	if known {
		w.isUnchanged(old)
	}
	anew := func() store.Versioned[T] {
		v, err := store.Decode[T](kv)
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		return v
	}
	v := anew()
	w.decoded[key] = decoded{kv: kv, record: v, anew: func() any { return anew() }}
	return v
}

// isUnchanged checks that nobody has changed a record that snapshots share: Compute leaves its
// input alone.
func (w *world) isUnchanged(d decoded) {
	w.t.Helper()
	if now := d.anew(); !reflect.DeepEqual(now, d.record) {
		w.t.Fatalf("%s was changed in memory: it says\n%s\nand was\n%s", d.kv.Key, store.Encode(d.record),
			store.Encode(now))
	}
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
		g.Name, g.Provider = w.group, provider
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
	s := w.snapshot()
	p := Compute(s, w.now)
	var done []Action
	for i := range p.Actions {
		a := &p.Actions[i]
		if w.onCommit != nil {
			w.onCommit(&s, &p, a)
		}
		if w.commit(a.Conditions, append(GoneWrites([]*Action{a}, 0), a.Writes...)) {
			done = append(done, *a)
			for _, told := range a.JournalEntries() {
				if w.told != nil {
					w.told(told)
				}
			}
		}
	}
	for _, c := range p.Calls {
		w.enqueue(c)
	}
	return p, done
}

// newTestWorld is a calm world for a table test.
func newTestWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, calm{})
}
