package embedetcd

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/leasehold/leasehold/provider/durable"
)

// errPortTaken: another program listens there.
var errPortTaken = errors.New("the port is taken")

// brokenDataError is etcd giving up on what it found in its data directory.
type brokenDataError struct {
	said string
	why  error // nil: not known
}

func (e *brokenDataError) Error() string {
	if e.why == nil {
		return e.said
	}
	return e.said + ": " + e.why.Error()
}

func (e *brokenDataError) Unwrap() error { return e.why }

// ErrNoSpace: the disk of the data directory is full. Nothing in the directory is damaged.
var ErrNoSpace = fmt.Errorf("%w", syscall.ENOSPC)

// explainFull says where space is missing, or returns nil if err is another one.
func explainFull(dir string, err error) error {
	if err == nil || !durable.Full(err) && !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
		return nil
	}
	return fmt.Errorf("start embedded etcd: the disk of %s is full: %w: a new member takes some 150 MB", dir, ErrNoSpace)
}

// probePort sees whether the address can be listened on.
func probePort(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return explainListen(address, err)
	}
	return l.Close()
}

func explainListen(address string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE) || strings.Contains(err.Error(), "address already in use"):
		return fmt.Errorf("start embedded etcd on %s: %w: stop what listens there, or give another address", address,
			errPortTaken)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("start embedded etcd on %s: this machine does not have the address: give one that it has, "+
			"for example 127.0.0.1:2379", address)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("start embedded etcd on %s: not allowed to listen there: give a port above 1023", address)
	}
	return fmt.Errorf("start embedded etcd on %s: %w", address, err)
}

// explainStart says in one line why etcd did not start and what to do.
func explainStart(dir, address string, err error) error {
	var broken *brokenDataError
	var on *net.OpError
	said := strings.Join(strings.Fields(err.Error()), " ")
	if full := explainFull(dir, err); full != nil {
		return full
	}
	switch {
	case errors.As(err, &on) && on.Op == "listen":
		return explainListen(address, err)
	case errors.As(err, &broken) || HasLog(dir):
		return explainData(dir, said)
	}
	return fmt.Errorf("start embedded etcd in %s: %s", dir, said)
}

func explainData(dir, said string) error {
	return fmt.Errorf("start embedded etcd: cannot read the data in %s: %s: restore a snapshot with etcdutl, "+
		"or move the directory away to start over", dir, said)
}
