package rivals

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Habit is how agents keep their leases.
type Habit string

// The ways to keep a lease.
const (
	// Automatic is clientv3's KeepAlive: the client renews by itself, three times per lease.
	Automatic Habit = "automatic"
	// EachCall is clientv3's KeepAliveOnce with each report: it opens a stream, and closes it after
	// one answer.
	EachCall Habit = "each-call"
)

// Prefix is the prefix of the agents' keys.
const Prefix = "/agents/"

// AgentsConfig describes the agents of one process.
type AgentsConfig struct {
	Endpoint string
	Habit    Habit
	Count    int
	Shared   int // connections that they share; 0: each has its own
	Interval time.Duration
	TTL      time.Duration
	Size     int     // size of a report in bytes
	Rate     float64 // how many begin per second
}

// AgentsStats is the state of the agents.
type AgentsStats struct {
	Count      int    // number of agents
	Registered int    // have a lease, and etcd has accepted their last report
	Reports    uint64 // accepted
	Failed     uint64 // not accepted
	Lost       uint64 // leases
	Trouble    string // the last
}

// Agents are many agents, each with what it would have on a machine of its own: an etcd client, a
// lease, and a loop that reports.
type Agents struct {
	cfg     AgentsConfig
	clients []*clientv3.Client
	value   string

	registered            atomic.Int64
	reports, failed, lost atomic.Uint64
	trouble               atomic.Value // string
}

// NewAgents creates the etcd clients. Close closes them.
func NewAgents(cfg AgentsConfig) (*Agents, error) {
	a := &Agents{cfg: cfg, value: strings.Repeat("x", cfg.Size)}
	n := cfg.Shared
	if n == 0 {
		n = cfg.Count
	}
	for range n {
		c, err := newClient(cfg.Endpoint)
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		a.clients = append(a.clients, c)
	}
	return a, nil
}

// How often a client checks whether its connection works, and how soon the answer must arrive:
// Kubernetes's values, with which connections survive an etcd that is paused for half a minute.
const (
	pingEvery  = 30 * time.Second
	pingWithin = 10 * time.Second
)

func newClient(endpoint string) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second, DialKeepAliveTime: pingEvery,
		DialKeepAliveTimeout: pingWithin, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a client of etcd: %w", err)
	}
	return c, nil
}

// Close closes the clients.
func (a *Agents) Close() error {
	var errs []error
	for _, c := range a.clients {
		if err := c.Close(); !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Stats returns the present counts.
func (a *Agents) Stats() AgentsStats {
	trouble, _ := a.trouble.Load().(string) // there may be no error
	return AgentsStats{
		Count: a.cfg.Count, Registered: int(a.registered.Load()), Reports: a.reports.Load(),
		Failed: a.failed.Load(), Lost: a.lost.Load(), Trouble: trouble,
	}
}

// Run runs the agents until the context ends.
func (a *Agents) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range a.cfg.Count {
		one := &agent{of: a, client: a.clients[i%len(a.clients)], key: fmt.Sprintf("%s%07d", Prefix, i)}
		all.Go(func() {
			if wait(ctx, time.Duration(float64(i)/a.cfg.Rate*float64(time.Second))) {
				one.live(ctx)
			}
		})
	}
	all.Wait()
}

// wait returns false if the context ends first.
func wait(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// agent is one of them.
type agent struct {
	of     *Agents
	client *clientv3.Client
	key    string

	lease clientv3.LeaseID // 0: no lease
	ended <-chan struct{}  // closed when automatic renewal has ended; nil: no automatic renewal
	well  bool             // counted as registered
}

// live reports at the interval, and at once when the lease is lost.
func (g *agent) live(ctx context.Context) {
	tick := time.NewTicker(g.of.cfg.Interval)
	defer tick.Stop()
	for {
		err := g.report(ctx)
		if ctx.Err() != nil {
			return
		}
		g.count(err)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			g.of.lost.Add(1)
			g.lease, g.ended = 0, nil
			continue // with a new lease
		}
		select {
		case <-tick.C:
		case <-g.ended:
			g.of.lost.Add(1)
			g.lease, g.ended = 0, nil
		case <-ctx.Done():
			return
		}
	}
}

func (g *agent) count(err error) {
	if err == nil {
		g.of.reports.Add(1)
	} else {
		g.of.failed.Add(1)
		g.of.trouble.Store(err.Error())
	}
	switch {
	case err == nil && !g.well:
		g.well = true
		g.of.registered.Add(1)
	case err != nil && g.well:
		g.well = false
		g.of.registered.Add(-1)
	}
}

// report renews the lease, unless that is automatic, and puts a report.
func (g *agent) report(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, g.of.cfg.Interval)
	defer cancel()
	switch {
	case g.lease == 0:
		if err := g.register(ctx, limited); err != nil {
			return err
		}
	case g.of.cfg.Habit == EachCall:
		if _, err := g.client.KeepAliveOnce(limited, g.lease); err != nil {
			return err
		}
	}
	_, err := g.client.Put(limited, g.key, g.of.value, clientv3.WithLease(g.lease))
	return err
}

// register gets a lease and, with automatic renewal, keeps it until ctx ends.
func (g *agent) register(ctx, limited context.Context) error {
	l, err := g.client.Grant(limited, int64(g.of.cfg.TTL/time.Second))
	if err != nil {
		return err
	}
	g.lease = l.ID
	if g.of.cfg.Habit != Automatic {
		return nil
	}
	answers, err := g.client.KeepAlive(ctx, l.ID)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range answers { // until the lease is lost or ctx ends
		}
	}()
	g.ended = ended
	return nil
}
