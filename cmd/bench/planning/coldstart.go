package planning

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/coordinator/cache"
	core "github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// ColdStart says how long a new leader takes that starts from etcd alone.
type ColdStart struct {
	Listed  time.Duration `json:"listed_ns"`     // until all records are in memory
	First   time.Duration `json:"first_plan_ns"` // until the first groups are planned: from then on it acts
	All     time.Duration `json:"all_planned_ns"`
	CPU     time.Duration `json:"cpu_ns"`             // of the leader, until everything is planned
	EtcdCPU time.Duration `json:"etcd_cpu_ns"`        // in the same time; 0: unknown
	Heap    uint64        `json:"memory_bytes"`       // after garbage collection
	Most    uint64        `json:"most_memory_bytes"`  // the largest resident set of this process
	Changes Spread        `json:"change_to_plan"`     // from the write of a report into etcd to the plan
	Changed int           `json:"changes"`            // number of those
	Records int           `json:"records"`            // records listed
	Written time.Duration `json:"records_written_ns"` // how long writing the records took, before the cold start
}

// EtcdCPU returns the processor time that etcd has used.
type EtcdCPU func() (time.Duration, error)

// StartCold writes the records of a shard into an empty etcd, and starts a leader on them.
func StartCold(ctx context.Context, st store.Store, size Size, changes int, etcd EtcdCPU,
	progress func(string),
) (c ColdStart, err error) {
	begun := time.Now()
	if c.Records, err = seed(ctx, st, size, progress); err != nil {
		return c, err
	}
	c.Written = time.Since(begun)
	before := heap()
	progress("a new leader reads all of it")
	etcdBefore, _ := etcd()

	ctx, end := context.WithCancel(ctx)
	l := newLeader()
	p := cache.New(keys)
	var following sync.WaitGroup
	defer following.Wait()
	defer end()
	cpu, begun := cpuTime(), time.Now()
	following.Go(func() { _ = p.Run(ctx, st) }) // it ends only with its context
	if err := p.WaitFor(ctx, 1); err != nil {
		return c, err
	}
	c.Listed = time.Since(begun)
	woken := make(chan struct{}, 1)
	l.lead(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	defer p.Listen(l.evidence)()
	for l.stepOn(p) > 0 {
		if c.First == 0 {
			c.First = time.Since(begun)
		}
	}
	c.All, c.CPU = time.Since(begun), cpuTime()-cpu
	if etcdAfter, err := etcd(); err == nil {
		c.EtcdCPU = etcdAfter - etcdBefore
	}
	after := heap()
	c.Heap = after - min(after, before)
	if own, err := measure.Read(os.Getpid()); err == nil {
		c.Most = own.MostMemory
	}
	progress(fmt.Sprintf("%d changes are planned", changes))
	err = c.change(ctx, st, l, p, size, changes, woken)
	return c, err
}

// stepOn is step with a cache that follows etcd. It returns how many groups were planned.
func (l *leader) stepOn(p *cache.Cache) int {
	var c core.Compute
	there := false
	p.View(func(content *cache.Content) {
		l.content = content
		c, there = l.look()
	})
	if !there {
		return 0
	}
	planned := plan.Compute(*c.Snapshot, l.now)
	p.View(func(*cache.Content) {
		l.take(core.Planned{Plan: planned})
		l.giveUp() // nothing is carried out
	})
	return len(c.Groups)
}

// change makes instances report a failed check, and then their health, by writes to etcd.
func (c *ColdStart) change(ctx context.Context, st store.Store, l *leader, p *cache.Cache, size Size, changes int,
	woken <-chan struct{},
) error {
	var took measure.Histogram
	for n := range changes {
		group := groupName((n / 2) % size.Groups)
		id, config := instanceID(group, 0), ""
		p.View(func(content *cache.Content) { config = content.Instances[id].Record.Config })
		write := store.Put(keys.Report(id), store.Encode(reportOf(id, config, n%2 == 1)))
		begun := time.Now()
		if _, err := st.Commit(ctx, store.Txn{Writes: []store.Write{write}}); err != nil {
			return fmt.Errorf("write a report: %w", err)
		}
		for l.stepOn(p) == 0 {
			select {
			case <-woken:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		took.Add(time.Since(begun))
	}
	c.Changes, c.Changed = spreadOf(took), changes
	return nil
}

const (
	writers   = 8   // at once
	perCommit = 100 // writes in a transaction
)

// seed writes the records of a shard and returns their number.
func seed(ctx context.Context, st store.Store, size Size, progress func(string)) (records int, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	txns := make(chan []store.Write)
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for writes := range txns {
				if _, err := st.Commit(ctx, store.Txn{Writes: writes}); err != nil {
					stop(fmt.Errorf("write the shard's records: %w", err))
				}
			}
		})
	}
	done := 0
	for kvs := range size.Records {
		for ; len(kvs) > 0 && ctx.Err() == nil; kvs = kvs[min(perCommit, len(kvs)):] {
			var writes []store.Write
			for _, kv := range kvs[:min(perCommit, len(kvs))] {
				writes = append(writes, store.Put(kv.Key, kv.Value))
			}
			records += len(writes)
			txns <- writes
		}
		done++
		progress(fmt.Sprintf("%d of %d groups written into etcd", done-1, size.Groups))
		if ctx.Err() != nil {
			break
		}
	}
	close(txns)
	writing.Wait()
	return records, context.Cause(ctx)
}
