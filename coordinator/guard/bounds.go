package guard

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// Bounds limits the connections to one server.
type Bounds struct {
	HandshakeTimeout time.Duration
	// a pending or anonymous connection younger than this is not closed in favour of another
	Grace              time.Duration
	Pending            int // connections in handshake, in all
	PendingPerSource   int
	AnonymousLife      time.Duration // how long a connection without a certificate may last
	AnonymousPerSource int
	PerName            int           // connections with one certificate's name
	Total              int           // connections of all kinds
	WriteTimeout       time.Duration // how long a write may wait for the client to read
	Handshakes         int           // handshakes that compute at the same time
}

// DefaultBounds returns the bounds for a process with the given limit of open descriptors.
func DefaultBounds(descriptors uint64) Bounds {
	total := int(min(descriptors, 1<<20))
	return Bounds{
		HandshakeTimeout: 5 * time.Second, Grace: time.Second,
		Pending: max(1, min(8192, total/4)), PendingPerSource: 2048,
		AnonymousLife: 30 * time.Second, AnonymousPerSource: 2048, PerName: 8,
		Total:        max(1, total-max(64, total/8)), // the rest is for etcd, providers and files
		WriteTimeout: 10 * time.Second, Handshakes: max(1, runtime.GOMAXPROCS(0)/2),
	}
}

func (b Bounds) validate() error {
	if b.HandshakeTimeout <= 0 || b.AnonymousLife <= 0 || b.WriteTimeout <= 0 ||
		min(b.Pending, b.PendingPerSource, b.AnonymousPerSource, b.PerName, b.Total, b.Handshakes) < 1 {
		return errors.New("the connection guard needs bounds above 0")
	}
	return nil
}

// Descriptors returns how many files and connections this process may have open. The Go runtime
// raises the soft limit to the hard one when the process starts.
func Descriptors() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open descriptors: %w", err)
	}
	return limit.Cur, nil
}
