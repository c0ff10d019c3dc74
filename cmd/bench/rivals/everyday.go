package rivals

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/cmd/bench/parts"
)

// Everyday is what normal operation costs, while all agents are healthy.
type Everyday struct {
	Seconds float64 `json:"seconds"`
	Etcd    Cost    `json:"etcd"`
	Judges  Cost    `json:"judges"`
	Agents  Cost    `json:"agents"`
	// the busy share of all processors, other processes included
	Machine  float64 `json:"machine_busy"`
	Requests float64 `json:"etcd_requests_per_second"`  // messages received, also on streams
	Streams  float64 `json:"etcd_calls_per_second"`     // calls and streams begun
	Applied  float64 `json:"etcd_proposals_per_second"` // raft proposals: every write, but no renewal
	Fsyncs   float64 `json:"etcd_fsyncs_per_second"`    // fsyncs of its log
	Growth   float64 `json:"etcd_growth_bytes_per_second"`
}

// Cost is what processes use.
type Cost struct {
	Cores  float64 `json:"cores"`
	Memory float64 `json:"memory_bytes"` // at the end
}

// reading holds all counters at one moment.
type reading struct {
	at      time.Time
	etcd    measure.Metrics
	usage   [3]measure.Usage // etcd, judges, agents
	machine measure.Load
}

// readLimit is how long an etcd may take to return its metrics.
const readLimit = 30 * time.Second

func read(ctx context.Context, c Contender) (r reading, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	if r.etcd, err = measure.MetricsOf(ctx, "http://"+c.Etcd().Address+"/metrics"); err != nil {
		return r, err
	}
	r.at = time.Now()
	for i, all := range [][]*parts.Part{{c.Etcd()}, c.Judges(), c.Agents()} {
		for _, p := range all {
			u, err := measure.Read(p.PID())
			if err != nil {
				return r, err
			}
			r.usage[i].At = u.At
			r.usage[i].CPU += u.CPU
			r.usage[i].Memory += u.Memory
		}
	}
	r.machine, err = measure.ReadLoad()
	return r, err
}

// everyday measures a period in which nothing happens.
func everyday(ctx context.Context, c Contender, p Plan) (*Everyday, error) {
	before, err := read(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := p.pass(ctx, "measuring everyday", p.Steady); err != nil {
		return nil, err
	}
	after, err := read(ctx, c)
	if err != nil {
		return nil, err
	}
	e := between(before, after)
	return &e, nil
}

// between returns what was used between two readings.
func between(before, after reading) Everyday {
	took := after.at.Sub(before.at).Seconds()
	rate := func(name string) float64 { return (after.etcd.Sum(name) - before.etcd.Sum(name)) / took }
	cost := func(i int) Cost {
		return Cost{Cores: measure.Cores(before.usage[i], after.usage[i]), Memory: float64(after.usage[i].Memory)}
	}
	return Everyday{
		Seconds: took, Etcd: cost(0), Judges: cost(1), Agents: cost(2), Machine: after.machine.Since(before.machine),
		Requests: rate("grpc_server_msg_received_total"),
		Streams:  rate("grpc_server_started_total"),
		Applied:  rate("etcd_server_proposals_applied_total"),
		Fsyncs:   rate("etcd_disk_wal_fsync_duration_seconds_count"),
		Growth:   rate("etcd_mvcc_db_total_size_in_bytes"),
	}
}
