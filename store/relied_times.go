package store

import "time"

// Times on which several packages rely: they must agree.
const (
	// DefaultSessionTTL is how long a leader may be silent before another replica takes over
	// (ELECT-2).
	DefaultSessionTTL = 3 * time.Second

	// WatchSilence is the silence after which a watch is stale (SAFE-3), and after which etcd
	// counts as out of reach. Progress is asked for every second.
	WatchSilence = 3 * time.Second

	// ServedEvery is how often the leader notes that it works: the precision with which the next
	// leader knows when this one last did (SAFE-13).
	ServedEvery = 10 * time.Second

	// LeaderLate is how long a leader must stall for that to be a disturbance by itself: meanwhile it
	// received nothing from any agent.
	LeaderLate = 3 * time.Second

	// MaxStopTimeout is the longest stop_timeout of a group. Units of agents give the workload that
	// long when the machine is shut down.
	MaxStopTimeout = 10 * time.Minute
)
