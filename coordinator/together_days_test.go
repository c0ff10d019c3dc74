package coordinator

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A transaction of summaries stays below what etcd takes, also where each is large.
//
// proves DAY-5
func TestSummariesOfATransaction(t *testing.T) {
	of := func(n, size int) (writes []store.Write) {
		for range n {
			writes = append(writes, store.Put("k", make([]byte, size)))
		}
		return writes
	}
	for _, c := range []struct{ n, size, want int }{
		{0, 0, 0}, {10, 400, 10}, {100, 400, dayTogether}, {100, 16 << 10, 32}, {3, 1 << 20, 1},
	} {
		if n := together(of(c.n, c.size)); n != c.want {
			t.Errorf("%d of %d bytes: %d together", c.n, c.size, n)
		}
	}
}
