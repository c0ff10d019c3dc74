package planning

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/store"
)

// Config says what is measured.
type Config struct {
	Size
	Changes int // of each kind
	Lost    int // leases that end at once, at least: always of whole groups
}

// Check returns an error for what cannot be measured.
func (c Config) Check() error {
	switch {
	case c.Groups < 1:
		return fmt.Errorf("%d groups: there must be one at least", c.Groups)
	case c.Instances < c.Groups:
		return fmt.Errorf("%d instances in %d groups: each group needs one at least", c.Instances, c.Groups)
	case c.Changes < 1:
		return fmt.Errorf("%d changes: there must be one at least", c.Changes)
	case c.Lost < 0 || c.Lost > c.Instances:
		return fmt.Errorf("%d lost of %d instances", c.Lost, c.Instances)
	case c.Lost > 0 && c.of(c.Groups-1) < store.DefaultGroup().Storm.Min:
		return fmt.Errorf("%d instances in %d groups: in groups of fewer than %d no loss is a storm: give --lost 0",
			c.Instances, c.Groups, store.DefaultGroup().Storm.Min)
	default:
		return nil
	}
}

// Result holds all measurements.
type Result struct {
	Size
	Keys       int    `json:"keys"`
	KeyBytes   uint64 `json:"key_bytes"` // of keys and values, as etcd holds them
	Processors int    `json:"processors"`

	Cache   Cost   `json:"cache"`         // from etcd's list to records in memory
	Heap    Memory `json:"memory"`        // in use after everything was planned
	Seen    Cost   `json:"evidence"`      // a new leader's first look at all records
	Listed  Cost   `json:"provider_list"` // processing the provider's list
	Plan    Cost   `json:"first_plan"`    // planning every group
	Steps   int    `json:"first_steps"`   // number of plans: planning everything is split up, so that it does not delay other events
	Longest Spread `json:"first_step"`    // duration of each of those
	// keys that the first plan wrote: 0 if the previous leader left nothing to do
	Wrote     int        `json:"first_writes"`
	Changes   []Change   `json:"changes"`
	Storm     *Storm     `json:"storm,omitempty"`
	ColdStart *ColdStart `json:"cold_start,omitempty"` // set with StartCold
}

// Memory is the heap that a leader keeps, after garbage collection.
type Memory struct {
	Cache       uint64 `json:"picture_bytes"`
	Evidence    uint64 `json:"evidence_bytes"`
	PerInstance uint64 `json:"per_instance_bytes"` // both
}

// Run measures everything. It reports its progress.
func Run(ctx context.Context, cfg Config, progress func(what string)) (Result, error) {
	if err := cfg.Check(); err != nil {
		return Result{}, err
	}
	r := Result{Size: cfg.Size, Processors: runtime.GOMAXPROCS(0)}
	l := newLeader()
	before := heap()
	if err := r.read(ctx, l, cfg.Size, progress); err != nil {
		return r, err
	}
	cache := heap()
	r.Heap.Cache = cache - min(cache, before)

	progress("a new leader looks at all of it")
	r.Seen = costOf(l.begin)
	r.firstPlan(l)
	l.seesMachines()
	list := l.machines()
	r.Listed = costOf(func() { l.evidence.ListedBy(machines, l.now, list, l.content) })
	l.settle()
	evidence := heap()
	r.Heap.Evidence = evidence - min(evidence, cache)
	r.Heap.PerInstance = (r.Heap.Cache + r.Heap.Evidence) / uint64(max(1, r.Instances))
	l.pass(10 * time.Minute) // the grace of a new leader: SAFE-1
	l.settle()

	if err := r.change(ctx, l, cfg, progress); err != nil {
		return r, err
	}
	if cfg.Lost > 0 {
		progress(fmt.Sprintf("%d leases end at once", cfg.Lost))
		s := l.storm(cfg.Size, cfg.Lost)
		r.Storm = &s
	}
	return r, ctx.Err()
}

// aPage is how many keys the cache reads at a time.
const aPage = 10_000

// read makes the shard's records page by page and adds them to the cache. Only the cache's part is
// measured.
func (r *Result) read(ctx context.Context, l *leader, size Size, progress func(string)) error {
	var page []store.KV
	flush := func() {
		r.Cache = r.Cache.plus(costOf(func() { l.read(page) }))
		page = page[:0]
		clear(page[:cap(page)]) // otherwise the last page would count as memory of the cache
		progress(fmt.Sprintf("%d of %d instances read", len(l.content.Instances), size.Instances))
	}
	for kvs := range size.Records {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, kv := range kvs {
			r.Keys++
			r.KeyBytes += uint64(len(kv.Key) + len(kv.Value))
		}
		if page = append(page, kvs...); len(page) >= aPage {
			flush()
		}
	}
	flush()
	return nil
}

// firstPlan plans everything once, in parts, as a new leader does.
func (r *Result) firstPlan(l *leader) {
	var took measure.Histogram
	r.Plan = costOf(func() {
		for {
			begun := time.Now()
			if _, n := l.step(); n == 0 {
				return
			}
			took.Add(time.Since(begun))
			r.Wrote += len(l.carryOut())
		}
	})
	r.Steps, r.Longest = int(took.N), spreadOf(took)
}

// maxTrials is how many groups take turns. Each is kept as it was, to be restored.
const maxTrials = 20

func (r *Result) change(ctx context.Context, l *leader, cfg Config, progress func(string)) error {
	var trials []*trial
	n := min(maxTrials, cfg.Groups)
	for i := range n {
		trials = append(trials, newTrial(l, i*cfg.Groups/n, cfg.Size))
	}
	for _, k := range kinds() {
		r.Changes = append(r.Changes, measureChange(k, trials, cfg.Changes, func(n int) {
			progress(fmt.Sprintf("%s: %d of %d", k.what, n+1, cfg.Changes))
		}))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
