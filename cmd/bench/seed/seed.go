package seed

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Plan describes the shard.
type Plan struct {
	Shard     string // the shard's name
	Instances int
	GroupSize int // at most so many instances per group
	Provider  string
	Zone      string
	Interval  time.Duration // between reports
	LeaseTTL  time.Duration // 0: as the interval has it
	// Certificates is how long the instances' certificates last, which Authority signs; 0: they
	// have none.
	Certificates time.Duration
	// ReconnectMax is the longest that an agent waits before it reconnects; 0: the default of a
	// shard.
	ReconnectMax time.Duration
}

// Shard is what was written.
type Shard struct {
	ID        string   // the random ID
	Instances []string // in order: instances of a group are adjacent
	Groups    []string
	LeaseTTL  time.Duration
	Revision  store.Revision // after the last write
}

// Groups of a bench replace as many instances at once as fail, and wait for machines as long as it
// takes to let that many agents in: the bench measures how soon a failure is seen, not how budgets
// limit its repair.
const (
	expansion    = 100
	registration = 24 * time.Hour
	createRate   = 1000 // machines per second
)

// The authority of the instances' certificates, and what it may sign.
const (
	Authority = "bench"
	Domain    = "bench.internal"
)

// Write writes the shard in transactions as large as etcd accepts. The shard must not exist.
func Write(ctx context.Context, st store.Store, p Plan) (Shard, error) {
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return Shard{}, err
	}
	keys, now := store.KeysOf(p.Shard), time.Now().UTC()
	out := Shard{ID: hex.EncodeToString(id)}
	settings := store.DefaultShardSettings()
	settings.CreateRate, settings.CreateBurst = createRate, createRate
	settings.EventsKept = store.Duration(time.Hour)
	if p.ReconnectMax > 0 {
		settings.ReconnectMax = store.Duration(p.ReconnectMax)
	}
	shard := store.Shard{Schema: store.Schema, ID: out.ID, Name: p.Shard, Created: now, Settings: settings}
	rev, err := st.Commit(ctx, store.Txn{
		Conditions: []store.Condition{store.Absent(keys.Shard())},
		Writes:     []store.Write{store.Put(keys.Shard(), store.Encode(shard))},
	})
	if err != nil {
		return Shard{}, fmt.Errorf("write shard %s: %w", p.Shard, err)
	}
	out.Revision = rev
	var writes []store.Write
	for from := 0; from < p.Instances; from += p.GroupSize {
		g, err := group(p, from/p.GroupSize, min(p.GroupSize, p.Instances-from))
		if err != nil {
			return Shard{}, err
		}
		out.LeaseTTL = g.Report.LeaseTTL.D()
		out.Groups = append(out.Groups, g.Name)
		writes = append(writes, store.Put(keys.Group(g.Name), store.Encode(g)))
		for slot := range g.Size {
			rec := instance(g, slot, p.Zone, now)
			out.Instances = append(out.Instances, rec.ID)
			writes = append(writes, store.Put(keys.Instance(rec.ID), store.Encode(rec)))
		}
	}
	err = inTransactions(ctx, st, writes, func(rev store.Revision) { out.Revision = max(out.Revision, rev) })
	if err != nil {
		return Shard{}, fmt.Errorf("write the records of %d instances: %w", p.Instances, err)
	}
	return out, nil
}

func group(p Plan, number, size int) (store.Group, error) {
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = fmt.Sprintf("g%04d", number), size, p.Provider
	g.Report.Interval, g.Report.LeaseTTL = store.Duration(p.Interval), store.Duration(p.LeaseTTL)
	g.RegistrationTimeout = store.Duration(registration)
	g.Budget.MaxExpansion = expansion
	g.Drain.Timeout, g.StopTimeout = 0, 0
	if p.Certificates > 0 {
		g.Files = []store.File{{
			Path: "/bench/tls.crt", OnChange: store.FileChange{Do: store.FileReload},
			Certificate: &store.FileCertificate{
				Authority: Authority, Names: []string{"{{.Facts.instance}}." + Domain}, Key: "/bench/tls.key", Bundle: "/bench/ca.crt",
				Lifetime: store.Duration(p.Certificates),
			},
		}}
	}
	g.Complete()
	if err := g.Validate(); err != nil {
		return g, fmt.Errorf("make groups: %w", err)
	}
	return g, nil
}

func instance(g store.Group, slot int, zone string, now time.Time) store.Instance {
	rec := store.Instance{
		Schema: store.Schema, ID: fmt.Sprintf("%s-%d-b", g.Name, slot), Group: g.Name, Slot: slot, Phase: store.Booting,
		Managed: true,
		Since:   now, Created: now, Spec: g.InstanceSpec(), Zone: zone, Called: true,
		Last: store.Decision{Rule: "REC-3", What: "created", Why: "a bench begins with it", At: now},
	}
	rec.Template, rec.Config, rec.Ref = rec.Spec.TemplateHash(), rec.Spec.ConfigHash(), "ref-"+rec.ID
	return rec
}

// atOnce is how many requests are in flight at a time: etcd writes them to its log together.
const atOnce = 8

// inTransactions does all writes, several transactions at a time.
func inTransactions(ctx context.Context, st store.Store, writes []store.Write, done func(store.Revision)) error {
	var parts [][]store.Write
	for len(writes) > 0 {
		n := min(len(writes), store.MaxOps)
		parts, writes = append(parts, writes[:n]), writes[n:]
	}
	var mu sync.Mutex
	return each(ctx, parts, atOnce, func(ctx context.Context, part []store.Write) error {
		rev, err := st.Commit(ctx, store.Txn{Writes: part})
		mu.Lock()
		defer mu.Unlock()
		done(rev)
		return err
	})
}

// each calls a function for every item, several at a time, until the first error.
func each[T any](ctx context.Context, all []T, workers int, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan T)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for v := range work {
				if err := do(ctx, v); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for _, v := range all {
		select {
		case work <- v:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(work)
	working.Wait()
	return context.Cause(ctx)
}

// Remove removes a shard and its leases from etcd, when no process writes there any longer.
func Remove(ctx context.Context, st store.Store, shard string) error {
	prefix := store.KeysOf(shard).Prefix()
	l, err := st.List(ctx, prefix, 0)
	if err != nil {
		return fmt.Errorf("remove shard %s: %w", shard, err)
	}
	var leases []store.LeaseID
	known := map[store.LeaseID]bool{}
	var writes []store.Write
	for _, kv := range l.KVs {
		switch {
		case kv.Lease == 0:
			writes = append(writes, store.Delete(kv.Key))
		case !known[kv.Lease]:
			known[kv.Lease] = true
			leases = append(leases, kv.Lease)
		}
	}
	const leasesAtOnce = 64
	if err := each(ctx, leases, leasesAtOnce, st.Revoke); err != nil {
		return fmt.Errorf("remove shard %s: %w", shard, err)
	}
	if err := inTransactions(ctx, st, writes, func(store.Revision) {}); err != nil {
		return fmt.Errorf("remove shard %s: %w", shard, err)
	}
	return nil
}
