package trouble

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/tests/faults/cluster"
)

// Kind is an entry of the catalogue.
type Kind struct {
	Name   string
	Weight int // weight of being chosen
	// Takes are the parts that no two faults may use at once. The second one waits.
	Takes []Part
	// Least and Most bound its duration. A fault that is over at once has none.
	Least, Most time.Duration
	// ManyCut: so many machines are silent while it lasts that none of those may be replaced
	// (SAFE-2).
	ManyCut bool
	// On is where it applies.
	On Where
	// Do causes the fault and describes it. end undoes it; nil: nothing to undo.
	Do func(ctx context.Context, s *Site) (what string, end func() error, err error)
}

// Where says on which clusters a fault applies.
type Where int

const (
	Everywhere Where = iota
	Separate         // members of etcd and replicas are programs of their own
	Servers          // they are parts of hosts of leasehold server
)

// Part is a part of the cluster that a fault may need for itself.
type Part string

// The parts.
const (
	Etcd      Part = "etcd"      // its processes and data
	Replicas  Part = "replicas"  // their processes
	Paths     Part = "paths"     // between replicas and agents
	Machines  Part = "machines"  // many of them
	Provider  Part = "provider"  // its answers
	Clocks    Part = "clocks"    // wall clocks
	Disks     Part = "disks"     // of replicas and machines
	Balancer  Part = "balancer"  // its answers
	Operators Part = "operators" // the groups' files
	History   Part = "history"   // etcd's history
)

// Site is where a fault happens: the cluster, and random numbers of its own.
type Site struct {
	*cluster.Cluster
	*rand.Rand
	Lasts time.Duration // its duration
}

// Chance returns true in so many of a hundred cases.
func (s *Site) Chance(percent int) bool { return s.IntN(100) < percent }

// between returns a duration from one value up to, but not including, another.
func (s *Site) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(s.Int64N(int64(most-least)))
}

// pick chooses one of several.
func pick[T any](s *Site, of []T) T { return of[s.IntN(len(of))] }

// some chooses up to so many different ones, at least one.
func some[T any](s *Site, most int, of []T) []T {
	n := min(1+s.IntN(most), len(of))
	var out []T
	for _, i := range s.Perm(len(of))[:n] {
		out = append(out, of[i])
	}
	return out
}

// errNoTarget: no target is left. The fault is skipped.
type errNoTarget struct{ what string }

func (e errNoTarget) Error() string { return fmt.Sprintf("there is no %s that it could hit", e.what) }

// Catalogue returns all kinds of faults.
func Catalogue() []Kind {
	var all []Kind
	for _, part := range [][]Kind{
		ofReplicas, ofEtcd, ofNetwork, ofMachines, ofProvider, ofClocks, ofDisks, ofOperators,
		ofRecords, ofBalancer, ofHosts,
	} {
		all = append(all, part...)
	}
	return all
}

// Named returns an entry by name.
func Named(name string) (Kind, error) {
	for _, k := range Catalogue() {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("%s: no such trouble", name)
}
