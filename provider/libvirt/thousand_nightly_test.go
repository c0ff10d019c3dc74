//go:build nightly

package libvirt

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// A thousand machines are made and removed by two coordinators in turns, some at once, while most
// of their connections break after some packets: what the last one asked for is carried out, and
// its answer is lost. Each instance has one domain, and nothing is left of any.
//
// proves SAFE-8, PROV-4
func TestAThousandMachinesOverConnectionsThatBreak(t *testing.T) {
	const n, workers, shard, mostPackets = 1000, 8, "sh-thousand", 40
	l := startReal(t)
	var broken, dialed, calls atomic.Int64
	leaders := []*Provider{onReal(t, l, nil), onReal(t, l, nil)}
	for _, p := range leaders {
		h := p.hypervisors[0]
		h.dial = func(ctx context.Context) (net.Conn, error) {
			dialed.Add(1)
			conn, err := h.dialLibvirtd(ctx)
			if err != nil || rand.IntN(4) == 0 {
				return conn, err
			}
			broken.Add(1)
			left := new(atomic.Int64)
			left.Store(2 + rand.Int64N(mostPackets))
			return dying{conn, left}, nil
		}
	}
	persist := func(what string, call func(ctx context.Context, p *Provider) error) {
		var err error
		for attempt := range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			calls.Add(1)
			err = call(ctx, leaders[attempt%2])
			cancel()
			if err == nil {
				return
			}
			if provider.KindOf(err) != provider.Temporary {
				t.Errorf("%s: an error that would end it: %v", what, err)
				return
			}
		}
		t.Errorf("%s: 200 attempts: %v", what, err)
	}
	listed := func(instance string) (found []provider.Machine) {
		persist("list", func(ctx context.Context, p *Provider) error {
			all, err := p.List(ctx, shard)
			found = nil
			for _, m := range all {
				if m.Instance == instance {
					found = append(found, m)
				}
			}
			return err
		})
		return found
	}
	begun := time.Now()
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range numbers {
				id := fmt.Sprintf("web-%d", i)
				persist("create "+id, func(ctx context.Context, p *Provider) error {
					_, err := p.Create(ctx, request(shard, id, "a", small()))
					return err
				})
				if found := listed(id); len(found) != 1 || found[0].State != provider.StateRunning {
					t.Errorf("created: %+v", found)
				}
				persist("delete "+id, func(ctx context.Context, p *Provider) error { return p.Delete(ctx, shard, id) })
				if found := listed(id); len(found) != 0 {
					t.Errorf("deleted: %+v", found)
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	if names, err := l.Names(); err != nil || len(names) > 0 {
		t.Errorf("domains are left: %q, %v", names, err)
	}
	if files, err := l.Files("ls-"); err != nil || len(files) > 0 {
		t.Errorf("files are left: %q, %v", files, err)
	}
	if broken.Load() < n/10 {
		t.Errorf("only %d connections were to break", broken.Load())
	}
	t.Logf("%d machines made and removed in %s by %d calls over %d connections, of which %d were to break", n,
		time.Since(begun).Round(time.Second), calls.Load(), dialed.Load(), broken.Load())
}
