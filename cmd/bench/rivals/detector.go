package rivals

import (
	"context"
	"fmt"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// DetectorStats is what a detector knows.
type DetectorStats struct {
	Alive    int
	Declared int // dead, ever
}

// Detector declares an agent dead when its key is deleted, which is when its lease has ended.
type Detector struct {
	client *clientv3.Client

	mu       sync.Mutex
	alive    map[string]bool
	declared int
}

// NewDetector makes its client. Close closes it.
func NewDetector(endpoint string) (*Detector, error) {
	c, err := newClient(endpoint)
	if err != nil {
		return nil, err
	}
	return &Detector{client: c, alive: map[string]bool{}}, nil
}

// Close closes the client.
func (d *Detector) Close() error { return d.client.Close() }

// Stats are those of now.
func (d *Detector) Stats() DetectorStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return DetectorStats{Alive: len(d.alive), Declared: d.declared}
}

// Run watches until the context ends.
func (d *Detector) Run(ctx context.Context) error {
	begin, err := d.client.Get(ctx, Prefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	d.mu.Lock()
	for _, kv := range begin.Kvs {
		d.alive[string(kv.Key)] = true
	}
	d.mu.Unlock()
	for seen := range d.client.Watch(ctx, Prefix, clientv3.WithPrefix(), clientv3.WithRev(begin.Header.Revision+1)) {
		if err := seen.Err(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("watch agents: %w", err)
		}
		d.mu.Lock()
		for _, e := range seen.Events {
			key := string(e.Kv.Key)
			if e.Type == mvccpb.Event_PUT {
				d.alive[key] = true
				continue
			}
			if d.alive[key] {
				d.declared++
			}
			delete(d.alive, key)
		}
		d.mu.Unlock()
	}
	return ctx.Err()
}
