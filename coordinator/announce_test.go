package coordinator_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A replica writes its own record again when it is deleted or spoiled: agents and operators learn
// from it where the replica is.
//
// proves SAFE-16
func TestAReplicaWritesItsRecordAnew(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		w.start("one")
		w.leads(time.Second, "one")
		key := w.keys.Replica("one")
		is := func() bool {
			all := w.list(key)
			if len(all) == 0 {
				return false
			}
			v, err := store.Decode[store.Replica](all[0])
			return err == nil && v.Record.Address != "" && all[0].Lease != 0
		}
		w.until(time.Minute, "it announces itself", is)
		w.put(key, []byte("}garbage"))
		w.until(10*time.Second, "its record is mended", is)
		w.remove(key)
		w.until(10*time.Second, "its record is back", is)
	})
}
