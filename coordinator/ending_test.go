package coordinator_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
)

// disturbances counts what a replica calls one.
type disturbances struct {
	coordinator.Meter
	n atomic.Int64
}

func (d *disturbances) Disturbed() { d.n.Add(1) }

// A write that is given up because its replica ends says nothing of etcd: no operator is to look
// for what is wrong with it.
func TestAReplicaThatEndsIsNoDisturbance(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		told := &disturbances{Meter: coordinator.Unmetered{}}
		var end atomic.Pointer[func()]
		one := w.start("one", before(func(boundary, _ string) {
			if stop := end.Load(); stop != nil && strings.HasPrefix(boundary, "commit ") {
				(*stop)()
			}
		}), func(_ *coordinator.Config, deps *coordinator.Deps) { deps.Meter = told })
		w.leads(time.Second, "one")
		w.apply(w.group("web", 2))
		ids := w.up(2)
		w.pass(time.Minute)
		begun := told.n.Load()
		stop := func() { one.cancel() }
		end.Store(&stop)
		w.provider.Crash(ids[0], "exit 1")
		w.until(time.Minute, "it ended while it wrote", func() bool {
			select {
			case <-one.done:
				return true
			default:
				return false
			}
		})
		if n := told.n.Load() - begun; n > 0 {
			t.Errorf("%d disturbances were told, and etcd was well", n)
		}
	})
}
