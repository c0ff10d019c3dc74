package trial

import (
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// Setting holds the parameters of a trial.
type Setting struct {
	Agents      int             `json:"agents"`
	Interval    float64         `json:"interval_seconds"`
	LeaseTTL    float64         `json:"lease_ttl_seconds"`
	Connections string          `json:"connections"` // Own or SharedConnections
	Shared      int             `json:"shared_connections,omitempty"`
	Groups      int             `json:"groups"`
	Replicas    int             `json:"replicas"`
	OwnEtcd     bool            `json:"own_etcd"`
	Machine     measure.Machine `json:"machine"`
}

// The kinds of connections.
const (
	OwnConnections    = "tls"    // each agent has its own
	SharedConnections = "shared" // all agents have a few, unsecured
)

func (t *Trial) setting(machine measure.Machine) Setting {
	s := Setting{
		Agents: t.cfg.Agents, Interval: t.cfg.Interval.Seconds(), LeaseTTL: t.shard.LeaseTTL.Seconds(),
		Connections: OwnConnections, Shared: t.cfg.Shared,
		Groups: len(t.shard.Groups), Replicas: t.cfg.Replicas, OwnEtcd: t.deps.Own, Machine: machine,
	}
	if t.cfg.Shared > 0 {
		s.Connections = SharedConnections
	}
	return s
}

// Process is what a process used.
type Process struct {
	Name        string  `json:"name"`
	Cores       float64 `json:"cores"`
	Memory      uint64  `json:"memory_bytes"`
	MostMemory  uint64  `json:"most_memory_bytes"`
	Descriptors int     `json:"descriptors"`
}

// Times is a distribution of durations, in milliseconds.
type Times struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func timesOf(h measure.Histogram) Times {
	return Times{Count: h.N, P50: millis(h.Quantile(0.5)), P99: millis(h.Quantile(0.99)), Max: millis(h.Quantile(1))}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
