package coordinator

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/evidence"
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

// A disturbance that goes on is logged when it begins, and counted all the while.
//
// proves OBS-1, SAFE-1
func TestAnOutageIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		r := &Replica{
			deps: Deps{Meter: Unmetered{}}, log: slog.New(slog.NewTextHandler(&lines, nil)), publish: make(chan struct{}, 1),
		}
		r.pulse.beat()
		for range 60 {
			<-time.After(2 * time.Second)
			r.noteDisturbance("etcd does not answer", false)
			r.noteDisturbance("a renewal failed", false)
		}
		if n := strings.Count(lines.String(), "disturbance"); n != 2 || r.disturbances != 120 {
			t.Errorf("logged %d times, counted %d:\n%s", n, r.disturbances, lines.String())
		}
		<-time.After(time.Minute)
		r.noteDisturbance("etcd does not answer", false)
		if n := strings.Count(lines.String(), "etcd does not answer"); n != 2 {
			t.Errorf("two outages are logged %d times", n)
		}
	})
}

// A long standstill of a leader is a disturbance once it is over, and the leader plans again. A
// replica that does not lead notes none for that alone.
//
// proves SAFE-1
func TestALongStandstillOfALeaderIsADisturbance(t *testing.T) {
	for name, c := range map[string]struct {
		leads bool
		still time.Duration
		want  string
	}{
		"a leader":                     {true, 4 * time.Second, "the leader stood still for 4s"},
		"a leader, for a short time":   {true, store.LeaderLate, ""},
		"a replica that does not lead": {false, 4 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &Replica{
					deps: Deps{Meter: Unmetered{}}, log: slog.New(slog.DiscardHandler), publish: make(chan struct{}, 1),
				}
				led := &term{inbox: newInbox(), evidence: evidence.New(evidence.Config{Now: time.Now})}
				if c.leads {
					r.term = led
				}
				r.pulse.beat()
				<-time.After(c.still)
				gap := r.pulse.beat()
				if gap != c.still {
					t.Errorf("it stood still for %s", gap)
				}
				r.stoodStill(gap)
				noted := ""
				if r.last != nil {
					noted = r.last.What
				}
				if noted != c.want || noted != "" && !r.last.Own || len(led.inbox.ready) > 0 != (c.want != "") {
					t.Errorf("noted is %q, want %q; %d wait to be planned", noted, c.want, len(led.inbox.ready))
				}
				<-time.After(pulseEvery)
				if gap := r.pulse.beat(); gap != 0 {
					t.Errorf("a pulse in time is late by %s", gap)
				}
			})
		})
	}
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
		r.disturbed("a replica's watch continues after an interruption")
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
