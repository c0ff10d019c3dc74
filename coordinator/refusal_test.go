package coordinator_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
)

// A quota of one type of machine keeps no other type from being made.
//
// proves PROV-5
func TestAQuotaIsOfOneType(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.provider.Inject(fake.Fault{
			Call: fake.CallCreate, Instance: "", Times: 1,
			Err: &provider.Error{Kind: provider.Quota, Scope: "large"},
		})
		large := w.group("large", 1)
		large.Template.InstanceType = "large"
		w.apply(large)
		w.until(10*time.Second, "it is refused", func() bool {
			b := w.status("large").Blocked
			return len(b) == 1 && b[0].Rule == "PROV-5"
		})
		small := w.group("small", 2)
		w.apply(small)
		w.until(10*time.Second, "the others are made", func() bool { return w.made() == 2 })
		if b := w.status("large").Blocked; len(b) != 1 {
			t.Errorf("blocked: %+v", b)
		}
		w.until(time.Minute, "it is tried again", func() bool { return w.made() == 3 })
	})
}
