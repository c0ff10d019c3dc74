package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// proves DET-3, DET-4, DET-5, DET-6, DET-8, DET-10, DET-11, DET-17, SAFE-1, SAFE-13, HEAL-1
func TestJudge(t *testing.T) {
	const half, ttl = 500 * time.Millisecond, 17 * time.Second
	for _, c := range []struct {
		name   string
		twists []twist
		want   store.Verdict
		rule   string
		until  time.Duration // 0: time alone changes nothing
	}{
		{"reports and is healthy", nil, store.Live, "DET-5", 0},
		{"moves to another replica", []twist{stream(store.StreamMoved)}, store.Live, "DET-5", 0},
		{"checks fail", []twist{unhealthy}, store.Unhealthy, "DET-9", 0},
		{"checks fail while draining", []twist{phase(store.Draining), unhealthy}, store.Unhealthy, "DET-9", 0},
		{"checks failed in an earlier boot", []twist{unhealthy, otherBoot}, store.Live, "DET-5", 0},
		{"no report yet", []twist{noReport}, store.Live, "DET-5", 0},

		// Streams that tell of trouble: suspect, whatever the report said.
		{"stream lost", []twist{stream(store.StreamLost)}, store.Suspect, "DET-3", 0},
		{"report overdue", []twist{stream(store.StreamOverdue)}, store.Suspect, "DET-6", 0},
		{"said goodbye", []twist{stream(store.StreamLeft)}, store.Suspect, "DET-8", 0},
		{
			"comes again and again, and is refused",
			[]twist{stream(store.StreamLeft), func(x *subject) { x.Alive.Record.Goodbye = store.GoodbyeRefused }},
			store.Suspect, "DET-8", 0,
		},
		{"stream lost while unhealthy", []twist{unhealthy, stream(store.StreamLost)}, store.Suspect, "DET-3", 0},

		// The lease has ended.
		{"just ended, was lost", []twist{gone(0, store.StreamLost)}, store.Suspect, "DET-17", half},
		{"ended half a second ago, was overdue", []twist{gone(half, store.StreamOverdue)}, store.Lost, "DET-17", 0},
		{"ended half a second ago, had left", []twist{gone(half, store.StreamLeft)}, store.Lost, "DET-17", 0},
		{
			"ended half a second ago, was lost for as long as a lease lasts after the last report",
			[]twist{gone(half, store.StreamLost), silentFor(7 * time.Second)},
			store.Lost, "DET-17", 0,
		},
		{
			"ended half a second ago, had left too shortly before for the lease to have run out",
			[]twist{gone(half, store.StreamLeft), silentFor(7*time.Second - 1)},
			store.Suspect, "DET-17", ttl - half,
		},
		{
			"ended a lease ago, had left shortly before",
			[]twist{gone(ttl, store.StreamLeft), silentFor(half)},
			store.Lost, "DET-17", 0,
		},
		{
			"ended half a second ago, was open",
			[]twist{gone(half, store.StreamOpen)},
			store.Suspect, "DET-17",
			ttl - half,
		},
		{"ended a lease ago, was open", []twist{gone(ttl, store.StreamOpen)}, store.Lost, "DET-17", 0},
		{
			"ended half a second ago, was moved",
			[]twist{gone(half, store.StreamMoved)},
			store.Suspect, "DET-17",
			ttl - half,
		},
		{"ended, its last state is unknown", []twist{gone(half, "")}, store.Suspect, "DET-17", ttl - half},
		{"ended while checking", []twist{phase(store.Checking), gone(ttl, store.StreamOpen)}, store.Lost, "DET-17", 0},
		{"ended while draining", []twist{phase(store.Draining), gone(half, store.StreamLost)}, store.Lost, "DET-17", 0},
		{
			"sessions outlive its lease",
			[]twist{func(x *subject) { x.s.SessionTTL = time.Minute }, gone(half, store.StreamOpen)},
			store.Suspect,
			"DET-17", time.Minute + half,
		},
		{"the provider does not answer", []twist{noList, gone(ttl, store.StreamOpen)}, store.Lost, "DET-17", 0},

		// Grace: nothing is judged lost, and no timer fires; what the provider says counts all the
		// same.
		{
			"ended, in grace",
			[]twist{gone(ttl, store.StreamLost), graceFor(time.Minute)},
			store.Suspect, "SAFE-1",
			time.Minute,
		},
		{"grace is over", []twist{gone(ttl, store.StreamLost), graceFor(0)}, store.Lost, "DET-17", 0},
		{
			"confirmed later than the grace",
			[]twist{gone(0, store.StreamOpen), graceFor(time.Second)},
			store.Suspect,
			"DET-17", ttl,
		},
		{
			"stopped, in grace",
			[]twist{gone(0, store.StreamLost), down(1), graceFor(time.Minute)},
			store.Dead, "DET-4",
			0,
		},
		{"unhealthy, in grace", []twist{unhealthy, graceFor(time.Minute)}, store.Unhealthy, "DET-9", 0},
		{
			"not registered in time, in grace",
			[]twist{phase(store.Booting), gone(0, ""), phaseFor(time.Hour), graceFor(time.Minute)},
			store.Unborn,
			"DET-11", time.Minute,
		},
		{
			"not healthy in time, in grace",
			[]twist{phase(store.Checking), unhealthy, phaseFor(time.Hour), graceFor(time.Minute)},
			store.Live, "DET-10",
			time.Minute,
		},

		// The provider's word.
		{"stopped, stream lost", []twist{stream(store.StreamLost), down(1)}, store.Dead, "DET-4", 0},
		{"stopped, alive gone", []twist{gone(0, store.StreamLost), down(1)}, store.Dead, "DET-4", 0},
		{
			"stopped, alive gone under an open stream",
			[]twist{gone(0, store.StreamOpen), down(1)},
			store.Suspect,
			"DET-4", ttl,
		},
		{
			"stopped by two lists begun before alive went under an open stream",
			[]twist{gone(0, store.StreamOpen), down(2)},
			store.Suspect, "DET-4", ttl,
		},
		{
			"stopped by two lists, alive gone before under an open stream",
			[]twist{gone(time.Second, store.StreamOpen), down(2)},
			store.Dead, "DET-4", 0,
		},
		{"stopped, alive gone for a lease", []twist{gone(ttl, store.StreamOpen), down(1)}, store.Dead, "DET-4", 0},
		{"stopped, overdue", []twist{stream(store.StreamOverdue), down(1)}, store.Dead, "DET-4", 0},
		{"stopped, stream open", []twist{down(1)}, store.Suspect, "DET-4", 0},
		{
			"stopped in a list that is older than its last start",
			[]twist{stream(store.StreamLost), down(1), phaseFor(half)},
			store.Suspect, "DET-3", 0,
		},
		{
			"stopped in a list that is older than its last registration",
			[]twist{phase(store.Checking), stream(store.StreamLost), down(1), phaseFor(half)},
			store.Suspect, "DET-3",
			0,
		},
		{"stopped in two lists, stream open", []twist{down(2)}, store.Dead, "DET-4", 0},
		{
			"stopped in two lists, the stream opened since",
			[]twist{down(2), func(x *subject) { x.StreamSince = x.now.Add(-time.Second / 2) }},
			store.Suspect, "DET-4",
			0,
		},
		{
			"stopped in many lists, by an earlier boot than the stream's",
			[]twist{down(9), func(x *subject) { x.Sighting.BootID = "before" }},
			store.Suspect, "DET-4", 0,
		},
		{
			"stopped in two lists, by the stream's boot",
			[]twist{down(2), func(x *subject) { x.Sighting.BootID = x.Alive.Record.BootID }},
			store.Dead, "DET-4", 0,
		},
		{"stopped while booting", []twist{phase(store.Booting), gone(0, ""), down(1)}, store.Dead, "DET-4", 0},
		{"not listed, stream open", []twist{unlisted(9)}, store.Suspect, "DET-4", 0},
		{"not listed, overdue", []twist{unlisted(9), stream(store.StreamOverdue)}, store.Suspect, "DET-4", 0},
		{"not listed once, alive gone", []twist{unlisted(1), gone(half, store.StreamLost)}, store.Suspect, "DET-4", 0},
		{"not listed, stream lost", []twist{unlisted(2), stream(store.StreamLost)}, store.Dead, "DET-4", 0},
		{
			"not listed for long, stream lost less than a second before the last list",
			[]twist{unlisted(9), stream(store.StreamLost), lostFor(2*time.Second - 1)},
			store.Suspect, "DET-4", 0,
		},
		{
			"not listed for long, stream lost a second before the last list",
			[]twist{unlisted(9), stream(store.StreamLost), lostFor(2 * time.Second)},
			store.Dead, "DET-4", 0,
		},
		{
			"not listed for long, no list since alive went for sure",
			[]twist{unlisted(9), gone(2*time.Second-1, store.StreamLost)},
			store.Lost, "DET-17", 0,
		},
		{
			"not listed for long, nor a second after its stream was lost, alive gone for sure",
			[]twist{unlisted(9), gone(half, store.StreamLost), silentFor(7 * time.Second)},
			store.Dead, "DET-4", 0,
		},
		{"not listed, alive gone for sure", []twist{unlisted(2), gone(ttl, store.StreamOpen)}, store.Dead, "DET-4", 0},
		{
			"not listed, alive gone from an open stream",
			[]twist{unlisted(9), gone(ttl-1, store.StreamOpen)},
			store.Suspect, "DET-4", 1,
		},
		{
			"not listed, alive gone from a lost stream",
			[]twist{unlisted(9), gone(half-1, store.StreamLost)},
			store.Suspect, "DET-4", 1,
		},
		{
			"not listed, alive gone, in grace",
			[]twist{unlisted(9), gone(time.Hour, store.StreamOpen), graceFor(time.Minute)},
			store.Suspect, "DET-4",
			time.Minute,
		},
		{
			"not listed, made too lately",
			[]twist{phase(store.Booting), unlisted(2), gone(0, ""), provableIn(1)},
			store.Unborn, "DET-11", 4 * time.Minute,
		},
		{
			"not listed, old enough by now",
			[]twist{phase(store.Booting), unlisted(2), gone(ttl, ""), provableIn(0)},
			store.Dead, "DET-4", 0,
		},

		// Limits of time.
		{
			"registers late",
			[]twist{phase(store.Booting), gone(0, ""), phaseFor(5*time.Minute - 1)},
			store.Unborn,
			"DET-11", 1,
		},
		{
			"never registered",
			[]twist{phase(store.Booting), gone(0, ""), phaseFor(5 * time.Minute)},
			store.Stuck,
			"DET-11", 0,
		},
		{"registered this moment", []twist{phase(store.Booting), phaseFor(time.Hour)}, store.Live, "DET-5", 0},
		{
			"not healthy yet",
			[]twist{phase(store.Checking), unhealthy, phaseFor(10*time.Minute - 1)},
			store.Live,
			"DET-10", 1,
		},
		{
			"never got healthy",
			[]twist{phase(store.Checking), unhealthy, phaseFor(10 * time.Minute)},
			store.Stuck,
			"DET-10", 0,
		},
		{
			"unhealthy after its machine started again by itself",
			[]twist{unhealthy, rebootedInto("b2")},
			store.Live,
			"DET-10", 0,
		},
		{"unhealthy, in the boot that was healthy", []twist{unhealthy, rebootedInto("b")}, store.Unhealthy, "DET-9", 0},
		{
			"never reported",
			[]twist{phase(store.Checking), noReport, phaseFor(10 * time.Minute)},
			store.Stuck, "DET-10",
			0,
		},
		{
			"may take as long as it likes",
			[]twist{phase(store.Checking), unhealthy, unlimited, phaseFor(100 * time.Hour)},
			store.Live, "DET-5", 0,
		},
		{"healthy at last", []twist{phase(store.Checking), phaseFor(time.Hour)}, store.Live, "DET-5", 0},

		// A restart has its time: the machine's as long as a registration, the workload's
		// stop_timeout and three intervals more.
		{"its machine restarts", []twist{
			phase(store.Stopping), restarts(store.RestartMachine),
			gone(time.Minute, store.StreamLost), phaseFor(time.Minute),
		}, store.Unborn, "HEAL-1", 4 * time.Minute},
		{
			"its machine did not restart",
			[]twist{phase(store.Stopping), restarts(store.RestartMachine), phaseFor(5 * time.Minute)},
			store.Stuck,
			"HEAL-1", 0,
		},
		{
			"its machine did not restart, in grace",
			[]twist{phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), graceFor(time.Minute)},
			store.Unborn, "HEAL-1", time.Minute,
		},
		{
			"the provider has put its restart off",
			[]twist{
				phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), putOffAgo(time.Minute),
			},
			store.Unborn, "HEAL-1", 4 * time.Minute,
		},
		{
			"the provider has put its restart off for the last time",
			[]twist{
				phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), putOffAgo(5 * time.Minute),
			},
			store.Stuck, "HEAL-1", 0,
		},
		{
			"the provider has put its restart off for long",
			[]twist{phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), putOffAgo(-time.Hour)},
			store.Unborn, "HEAL-1", time.Hour + 5*time.Minute,
		},
		{
			"its stream broke after its restart was put off for long",
			[]twist{
				phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), putOffAgo(-time.Hour),
				stream(store.StreamLost), lostFor(time.Minute),
			},
			store.Unborn, "HEAL-1", 4 * time.Minute,
		},
		{
			"its lease ended long after its restart was put off",
			[]twist{
				phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), putOffAgo(-time.Hour),
				gone(5*time.Minute, store.StreamOpen),
			},
			store.Stuck, "HEAL-1", 0,
		},
		{
			"no List of this term came yet",
			[]twist{
				phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), noList,
				func(x *subject) { x.Record.Restart.Listed = "b" },
			},
			store.Unborn, "HEAL-1", 5 * time.Minute,
		},
		{
			"its lease ended, and no List of this term came yet",
			[]twist{
				phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), noList,
				func(x *subject) { x.Record.Restart.Listed = "b" }, gone(5*time.Minute, store.StreamOpen),
			},
			store.Stuck, "HEAL-1", 0,
		},
		{
			"its lease ended, and its restart was never put off",
			[]twist{
				phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), gone(time.Minute, store.StreamOpen),
			},
			store.Stuck, "HEAL-1", 0,
		},
		{
			"the provider has put off the restart that is to heal it",
			[]twist{
				phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), putOffAgo(time.Minute),
				func(x *subject) { x.Record.Restart.Heals = true },
			},
			store.Stuck, "HEAL-1", 0,
		},
		{
			"it does not come back after a restart that was put off",
			[]twist{
				phase(store.Starting), restarts(store.RestartMachine), phaseFor(5 * time.Minute), putOffAgo(time.Minute),
			},
			store.Stuck, "HEAL-1", 0,
		},
		{"stopped, by its restart", []twist{
			phase(store.Stopping), restarts(store.RestartMachine),
			stream(store.StreamLost), down(9),
		}, store.Unborn, "HEAL-1", 4 * time.Minute},
		{
			"stopped once more, as it comes up",
			[]twist{phase(store.Starting), restarts(store.RestartMachine), stream(store.StreamLost), down(1)},
			store.Unborn, "HEAL-1", 4 * time.Minute,
		},
		{
			"stopped twice after it came up",
			[]twist{phase(store.Starting), restarts(store.RestartMachine), stream(store.StreamLost), down(2)},
			store.Dead, "DET-4", 0,
		},
		{"gone while it restarts", []twist{
			phase(store.Stopping), restarts(store.RestartMachine),
			stream(store.StreamLost), unlisted(2),
		}, store.Dead, "DET-4", 0},
		{
			"the provider knows no such machine",
			[]twist{phase(store.Stopping), restarts(store.RestartMachine), func(x *subject) { x.Calls.Missing = true }},
			store.Stuck, "HEAL-1", 0,
		},
		{"its workload restarts", []twist{
			phase(store.Stopping), restarts(store.RestartWorkload),
			phaseFor(time.Second),
		}, store.Unborn, "HEAL-1", 44 * time.Second},
		{
			"its workload did not restart",
			[]twist{phase(store.Stopping), restarts(store.RestartWorkload), phaseFor(45 * time.Second)},
			store.Stuck,
			"HEAL-1", 0,
		},
		{
			"stopped while its workload restarts",
			[]twist{phase(store.Stopping), restarts(store.RestartWorkload), stream(store.StreamLost), down(1)},
			store.Dead, "DET-4", 0,
		},

		// Phases in which there is nothing to be judged.
		{
			"finished",
			[]twist{phase(store.Finished), gone(time.Hour, store.StreamLost), down(3)},
			store.Live, "REC-12",
			0,
		},
		{"pending", []twist{phase(store.Pending), gone(time.Hour, ""), unlisted(9)}, store.Unborn, "REC-3", 0},
		{"creating", []twist{phase(store.Creating), gone(time.Hour, ""), unlisted(9)}, store.Unborn, "REC-3", 0},
		{
			"deleting",
			[]twist{phase(store.Deleting), gone(time.Hour, store.StreamLost), down(3)},
			store.Unborn,
			"HEAL-14", 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newSubject()
			for _, twist := range c.twists {
				twist(x)
			}
			j := x.judge()
			if j.Verdict != c.want || j.Rule != c.rule {
				t.Errorf("judged %s by %s (%s), want %s by %s", j.Verdict, j.Rule, j.Why(), c.want, c.rule)
			}
			var until time.Duration
			if !j.Until.IsZero() {
				until = j.Until.Sub(x.now)
			}
			if until != c.until {
				t.Errorf("may change in %s, want %s", until, c.until)
			}
			if j.Verdict.Failed() && (j.Why() == "" || len(j.Facts) == 0) {
				t.Errorf("a failure is not explained: %+v", j)
			}
		})
	}
}
