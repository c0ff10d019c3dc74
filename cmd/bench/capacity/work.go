package capacity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// measurement is one operation that is repeated.
type measurement struct {
	name, what string
	atOnce     int
	batch      uint64 // items per operation; 0: one
	run        func(ctx context.Context) (driven, error)
}

func (m measurement) holds() uint64 { return max(m.batch, 1) }

// The names that the verdict uses.
const (
	Granted    = "leases_granted"
	TakenUp    = "agents_taken_up"
	Renewed    = "renewals"
	RenewPaced = "renewals_paced"
	Decided    = "decisions_many"
	Batched    = "batches_many"
	Noted      = "reports_noted"
	Seen       = "seen_on_watch"
	Listed     = "listed"
)

// How many goroutines run an operation at once, as Leasehold does it: reports and registrations
// come from many agents, batches from few writers.
const (
	many      = 64
	renewers  = 256
	batchers  = 8
	batchSize = 100
	noters    = 4  // transactions of a gateway at once
	noteSize  = 64 // reports in one of its transactions
)

// work is what the measurements share.
type work struct {
	cfg   Config
	deps  Deps
	value []byte

	mu     sync.Mutex
	spare  []store.LeaseID // leases without keys
	leases []store.LeaseID // leases of agents
}

// all returns the measurements in their order: renewals need registered agents.
func (w *work) all() []measurement {
	timed := until{after: w.cfg.Each}
	number := until{iterations: w.cfg.Agents}
	do := func(name, what string, atOnce int, end until, f op) measurement {
		return measurement{
			name: name, what: what, atOnce: atOnce,
			run: func(ctx context.Context) (driven, error) { return flatOut(ctx, atOnce, end, f) },
		}
	}
	batches := func(name, what string, atOnce int) measurement {
		m := do(name, what, atOnce, timed, w.putBatch)
		m.batch = batchSize
		return m
	}
	return []measurement{
		do(Granted, "leases granted", many, number, w.grant),
		do(TakenUp, "agents registered (two reads, lease, alive)", many, number, w.takeUp),
		do(Renewed, "leases renewed", renewers, timed, w.renew),
		{
			name: RenewPaced, what: fmt.Sprintf("leases renewed at %d/s", w.cfg.Pace), atOnce: renewers,
			run: func(ctx context.Context) (driven, error) {
				return paced(ctx, renewers, float64(w.cfg.Pace), w.cfg.Each, w.renew)
			},
		},
		do("puts_one", "puts", 1, timed, w.put),
		do("puts_many", "puts", many, timed, w.put),
		do("decisions_one", "compare-and-puts (fence, record)", 1, timed, w.decide),
		do(Decided, "compare-and-puts (fence, record)", many, timed, w.decide),
		batches("batches_one", fmt.Sprintf("puts in transactions of %d", batchSize), 1),
		batches(Batched, fmt.Sprintf("puts in transactions of %d", batchSize), batchers),
		{
			name: Noted, what: fmt.Sprintf("reports stored (two compares each), in transactions of %d", noteSize),
			atOnce: noters, batch: noteSize, run: func(ctx context.Context) (driven, error) {
				return flatOut(ctx, noters, timed, w.note)
			},
		},
		{name: Seen, what: fmt.Sprintf("put and seen on a watch, at %d/s", w.cfg.News), atOnce: 1, run: w.watch},
		{
			name: Listed, what: fmt.Sprintf("%d records listed", w.cfg.Records), atOnce: 1, batch: uint64(w.cfg.Records),
			run: w.list,
		},
	}
}

func (w *work) key(kind string, n int) string { return fmt.Sprintf("%s%s/%07d", w.cfg.Prefix, kind, n) }

// record returns a value as long as one of Leasehold's records.
func record(size int) []byte {
	return []byte(strings.Repeat("leasehold bench ", size/16+1)[:size])
}

func (w *work) grant(ctx context.Context, _, _ int) error {
	l, err := w.deps.Store.Grant(ctx, w.cfg.TTL)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spare = append(w.spare, l.ID)
	return nil
}

// takeUp does what a gateway does for an agent that it has not served before.
func (w *work) takeUp(ctx context.Context, _, iteration int) error {
	alive := w.key("alive", iteration)
	for _, key := range []string{w.key("instances", iteration), alive} {
		if _, err := w.deps.Store.Get(ctx, key); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	l, err := w.deps.Store.Grant(ctx, w.cfg.TTL)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.leases = append(w.leases, l.ID)
	w.mu.Unlock()
	_, err = w.deps.Store.Commit(ctx, store.Txn{
		Conditions: []store.Condition{store.Absent(alive)},
		Writes:     []store.Write{store.PutLeased(alive, w.value[:min(len(w.value), 300)], l.ID)},
	})
	return err
}

func (w *work) renew(ctx context.Context, _, iteration int) error {
	w.mu.Lock()
	id := w.leases[iteration%len(w.leases)]
	w.mu.Unlock()
	_, err := w.deps.Store.Renew(ctx, id)
	return err
}

func (w *work) put(ctx context.Context, worker, _ int) error {
	_, err := w.deps.Store.Commit(ctx, store.Txn{Writes: []store.Write{store.Put(w.key("puts", worker), w.value)}})
	return err
}

// decide writes as a leader does, under the conditions that it leads and that the record is
// unchanged. They always hold here, because each worker has its own.
func (w *work) decide(ctx context.Context, worker, iteration int) error {
	fence, rec := w.key("fence", worker), w.key("decided", worker)
	if _, err := w.deps.Store.Commit(ctx, store.Txn{
		Conditions: []store.Condition{store.Exists(fence), store.Exists(rec)},
		Writes:     []store.Write{store.Put(rec, w.value)},
	}); !errors.Is(err, store.ErrConflict) {
		return err
	}
	_, err := w.deps.Store.Commit(ctx, store.Txn{Writes: []store.Write{store.Put(fence, nil), store.Put(rec, w.value)}})
	return err
}

// note stores reports as a gateway does, under the conditions that each agent has a record and its
// alive key is unchanged.
func (w *work) note(ctx context.Context, worker, _ int) error {
	var first, txn store.Txn
	for i := range noteSize {
		rec, alive, report := w.key("noted", worker*noteSize+i), w.key("noting", worker*noteSize+i),
			w.key("reports", worker*noteSize+i)
		first.Writes = append(first.Writes, store.Put(rec, nil), store.Put(alive, nil))
		txn.Conditions = append(txn.Conditions, store.Exists(rec), store.Exists(alive))
		txn.Writes = append(txn.Writes, store.Put(report, w.value))
	}
	_, err := w.deps.Store.Commit(ctx, txn)
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	_, err = w.deps.Store.Commit(ctx, first) // for the next transactions
	return err
}

// putBatch writes records that are listed later.
func (w *work) putBatch(ctx context.Context, _, iteration int) error {
	writes := make([]store.Write, 0, batchSize)
	for i := range min(batchSize, w.cfg.Records) {
		writes = append(writes, store.Put(w.key("records", (iteration*batchSize+i)%w.cfg.Records), w.value))
	}
	_, err := w.deps.Store.Commit(ctx, store.Txn{Writes: writes})
	return err
}

// list writes the missing records, and lists them all.
func (w *work) list(ctx context.Context) (driven, error) {
	iterations := until{iterations: (w.cfg.Records + batchSize - 1) / batchSize}
	if _, err := flatOut(ctx, batchers, iterations, w.putBatch); err != nil {
		return driven{}, err
	}
	return flatOut(ctx, 1, until{iterations: 3}, func(ctx context.Context, _, _ int) error {
		l, err := w.deps.Store.List(ctx, w.cfg.Prefix+"records/", 0)
		if err == nil && len(l.KVs) != w.cfg.Records {
			return fmt.Errorf("%d records were listed, of %d", len(l.KVs), w.cfg.Records)
		}
		return err
	})
}

// watch puts keys at a fixed rate, and measures the time from the beginning of each put until a
// watch has delivered it.
func (w *work) watch(ctx context.Context) (driven, error) {
	below := w.cfg.Prefix + "news/"
	begin, err := w.deps.Watcher.List(ctx, below, 0)
	if err != nil {
		return driven{}, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen := w.deps.Watcher.Watch(watching, below, begin.Revision+1)

	var mu sync.Mutex
	due := map[string]time.Time{}
	var puts driven
	var failed error
	putting := make(chan struct{})
	go func() {
		defer close(putting)
		puts, failed = paced(watching, many, float64(w.cfg.News), w.cfg.Each,
			func(ctx context.Context, _, iteration int) error {
				key := w.key("news", iteration)
				mu.Lock()
				due[key] = time.Now()
				mu.Unlock()
				_, err := w.deps.Store.Commit(ctx, store.Txn{Writes: []store.Write{store.Put(key, w.value)}})
				return err
			})
	}()
	lag := driven{}
	done := (<-chan struct{})(putting)
	for done != nil || lag.times.N < puts.times.N {
		select {
		case <-done:
			done = nil
			if failed != nil {
				return lag, failed
			}
			lag.took = puts.took
		case b, open := <-seen:
			if !open || b.Err != nil {
				stop()
				<-putting
				return lag, errors.Join(errors.New("the watch ended"), b.Err, ctx.Err())
			}
			now := time.Now()
			mu.Lock()
			for _, e := range b.Events {
				lag.times.Add(now.Sub(due[e.KV.Key]))
			}
			mu.Unlock()
		}
	}
	return lag, nil
}

// clean removes all that was written. What it cannot remove ends with its lease, if it has one.
func (w *work) clean(ctx context.Context) error {
	w.mu.Lock()
	leases := append(w.spare, w.leases...)
	w.mu.Unlock()
	var err error
	if len(leases) > 0 {
		_, err = flatOut(ctx, many, until{iterations: len(leases)}, func(ctx context.Context, _, iteration int) error {
			return w.deps.Store.Revoke(ctx, leases[iteration])
		})
	}
	listed, failed := w.deps.Store.List(ctx, w.cfg.Prefix, 0)
	if failed != nil {
		return errors.Join(err, failed)
	}
	for kvs := listed.KVs; len(kvs) > 0; {
		n := min(store.MaxOps, len(kvs))
		var txn store.Txn
		for _, kv := range kvs[:n] {
			txn.Writes = append(txn.Writes, store.Delete(kv.Key))
		}
		if _, failed := w.deps.Store.Commit(ctx, txn); failed != nil {
			return errors.Join(err, failed)
		}
		kvs = kvs[n:]
	}
	return err
}
