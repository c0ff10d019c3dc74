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
	Weight int // how often it is chosen, beside the others
	// Takes is what no two troubles may have at once. Whoever comes second waits.
	Takes []Part
	// Least and Most bound how long it lasts. What is over at once has none.
	Least, Most time.Duration
	// ManyCut: so many machines cannot be heard of while it lasts that none of those may be
	// replaced (SAFE-2).
	ManyCut bool
	// Do does it and says what, for people. end undoes it; nil: there is nothing to undo.
	Do func(ctx context.Context, s *Site) (what string, end func() error, err error)
}

// Part is a part of the cluster that a trouble may want for itself.
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
	Operators Part = "operators" // the groups' files
	History   Part = "history"   // what etcd keeps of before
)

// Site is where a trouble happens: the cluster, and its own random numbers.
type Site struct {
	*cluster.Cluster
	*rand.Rand
	Lasts time.Duration // how long it is to last
}

// Chance says yes so many times of a hundred.
func (s *Site) Chance(percent int) bool { return s.IntN(100) < percent }

// between is a time from one on, up to another.
func (s *Site) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(s.Int64N(int64(most-least)))
}

// pick chooses one of several.
func pick[T any](s *Site, of []T) T { return of[s.IntN(len(of))] }

// some chooses up to so many different ones, and at least one.
func some[T any](s *Site, most int, of []T) []T {
	n := min(1+s.IntN(most), len(of))
	var out []T
	for _, i := range s.Perm(len(of))[:n] {
		out = append(out, of[i])
	}
	return out
}

// errNobody: there is nobody left whom it could hit. The trouble is passed over.
type errNobody struct{ what string }

func (e errNobody) Error() string { return fmt.Sprintf("there is no %s that it could hit", e.what) }

// Catalogue is all there is.
func Catalogue() []Kind {
	var all []Kind
	for _, part := range [][]Kind{
		ofReplicas, ofEtcd, ofNetwork, ofMachines, ofProvider, ofClocks, ofDisks, ofOperators,
		ofRecords,
	} {
		all = append(all, part...)
	}
	return all
}

// Named finds an entry.
func Named(name string) (Kind, error) {
	for _, k := range Catalogue() {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("%s: no such trouble", name)
}
