package plan

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// An operator may write megabytes into an order: its refusal takes little of that into the
// journal, where it would stay for days.
//
// proves REC-16
func TestARefusedOrderDoesNotFillTheJournal(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	a := refuse(store.Versioned[store.Request]{Key: "k", Record: store.Request{
		ID: long, Kind: store.RequestKind(long), Group: long, Instance: long, By: long,
	}}, "this version knows no order "+long)
	told := strings.Join(reason.Lines(a.Facts), "")
	if n := len(a.Group) + len(a.Instance) + len(a.What()) + len(a.Why) + len(told); n > 1<<10 {
		t.Errorf("%d bytes of it", n)
	}
}
