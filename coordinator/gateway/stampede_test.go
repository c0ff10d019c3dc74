package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// proves SAFE-11: when many agents connect at once, only a limited number causes work for etcd; the
// others are soon asked to try elsewhere, and later ones are served.
func TestAStampedeIsLetInBitByBit(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		const crowd, atOnce = 120, 64
		for i := range crowd {
			w.record(fmt.Sprintf("web-%d", i), store.Booting)
		}
		w.db.Faults().Freeze()
		agents := make([]*agent, crowd)
		for i := range agents {
			agents[i] = r.call(hello(fmt.Sprintf("web-%d", i), "boot1", 1))
			defer agents[i].hangUp()
		}
		pass(4 * time.Second)
		w.db.Faults().Thaw()
		welcomed, sentAway := 0, 0
		soonest, latest := time.Hour, time.Duration(0)
		for _, a := range agents {
			switch msg := a.next(); {
			case msg.GetWelcome() != nil:
				welcomed++
			case msg.GetRefused().GetReason() == protocol.Refused_UNAVAILABLE &&
				strings.Contains(msg.GetRefused().GetMessage(), "too many agents"):
				sentAway++
				after := msg.GetRefused().GetAfter().AsDuration()
				soonest, latest = min(soonest, after), max(latest, after)
			default:
				t.Errorf("a hello is answered with %v", msg)
			}
		}
		if welcomed != atOnce || sentAway != crowd-atOnce {
			t.Errorf("%d are welcomed and %d sent away, want %d and %d", welcomed, sentAway, atOnce, crowd-atOnce)
		}
		if soonest <= 0 || latest < soonest+time.Second || latest > 30*time.Second {
			t.Errorf("the first is to come again after %s and the last after %s: too many would come at once, or too late",
				soonest, latest)
		}
		defer r.welcomed(hello("web-99", "boot1", 2)).hangUp()
	})
}

// Agents that understand it wait on their connection, are told so, and are served in turn without
// reconnecting.
//
// proves SAFE-11
func TestAStampedeWaitsInLine(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		const crowd, atOnce = 120, 64
		for i := range crowd {
			w.record(fmt.Sprintf("web-%d", i), store.Booting)
		}
		w.db.Faults().Freeze()
		agents := make([]*agent, crowd)
		for i := range agents {
			h := hello(fmt.Sprintf("web-%d", i), "boot1", 1)
			h.Waits = true
			agents[i] = r.call(h)
			defer agents[i].hangUp()
			synctest.Wait()
		}
		pass(4 * time.Second)
		w.db.Faults().Thaw()
		for i, a := range agents {
			msg := a.next()
			if waiting := msg.GetWaiting(); (waiting != nil) != (i >= atOnce) {
				t.Fatalf("agent %d is told %v", i, msg)
			} else if waiting != nil {
				if most := waiting.GetMost().AsDuration(); most <= 5*time.Second || most > 10*time.Second {
					t.Errorf("agent %d is to wait for %s", i, most)
				}
				msg = a.next()
			}
			if msg.GetWelcome() == nil {
				t.Errorf("agent %d is answered with %v", i, msg)
			}
		}
	})
}
