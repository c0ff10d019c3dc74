package rivals

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Declared counts how often an agent was declared dead.
type Declared struct {
	AtOnce  int `json:"at_once"`       // by a detector that acts on a deleted key at once
	Waiting int `json:"after_waiting"` // by a detector that first waits: agents that were still away afterwards
}

// DetectorStats is what a detector knows.
type DetectorStats struct {
	Alive    int
	Declared Declared // ever
}

// Detector declares an agent dead when its key is deleted, that is when its lease has ended. It
// also counts the agents that it would have declared dead if it had waited.
type Detector struct {
	client   *clientv3.Client
	patience time.Duration

	mu    sync.Mutex
	known roll
}

// NewDetector creates its etcd client. Close closes it.
func NewDetector(endpoint string, patience time.Duration) (*Detector, error) {
	c, err := newClient(endpoint)
	if err != nil {
		return nil, err
	}
	return &Detector{client: c, patience: patience, known: newRoll()}, nil
}

// Close closes the client.
func (d *Detector) Close() error { return d.client.Close() }

// Stats returns the present counts.
func (d *Detector) Stats() DetectorStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known.stats(time.Now(), d.patience)
}

// Run watches until the context ends.
func (d *Detector) Run(ctx context.Context) error {
	begin, err := d.client.Get(ctx, Prefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	d.mu.Lock()
	for _, kv := range begin.Kvs {
		d.known.put(string(kv.Key), time.Now(), d.patience)
	}
	d.mu.Unlock()
	for seen := range d.client.Watch(ctx, Prefix, clientv3.WithPrefix(), clientv3.WithRev(begin.Header.Revision+1)) {
		if err := seen.Err(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("watch agents: %w", err)
		}
		now := time.Now()
		d.mu.Lock()
		for _, e := range seen.Events {
			if e.Type == mvccpb.Event_PUT {
				d.known.put(string(e.Kv.Key), now, d.patience)
			} else {
				d.known.deleted(string(e.Kv.Key), now)
			}
		}
		d.mu.Unlock()
	}
	return ctx.Err()
}

// roll holds the keys that exist, and those that were deleted.
type roll struct {
	alive    map[string]bool
	gone     map[string]time.Time // when the key was deleted
	declared Declared             // Waiting without those that are still gone
}

func newRoll() roll { return roll{alive: map[string]bool{}, gone: map[string]time.Time{}} }

func (r *roll) put(key string, now time.Time, patience time.Duration) {
	if since, was := r.gone[key]; was {
		if now.Sub(since) > patience {
			r.declared.Waiting++
		}
		delete(r.gone, key)
	}
	r.alive[key] = true
}

func (r *roll) deleted(key string, now time.Time) {
	if !r.alive[key] {
		return
	}
	r.declared.AtOnce++
	r.gone[key] = now
	delete(r.alive, key)
}

func (r *roll) stats(now time.Time, patience time.Duration) DetectorStats {
	s := DetectorStats{Alive: len(r.alive), Declared: r.declared}
	for _, since := range r.gone {
		if now.Sub(since) > patience {
			s.Declared.Waiting++
		}
	}
	return s
}
