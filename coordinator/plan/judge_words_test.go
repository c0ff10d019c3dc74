package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// What a judgment says, and on what it rests: an operator sees these words.
//
// proves DET-3, DET-4, DET-6, DET-8, DET-9, DET-10, DET-11, DET-17, SAFE-1, SAFE-16, HEAL-1
func TestWhatAJudgmentSays(t *testing.T) {
	const (
		ttl      = 17 * time.Second
		open     = "stream open since rev 4, epoch 3 at r1"
		lost     = "stream lost since rev 4, epoch 3 at r1"
		stopped  = "provider: stopped"
		running  = "provider: running"
		unseen   = "provider: not listed"
		failing  = "check http: refused"
		noStream = "alive absent"
	)
	fences := func(x *subject) { x.Record.Spec.Report.OnLeaseLost.Do = store.LeaseLostPowerOff }
	checks := func(x *subject) {
		x.Report.Record = store.Report{
			BootID: "b", Why: "checks 0/1", Checks: []store.CheckReport{
				{Name: "http", Why: "refused"}, {Name: "up", Healthy: true}, {Name: "page", Why: "slow", Optional: true},
			},
		}
	}
	problem := func(x *subject) { x.Calls.Problem = "out of order" }
	left := func(why store.Goodbye) twist {
		return func(x *subject) { x.Alive.Record.State, x.Alive.Record.Goodbye = store.StreamLeft, why }
	}
	why := func(x *subject) { x.Alive.Record.Why = "reset" }
	for name, c := range map[string]struct {
		twists   []twist
		why      string
		evidence []string
		awaits   store.Awaited
	}{
		"down": {[]twist{down(2), stream(store.StreamLost)}, "the provider says stopped", []string{stopped, lost}, ""},
		"down, stream open": {
			[]twist{down(1)},
			"the provider says stopped, and its stream is open: asking again",
			[]string{stopped, open},
			store.AwaitsList,
		},
		"down once, and stops itself": {
			[]twist{fences, down(1), stream(store.StreamLost)},
			"the provider says stopped, and it stops itself without a lease: asking again",
			[]string{stopped, lost},
			store.AwaitsList,
		},
		"down twice, and stops itself": {
			[]twist{fences, down(2), stream(store.StreamLost)}, "the provider says stopped", []string{stopped, lost}, "",
		},
		"down, its lease dropped": {
			[]twist{gone(0, store.StreamOpen), down(1)},
			"the provider says stopped, and its stream was open when its lease ended: asking again",
			[]string{stopped, noStream},
			store.AwaitsList,
		},
		"not listed": {
			[]twist{unlisted(1), stream(store.StreamLost)},
			"the provider does not list it",
			[]string{unseen, lost},
			store.AwaitsList,
		},
		"not listed again, stream just lost": {
			[]twist{unlisted(2), stream(store.StreamLost), lostFor(time.Second)},
			"the provider does not list it, and its stream has only just been lost: asking again",
			[]string{unseen + ", again", lost},
			store.AwaitsList,
		},
		"not listed again": {
			[]twist{unlisted(2), stream(store.StreamLost)},
			"the provider no longer lists it",
			[]string{unseen + ", again", lost},
			"",
		},
		"its alive key is garbage": {
			[]twist{func(x *subject) { x.AliveUnreadable = "garbage" }},
			"its alive key cannot be read: garbage",
			[]string{running},
			"",
		},
		"not registered": {
			[]twist{phase(store.Booting), gone(0, ""), phaseFor(5 * time.Minute), noList},
			"its agent did not register within 5m0s",
			[]string{"provider: no list yet", noStream},
			"",
		},
		"its lease ended just now": {
			[]twist{gone(0, store.StreamLost)},
			"its lease ended; to be confirmed for 500ms",
			[]string{"alive absent, last state lost", running},
			"",
		},
		"its lease ended, in grace": {
			[]twist{gone(ttl, ""), graceFor(time.Minute)},
			"its lease ended, but agents have time to return: a new leader began",
			[]string{"alive absent, last state unknown", running},
			store.AwaitsCalm,
		},
		"its lease ended": {
			[]twist{gone(ttl, store.StreamOpen)},
			"its lease (17s) ended and it did not return",
			[]string{"alive absent, last state open", running},
			"",
		},
		"its machine does not restart": {
			[]twist{phase(store.Stopping), restarts(store.RestartMachine), phaseFor(time.Hour), problem},
			"its machine did not restart within 5m0s: out of order",
			[]string{running, open},
			"",
		},
		"its workload does not restart": {
			[]twist{phase(store.Stopping), restarts(store.RestartWorkload), phaseFor(time.Hour)},
			"its workload did not restart within 45s",
			[]string{running, open},
			"",
		},
		"the provider knows it not": {
			[]twist{phase(store.Stopping), restarts(store.RestartMachine), func(x *subject) { x.Calls.Missing = true }},
			"asked to restart it, the provider knows no such machine",
			[]string{running, open},
			"",
		},
		"restarts, and is no longer listed": {
			[]twist{phase(store.Stopping), restarts(store.RestartMachine), unlisted(2), stream(store.StreamLost)},
			"the provider no longer lists it",
			[]string{unseen + ", again", lost},
			"",
		},
		"its stream was lost": {
			[]twist{stream(store.StreamLost), why}, "its stream was lost: reset", []string{lost, running}, "",
		},
		"overdue": {
			[]twist{stream(store.StreamOverdue)},
			"its report is overdue",
			[]string{"stream overdue since rev 4, epoch 3 at r1", running},
			"",
		},
		"refused": {
			[]twist{left(store.GoodbyeRefused), why},
			"its agent is there, and is refused: reset",
			[]string{"stream left since rev 4, epoch 3 at r1", running},
			"",
		},
		"goodbye": {
			[]twist{left(store.GoodbyeShutdown)},
			"its agent said goodbye: shutdown",
			[]string{"stream left since rev 4, epoch 3 at r1", running},
			"",
		},
		"reports, and is checked":  {[]twist{phase(store.Checking)}, "it reports and is healthy", []string{open}, ""},
		"reports":                  {nil, "it reports and is healthy", nil, ""},
		"reports, of another boot": {[]twist{otherBoot}, "it reports", []string{open}, ""},
		"restarts, is not told yet": {
			[]twist{phase(store.Checking), restarts(store.RestartWorkload)},
			"not healthy yet: its agent has not confirmed its restart",
			[]string{open},
			"",
		},
		"restarts, is not told yet, and fails": {
			[]twist{checks, phase(store.Checking), restarts(store.RestartWorkload)},
			"not healthy yet: checks 0/1",
			[]string{open},
			"",
		},
		"started again by itself": {
			[]twist{checks, rebootedInto("b2")}, "its machine has started again: checks 0/1", []string{open}, "",
		},
		"started again by itself, and says nothing": {
			[]twist{noReport, func(x *subject) { x.Report.Modified, x.Report.Record.BootID = 5, "b2" }, rebootedInto("b2")},
			"its machine has started again",
			[]string{open},
			"",
		},
		"unhealthy": {[]twist{checks}, "checks 0/1", []string{open, failing}, ""},
		"its workload has ended": {
			[]twist{checks, phase(store.Checking), func(x *subject) {
				x.Report.Record.Workload = &store.WorkloadExit{Code: 1}
			}},
			"its workload ended before it was healthy: checks 0/1",
			[]string{open, failing},
			"",
		},
		"not healthy yet": {[]twist{checks, phase(store.Checking)}, "not healthy yet: checks 0/1", []string{open}, ""},
		"nothing reported": {
			[]twist{noReport, phase(store.Checking)}, "not healthy yet: it has reported nothing yet", []string{open}, "",
		},
		"not healthy in time": {
			[]twist{checks, phase(store.Checking), phaseFor(time.Hour)},
			"not healthy within 10m0s: checks 0/1",
			[]string{open, failing},
			"",
		},
	} {
		x := newSubject()
		x.Alive.Record.Epoch, x.Alive.Record.Replica = 3, "r1"
		for _, twist := range c.twists {
			twist(x)
		}
		if j := x.judge(); j.Why() != c.why || !slices.Equal(reason.Lines(j.Facts), c.evidence) || j.Awaits != c.awaits {
			t.Errorf("%s: %s\n  on %q, awaits %q, want\n  %s\n  on %q, awaits %q", name, j.Why(),
				reason.Lines(j.Facts), j.Awaits, c.why, c.evidence, c.awaits)
		}
	}
}

// A machine counts as down from the first List on that says so, unless its agent was heard since,
// or the List describes another boot.
//
// proves REC-18, DET-4
func TestWhoSeemsDown(t *testing.T) {
	later := func(d time.Duration) twist { return func(x *subject) { x.Sighting.Begun = x.PhaseStart.Add(d) } }
	of := func(boot string) twist { return func(x *subject) { x.Sighting.BootID = boot } }
	since := func(d time.Duration) twist { return func(x *subject) { x.StreamSince = x.Sighting.Begun.Add(d) } }
	for name, c := range map[string]struct {
		twists []twist
		want   bool
	}{
		"listed as running":                      {nil, false},
		"no list":                                {[]twist{noList}, false},
		"not listed":                             {[]twist{unlisted(9)}, false},
		"down, its stream lost":                  {[]twist{down(1), stream(store.StreamLost)}, true},
		"down, its alive key gone":               {[]twist{down(1), gone(0, store.StreamOpen)}, true},
		"down, its stream open":                  {[]twist{down(1)}, true},
		"down, its stream open since that list":  {[]twist{down(1), since(0)}, true},
		"down, its stream open since":            {[]twist{down(1), since(1)}, false},
		"down, its stream lost since":            {[]twist{down(1), since(1), stream(store.StreamLost)}, true},
		"down, in the stream's boot":             {[]twist{down(1), of("b")}, true},
		"down, in another boot":                  {[]twist{down(1), of("a")}, false},
		"down, in another boot, its stream lost": {[]twist{down(1), of("a"), stream(store.StreamLost)}, true},
		"down, before it got healthy":            {[]twist{down(1), later(-1), stream(store.StreamLost)}, false},
		"down, as it got healthy":                {[]twist{down(1), later(0), stream(store.StreamLost)}, true},
		"down, before it registered": {
			[]twist{down(1), later(-1), stream(store.StreamLost), phase(store.Checking)}, false,
		},
		"down, before it began to drain": {
			[]twist{down(1), later(-1), stream(store.StreamLost), phase(store.Draining)}, true,
		},
		"down, before it got healthy, stream open": {[]twist{down(1), later(-1)}, false},
	} {
		x := newSubject()
		for _, twist := range c.twists {
			twist(x)
		}
		if got := (&member{Instance: &x.Instance}).seemsDown(); got != c.want {
			t.Errorf("%s: it seems down: %t", name, got)
		}
	}
}
