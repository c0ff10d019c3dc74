package coordinator

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A process that stood still says so, and an etcd that was silent meanwhile is not blamed for it.
//
// proves SAFE-1
func TestAStandstillIsOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pulse
		began := time.Now()
		for range 8 {
			p.beat()
			<-time.After(pulseEvery)
		}
		if still := p.stoodStill(began); still != 0 {
			t.Errorf("with a steady pulse it stood still for %s", still)
		}
		<-time.After(5 * time.Second) // no pulse comes
		if still := p.stoodStill(began); still < 5*time.Second {
			t.Errorf("before its pulse comes it stood still for %s", still)
		}
		p.beat()
		if still := p.stoodStill(began); still < 5*time.Second {
			t.Errorf("once it has come it stood still for %s", still)
		}
		p.beat()
		if still := p.stoodStill(time.Now().Add(time.Nanosecond)); still != 0 {
			t.Errorf("since then it stood still for %s", still)
		}
	})
}

// What a replica notices right after it stood still is told as its own disturbance, in whatever
// order it comes; what no standstill explains, and what comes later, is not.
//
// proves SAFE-1
func TestWhatFollowsAStandstillIsOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Replica{
			deps: Deps{Meter: Unmetered{}}, log: slog.New(slog.DiscardHandler), publish: make(chan struct{}, 1),
		}
		told := func(want string, own bool) {
			t.Helper()
			if r.last == nil || r.last.What != want || r.last.Own != own {
				t.Errorf("told is %+v, wanted %q", r.last, want)
			}
		}
		r.pulse.beat()
		r.disturbed("a renewal failed")
		told("a renewal failed", false)
		<-time.After(7 * time.Second)
		r.disturbed("a replica's watch was interrupted")
		told("this replica stood still for 7s", true)
		r.pulse.beat()
		r.disturbedBySilence(time.Now().Add(-7 * time.Second))
		r.disturbed("a replica's watch goes on after an interruption")
		told("this replica stood still for 7s", true)
		r.disturbed(store.DisturbedRecordBack)
		told(store.DisturbedRecordBack, false)
		for range 5 {
			<-time.After(pulseEvery)
			r.pulse.beat()
		}
		r.disturbed("a renewal failed")
		told("a renewal failed", false)
	})
}
