package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Range is a range of ports of this host. The kernel gives none below 32000 to outgoing
// connections, so no connection takes one meanwhile.
type Range struct {
	from, to int

	mu   sync.Mutex
	last int
}

// Between returns the ports from one on, and below another. The first one tried is random, so that
// two runs do not collide.
func Between(from, to int) *Range { return &Range{from: from, to: to, last: from + rand.IntN(to-from)} }

// FreeAddress returns an address on which nothing listens, and which is not returned again for
// long.
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
