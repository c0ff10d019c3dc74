package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Range is ports of this host. Those below 32000 the kernel gives to no outgoing connection, so
// that none of these takes one meanwhile.
type Range struct {
	from, to int

	mu   sync.Mutex
	last int
}

// Between are the ports from one on, and below another. The first to be tried is a random one, so
// that two runs do not meet.
func Between(from, to int) *Range { return &Range{from: from, to: to, last: from + rand.IntN(to-from)} }

// FreeAddress is one that nobody listens on, and that is given out to nobody else for long.
func (r *Range) FreeAddress(t testing.TB) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for range r.to - r.from {
		if r.last++; r.last >= r.to {
			r.last = r.from
		}
		address := fmt.Sprintf("127.0.0.1:%d", r.last)
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatalf("no free port from %d to %d", r.from, r.to)
	return ""
}
