package coordinator

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// callsAtOnce bounds the concurrent calls of one kind to one provider.
const callsAtOnce = 8

// queue carries out calls of one kind to one provider: bounded in number and rate, with jitter, the
// urgent first (REC-9). Its contents follow from the records, so nothing is lost with it. Each kind
// has a queue of its own, so removals do not wait for the rate of creations; so has each provider,
// so one that hangs delays no other.
type queue struct {
	t        *term
	provider provider.Provider

	mu      sync.Mutex
	waiting calls
	next    int
	heard   map[string]bool // dead machines whose consoles were fetched, until they are removed
	ready   chan struct{}
	pace    *pace // nil: only the number of concurrent calls is bounded
}

func newQueue(t *term, p provider.Provider, pace *pace) *queue {
	return &queue{t: t, provider: p, heard: map[string]bool{}, ready: make(chan struct{}, 1), pace: pace}
}

// queueOf identifies a queue.
type queueOf struct {
	provider string
	kind     plan.CallKind
}

// newQueues returns the queues of all providers. They share the shard's rate of creations.
func (t *term) newQueues() map[queueOf]*queue {
	creations := newPace(t.settings)
	queues := map[queueOf]*queue{}
	for name, p := range t.r.deps.Providers {
		queues[queueOf{name, plan.CallCreate}] = newQueue(t, p, creations)
		queues[queueOf{name, plan.CallRestart}] = newQueue(t, p, nil)
		queues[queueOf{name, plan.CallRemove}] = newQueue(t, p, nil)
	}
	return queues
}

// ask queues a call.
func (t *term) ask(c plan.Call) {
	if q := t.queues[queueOf{c.Provider, c.Kind}]; q != nil {
		q.add(c)
		return
	}
	t.evidence.Removed(c.Instance, fmt.Errorf("this coordinator has no provider %q", c.Provider))
}

// queued is a waiting call. Lower ranks go first; equals in order of arrival.
type queued struct {
	plan.Call
	rank, number int
	since        time.Time
}

// add queues a call unless one for the same instance waits or runs: calls for one ID never overlap
// (SAFE-8).
func (q *queue) add(c plan.Call) {
	if !q.t.evidence.Busy(c.Instance) {
		return
	}
	q.mu.Lock()
	heap.Push(&q.waiting, queued{Call: c, rank: c.Rank, number: q.next, since: time.Now()})
	q.next++
	q.mu.Unlock()
	q.poke()
}

func (q *queue) poke() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0
}

// pop returns the most urgent call. There must be one.
func (q *queue) pop() queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	next, _ := heap.Pop(&q.waiting).(queued) // it holds nothing else
	return next
}

// run works until ctx ends, and returns when no call is running.
func (q *queue) run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	places := make(chan struct{}, callsAtOnce)
	for {
		select {
		case <-ctx.Done():
			return
		case places <- struct{}{}:
		}
		for q.empty() {
			select {
			case <-ctx.Done():
				return
			case <-q.ready:
			}
		}
		if q.pace != nil && !q.pace.wait(ctx) {
			return
		}
		c := q.pop() // only now: a more urgent one may have arrived
		q.t.r.deps.Meter.Asked(string(c.Kind), time.Since(c.since))
		working.Go(func() {
			defer func() { <-places }()
			q.call(ctx, c.Call)
		})
	}
}

func (q *queue) call(ctx context.Context, c plan.Call) {
	in, held, ok := q.look(c)
	if !ok || held {
		q.t.evidence.Dropped(c.Instance) // it is planned again on the present state
		return
	}
	switch c.Kind {
	case plan.CallCreate:
		q.create(ctx, c, in)
	case plan.CallRestart:
		q.restart(ctx, c, in)
	default:
		if err := q.stands(ctx, c); err != nil {
			q.t.log.Debug("call not begun", "instance", c.Instance, "error", err)
			q.t.evidence.Postponed(c.Instance, waitAfter(err))
			return
		}
		q.remove(ctx, in)
	}
}

// stands reads from etcd whether everything that a call rests on still holds. Other calls are
// recorded before they begin, and compare it then; a removal is not, because the record already
// says that the machine has to go.
func (q *queue) stands(ctx context.Context, c plan.Call) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	for _, condition := range c.Conditions {
		kv, err := q.t.r.deps.Store.Get(ctx, condition.Key)
		switch {
		case errors.Is(err, store.ErrNotFound) && condition.Absent:
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return fmt.Errorf("read %s: %w", condition.Key, err)
		case store.Unchanged(kv) != condition:
			return &store.ConflictError{Keys: []string{condition.Key}}
		}
	}
	return nil
}

// look reads the record once more as the call leaves the queue.
func (q *queue) look(c plan.Call) (in store.Versioned[store.Instance], held, ok bool) {
	q.t.r.cache.View(func(content *cache.Content) {
		in, ok = content.Instances[c.Instance]
		held = content.Shard.Record.Hold != nil
	})
	return in, held, ok && in.Modified == c.Record
}

// record writes that the provider is about to be called, with the journal entry if there is one. It
// comes before the call and compares everything that the plan saw: an operator's pause or hold, or
// a new leader, wins over a call that has not begun (SAFE-8, SAFE-12). If it cannot be written, the
// provider is not called.
func (q *queue) record(ctx context.Context, c plan.Call, writes []store.Write, rec store.Instance,
	entries ...store.JournalEntry,
) bool {
	t := q.t
	rev, err := t.commit(ctx, c.Conditions, writes, entries...)
	if err != nil {
		t.log.Debug("call not begun", "instance", rec.ID, "error", err)
		t.evidence.Postponed(rec.ID, waitAfter(err))
		return false
	}
	t.evidence.Wrote(rec.Group, rev)
	for _, entry := range entries {
		t.log.Info("decided", "what", entry.What, "group", rec.Group, "instance", rec.ID, "rule", entry.Rule,
			"revision", int64(rev))
	}
	return true
}

// create records the call, and then makes it.
func (q *queue) create(ctx context.Context, c plan.Call, in store.Versioned[store.Instance]) {
	t, rec := q.t, in.Record
	why := "provider " + rec.Spec.Provider + " is asked"
	if rec.Phase == store.Creating {
		why += " again"
	}
	from := rec.Phase
	if rec.Phase != store.Creating {
		rec.Phase, rec.Since = store.Creating, time.Now().UTC()
	}
	rec.Called = true
	rec.Last = store.Decision{Rule: "SAFE-8", Why: why, Revision: c.Revision, At: time.Now().UTC()}
	var entries []store.JournalEntry
	if from != store.Creating {
		entries = append(entries, store.JournalEntry{
			Kind: store.EntryCall,
			Rule: "SAFE-8", What: why, Group: rec.Group, Instance: rec.ID, Slot: rec.Place(), From: from,
			To: store.Creating, Revision: c.Revision,
		})
	}
	t.r.deps.Before("record creating", rec.ID)
	caps := q.provider.Capabilities()
	// The call's deadline starts before it is recorded: a leader that finds the record knows when
	// the last call has ended, however long this process stands still in between.
	begun := time.Now()
	call, cancel := context.WithDeadline(ctx, begun.Add(caps.CallTimeout))
	defer cancel()
	token, err := t.newToken(call, rec, caps.CallTimeout)
	if err != nil {
		t.log.Warn("call not begun: no join token", "instance", rec.ID, "error", err)
		t.evidence.Postponed(rec.ID, waitAfter(err))
		return
	}
	if !q.record(ctx, c, append(token.writes(), store.Put(in.Key, store.Encode(rec))), rec, entries...) {
		token.drop(ctx, t)
		return
	}
	t.r.deps.Before("provider create", rec.ID)
	asked := time.Now()
	m, err := q.provider.Create(call, t.request(rec, token))
	t.r.deps.Meter.Called(rec.Spec.Provider, string(plan.CallCreate), time.Since(asked), err)
	t.r.deps.Before("provider created", rec.ID)
	if err != nil {
		t.log.Error("provider did not create", "group", rec.Group, "instance", rec.ID, "provider", rec.Spec.Provider,
			"error", err)
	}
	if evidence.NothingMade(err) {
		token.drop(ctx, t)
	}
	t.evidence.Created(rec, begun, m, err)
}

// remove stops the machine in order, and then removes it (HEAL-14). Both may be repeated.
func (q *queue) remove(ctx context.Context, in store.Versioned[store.Instance]) {
	t, rec := q.t, in.Record
	timeout := q.provider.Capabilities().CallTimeout
	q.keepConsole(ctx, rec)
	t.r.deps.Before("provider stop", rec.ID)
	asked := time.Now()
	stop, cancel := context.WithTimeout(ctx, timeout+rec.Spec.StopTimeout.D())
	err := q.provider.Stop(stop, t.shard.ID, rec.ID, rec.Spec.StopTimeout.D())
	cancel()
	var throttled *provider.ThrottledError
	if ctx.Err() == nil && !errors.As(err, &throttled) {
		if err != nil {
			t.log.Warn("machine did not stop in order and is removed all the same", "group", rec.Group, "instance",
				rec.ID, "error", err)
		}
		t.r.deps.Before("provider delete", rec.ID)
		del, cancel := context.WithTimeout(ctx, timeout)
		err = q.provider.Delete(del, t.shard.ID, rec.ID)
		cancel()
	}
	if err != nil && ctx.Err() == nil {
		t.log.Error("provider did not remove", "group", rec.Group, "instance", rec.ID, "provider", rec.Spec.Provider,
			"error", err)
	}
	t.r.deps.Meter.Called(rec.Spec.Provider, string(plan.CallRemove), time.Since(asked), err)
	t.r.deps.Before("provider deleted", rec.ID)
	if err == nil {
		q.forget(rec.ID)
	}
	t.evidence.Removed(rec.ID, err)
	if l := t.listers[rec.Spec.Provider]; l != nil {
		l.ask() // only a List proves the removal
	}
}

// request returns what a provider needs to make an instance's machine.
func (t *term) request(rec store.Instance, token joinToken) provider.CreateRequest {
	settings := t.settings()
	var coordinators []string
	t.r.cache.View(func(c *cache.Content) {
		for _, id := range slices.Sorted(maps.Keys(c.Replicas)) {
			coordinators = append(coordinators, c.Replicas[id].Record.Address)
		}
	})
	if len(coordinators) == 0 {
		coordinators = []string{t.r.cfg.Advertise}
	}
	fence := rec.Spec.Report.OnLeaseLost
	if !fence.Fences() {
		fence = store.LeaseLost{}
	}
	return provider.CreateRequest{
		Template: provider.Template{
			InstanceType: rec.Spec.Template.InstanceType, Zones: rec.Spec.Template.Zones,
			Settings: rec.Spec.Template.Settings,
		},
		Zone: rec.Zone,
		Bootstrap: provider.Bootstrap{
			Schema: provider.BootstrapSchema, Instance: rec.ID, Group: rec.Group, Slot: rec.Slot, Zone: rec.Zone,
			Made: rec.Created.UTC().Format(time.RFC3339), Shard: t.shard.ID, ShardName: t.r.cfg.Shard,
			Coordinators:   coordinators,
			ReportInterval: rec.Spec.Report.Interval.String(), ReconnectMin: settings.ReconnectMin.String(),
			ReconnectMax: settings.ReconnectMax.String(),
			Run:          rec.Spec.Workload.Run, Vars: rec.Spec.Vars, Secrets: rec.Spec.Secrets,
			StopTimeout: rec.Spec.StopTimeout.String(),
			Lifecycle:   rec.Spec.Lifecycle, OnLeaseLost: fence.Do, OnLeaseLostRun: fence.Run,
			Checked: len(rec.Spec.Checks) > 0, JoinToken: token.secret, CA: t.ca(),
		},
	}
}

// calls is a heap of calls, the most urgent on top.
type calls []queued

func (c calls) Len() int { return len(c) }
func (c calls) Less(i, j int) bool {
	if c[i].rank != c[j].rank {
		return c[i].rank < c[j].rank
	}
	return c[i].number < c[j].number
}
func (c calls) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *calls) Push(x any) {
	if call, ok := x.(queued); ok { // it holds nothing else
		*c = append(*c, call)
	}
}

func (c *calls) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}
