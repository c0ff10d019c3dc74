package guard

import (
	"errors"
	"runtime"
	"time"
)

// Bounds are how much of each there may be.
type Bounds struct {
	Handshake      time.Duration // how long a handshake may take
	Young          time.Duration // an unfinished connection that has had less time is not closed for another
	Unfinished     int           // in all
	UnfinishedEach int           // of an address
	Nameless       time.Duration // how long a connection without a name may last
	NamelessEach   int           // of an address
	NamedEach      int           // of a name
	All            int           // connections of all kinds
	Unread         time.Duration // how long what we write may wait for the caller to read
	Turns          int           // handshakes that compute at the same time
}

// DefaultBounds are for a process that may have so many descriptors open.
func DefaultBounds(descriptors uint64) Bounds {
	all := int(min(descriptors, 1<<20))
	return Bounds{
		Handshake: 5 * time.Second, Young: time.Second,
		Unfinished: max(1, min(8192, all/4)), UnfinishedEach: 2048,
		Nameless: 30 * time.Second, NamelessEach: 2048, NamedEach: 8,
		All:    max(1, all-max(64, all/8)), // the rest is for etcd, providers and files
		Unread: 10 * time.Second, Turns: max(1, runtime.GOMAXPROCS(0)/2),
	}
}

func (b Bounds) validate() error {
	if b.Handshake <= 0 || b.Nameless <= 0 || b.Unread <= 0 ||
		min(b.Unfinished, b.UnfinishedEach, b.NamelessEach, b.NamedEach, b.All, b.Turns) < 1 {
		return errors.New("door needs bounds above 0")
	}
	return nil
}
