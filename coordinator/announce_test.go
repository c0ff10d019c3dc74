package coordinator_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
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

// A replica announces that parts of its host's server have ended by themselves, also while it runs.
//
// proves DAY-3
func TestAReplicaAnnouncesPartsThatEnded(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		var times atomic.Int64
		w.start("one", func(_ *coordinator.Config, d *coordinator.Deps) {
			d.Ended = func() []store.PartEnds {
				if n := times.Load(); n > 0 {
					return []store.PartEnds{{Part: "member", Times: int(n)}}
				}
				return nil
			}
		})
		w.leads(time.Second, "one")
		for n := range 3 {
			times.Store(int64(n))
			w.until(time.Minute, "it announces them", func() bool {
				all := w.list(w.keys.Replica("one"))
				if len(all) == 0 {
					return false
				}
				sum := 0
				for _, e := range decoded[store.Replica](w, all[0]).Record.Ended {
					sum += e.Times
				}
				return sum == n
			})
		}
	})
}
