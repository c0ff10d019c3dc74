package trial

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/seed"
	"github.com/leasehold/leasehold/store"
)

// observer watches the shard in etcd, as any client may. Its times are of this machine's clock,
// when the change arrives.
type observer struct {
	keys    store.Keys
	watches sync.WaitGroup

	mu        sync.Mutex
	err       error
	instances map[string]store.Phase
	phases    map[store.Phase]int
	alive     map[string]bool
	status    map[string]bool
	storms    map[string]bool // groups that have or had a status
	rolls     map[string]bool // groups that roll now
	replicas  map[string]int  // disturbances that each replica has seen
	disturbed int             // since the beginning
	last      string          // disturbance

	judged  map[string]judgment  // when an instance was first judged failed
	acted   map[string]time.Time // when it was given up: its replacement or its deletion was recorded
	made    []string             // instances that were created
	removed int                  // instances whose records were deleted
	endings map[string]time.Time // alive keys that ended
	ended   int                  // how often an alive key ended
}

// judgment is what the journal says about an instance.
type judgment struct {
	At      time.Time
	Verdict store.Verdict
	Rule    string
	Why     string
}

// watched are the kinds of keys that matter to a bench. Reports are not watched: they are as many
// as all others together.
var watched = []string{store.KindInstances, store.KindAlive, store.KindEvents, store.KindReplicas, store.KindStatus}

// observe starts to watch. It ends with the context; wait waits for that.
func observe(ctx context.Context, st store.Store, keys store.Keys, shard seed.Shard) *observer {
	o := newObserver(keys, shard)
	for _, kind := range watched {
		batches := st.Watch(ctx, keys.Of(kind), shard.Revision+1)
		o.watches.Go(func() {
			for b := range batches {
				o.take(b)
			}
		})
	}
	return o
}

// newObserver starts with the shard as it was written.
func newObserver(keys store.Keys, shard seed.Shard) *observer {
	o := &observer{
		keys: keys, instances: map[string]store.Phase{}, phases: map[store.Phase]int{}, alive: map[string]bool{},
		status: map[string]bool{}, storms: map[string]bool{}, rolls: map[string]bool{},
		replicas: map[string]int{}, judged: map[string]judgment{}, acted: map[string]time.Time{},
		endings: map[string]time.Time{},
	}
	for _, id := range shard.Instances {
		o.instances[id] = store.Booting
	}
	o.phases[store.Booting] = len(shard.Instances)
	return o
}

func (o *observer) wait() { o.watches.Wait() }

func (o *observer) take(b store.Batch) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if b.Err != nil && o.err == nil {
		o.err = fmt.Errorf("watch the shard: %w", b.Err)
	}
	for _, ev := range b.Events {
		kind, name, _ := o.keys.Split(ev.KV.Key)
		var err error
		switch kind {
		case store.KindInstances:
			err = o.instance(name, ev, now)
		case store.KindAlive:
			if ev.Deleted && o.alive[name] {
				o.endings[name] = now
				o.ended++
			}
			if o.alive[name] = !ev.Deleted; ev.Deleted {
				delete(o.alive, name)
			}
		case store.KindEvents:
			err = o.event(ev, now)
		case store.KindReplicas:
			err = o.replica(name, ev)
		case store.KindStatus:
			err = o.group(name, ev)
		}
		if err != nil && o.err == nil {
			o.err = fmt.Errorf("read %s: %w", ev.KV.Key, err)
		}
	}
}

func (o *observer) instance(id string, ev store.Event, now time.Time) error {
	before, known := o.instances[id]
	if known {
		o.phases[before]--
	}
	if ev.Deleted {
		delete(o.instances, id)
		o.removed++
		return nil
	}
	v, err := store.Decode[store.Instance](ev.KV)
	if err != nil {
		return err
	}
	o.instances[id] = v.Record.Phase
	o.phases[v.Record.Phase]++
	if !known {
		o.made = append(o.made, id)
		o.act(v.Record.Replaces, now)
	}
	if v.Record.Phase == store.Draining || v.Record.Phase == store.Deleting {
		o.act(id, now)
	}
	return nil
}

func (o *observer) act(id string, now time.Time) {
	if _, done := o.acted[id]; id != "" && !done {
		o.acted[id] = now
	}
}

func (o *observer) event(ev store.Event, now time.Time) error {
	if ev.Deleted {
		return nil
	}
	v, err := store.Decode[store.JournalEntry](ev.KV)
	if err != nil {
		return err
	}
	e := v.Record
	if _, done := o.judged[e.Instance]; e.Instance != "" && e.Verdict.Failed() && !done {
		o.judged[e.Instance] = judgment{now, e.Verdict, e.Rule, e.Why}
	}
	return nil
}

func (o *observer) replica(id string, ev store.Event) error {
	if ev.Deleted {
		return nil
	}
	v, err := store.Decode[store.Replica](ev.KV)
	if err != nil {
		return err
	}
	if more := v.Record.Disturbances - o.replicas[id]; more > 0 {
		o.disturbed += more
		o.last = v.Record.Last.What
	}
	o.replicas[id] = v.Record.Disturbances
	return nil
}

func (o *observer) group(name string, ev store.Event) error {
	if ev.Deleted {
		return nil
	}
	v, err := store.Decode[store.Status](ev.KV)
	if err != nil {
		return err
	}
	o.status[name] = true
	o.rolls[name] = v.Record.Rollout != nil
	if v.Record.Storm != nil {
		o.storms[name] = true
	}
	return nil
}

func (o *observer) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *observer) statuses() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.status)
}

// running returns how many instances are healthy by their records.
func (o *observer) running() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phases[store.Running]
}

// counts are what was seen so far, for comparison with later counts.
type counts struct {
	made, removed, ended, disturbed, storms int
}

func (o *observer) count() counts {
	o.mu.Lock()
	defer o.mu.Unlock()
	return counts{len(o.made), o.removed, o.ended, o.disturbed, len(o.storms)}
}

// given returns when instances were given up.
func (o *observer) given(ids []string) map[string]time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]time.Time{}
	for _, id := range ids {
		if at, done := o.acted[id]; done {
			out[id] = at
		}
	}
	return out
}

// wrongly returns the instances that were judged failed or given up although the bench did nothing
// to them, and why.
func (o *observer) wrongly(harmed map[string]bool) map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]string{}
	for id := range o.acted {
		if !harmed[id] {
			out[id] = "given up"
		}
	}
	for id, j := range o.judged {
		if !harmed[id] {
			out[id] = fmt.Sprintf("%s (%s): %s", j.Verdict, j.Rule, j.Why)
		}
	}
	return out
}

// lost returns the instances whose lease ended although the bench did nothing to them.
func (o *observer) lost(harmed map[string]bool) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.endings {
		if !harmed[id] {
			n++
		}
	}
	return n
}

// endedOf counts the agents whose lease has ended and that have none now.
func (o *observer) endedOf(ids []string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range ids {
		if !o.alive[id] {
			n++
		}
	}
	return n
}

// well returns how many instances are healthy by their records, and how many have a lease.
func (o *observer) well() (running, leased int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phases[store.Running], len(o.alive)
}

// forget resets the counts of instances judged, given up and lost.
func (o *observer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.judged)
	clear(o.acted)
	clear(o.endings)
	clear(o.storms)
}

func (o *observer) lastDisturbance() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// rolling reports whether a group rolls.
func (o *observer) rolling(group string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.rolls[group]
}

// judgedLost returns the instances that were judged lost, and why.
func (o *observer) judgedLost() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]string{}
	for id, j := range o.judged {
		if j.Verdict == store.Lost {
			out[id] = fmt.Sprintf("%s (%s): %s", j.Verdict, j.Rule, j.Why)
		}
	}
	return out
}
