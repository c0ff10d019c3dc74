//go:build nightly

package libvirt

import (
	"context"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/providertest"
)

// A thousand machines are made and removed by two coordinators in turns, some at once, while their
// connections break after some packets: what the last one asked for is carried out, and its answer
// is lost. Each instance has one domain, and nothing is left of any.
//
// proves SAFE-8, PROV-4
func TestAThousandMachinesOverConnectionsThatBreak(t *testing.T) {
	const n, workers, shard, maxPackets = 1000, 8, "sh-thousand", 40
	l := startReal(t)
	var dialed atomic.Int64
	crowd := providertest.Crowd{
		Shard: shard, Machines: n, AtOnce: workers, OneByOne: true, Timeout: time.Minute,
		Meter:   new(providertest.Meter),
		Pauses:  map[provider.Kind]time.Duration{provider.Temporary: 0},
		Request: func(id string, _ int) provider.CreateRequest { return request(shard, id, "a", small()) },
		There: func() int {
			names, err := l.Names()
			if err != nil {
				t.Error(err)
			}
			return len(names)
		},
	}
	for range 2 {
		p := onReal(t, l, nil)
		crowd.Leaders = append(crowd.Leaders, p)
		h := p.hypervisors[0]
		h.dial = func(ctx context.Context) (net.Conn, error) {
			dialed.Add(1)
			conn, err := h.dialLibvirtd(ctx)
			if err != nil {
				return nil, err
			}
			// If some lived for good, soon all that are kept for later calls would be of that kind.
			most := int64(maxPackets)
			if rand.IntN(4) == 0 {
				most *= 10
			}
			left := new(atomic.Int64)
			left.Store(2 + rand.Int64N(most))
			return dying{counted{conn, crowd.Meter}, left}, nil
		}
	}
	figures := crowd.Run(t)
	if files, err := l.Files("ls-"); err != nil || len(files) > 0 {
		t.Errorf("files are left: %q, %v", files, err)
	}
	if dialed.Load() < n/2 {
		t.Errorf("only %d connections were made, all of which were to break", dialed.Load())
	}
	t.Logf("%s; %d connections, which all were to break", figures, dialed.Load())
}

// counted counts the packets that are sent on a connection: each has a request.
type counted struct {
	net.Conn
	meter *providertest.Meter
}

func (c counted) Write(b []byte) (int, error) {
	c.meter.Add()
	return c.Conn.Write(b)
}
