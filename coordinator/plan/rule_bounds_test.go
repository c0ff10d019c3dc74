package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// These tables state rules at their bounds, where a small mistake (< for <=, a condition left out)
// changes what is decided and no story happens to stand.

// A storm of the shard needs losses in two groups, five of them, and a fifth of all instances. It
// may end once either of the last two is no longer reached.
//
// proves SAFE-2
func TestStormOfTheShardAtItsBounds(t *testing.T) {
	for _, test := range []struct {
		tally       Tally
		storm, calm bool
	}{
		{Tally{Lost: 5, Now: 5, Of: 25, Groups: 2}, true, false},
		{Tally{Lost: 5, Now: 5, Of: 25, Groups: 1}, false, false},
		{Tally{Lost: 5, Now: 5, Of: 25, Groups: 3}, true, false},
		{Tally{Lost: 4, Now: 4, Of: 10, Groups: 2}, false, true},
		{Tally{Lost: 5, Now: 5, Of: 26, Groups: 2}, false, true},
		{Tally{Lost: 6, Now: 6, Of: 30, Groups: 2}, true, false},
		{Tally{Lost: 9, Now: 4, Of: 10, Groups: 2}, true, true},
		{Tally{Lost: 4, Now: 9, Of: 10, Groups: 2}, false, false},
	} {
		if test.tally.Storm() != test.storm || test.tally.Calm() != test.calm {
			t.Errorf("%+v: storm %t, calm %t", test.tally, test.tally.Storm(), test.tally.Calm())
		}
	}
	a, b := Tally{1, 2, 3, 4}, Tally{10, 20, 30, 40}
	if got := a.Plus(b); got != (Tally{11, 22, 33, 44}) {
		t.Errorf("the sum is %+v", got)
	}
	if got := b.Minus(a); got != (Tally{9, 18, 27, 36}) {
		t.Errorf("the difference is %+v", got)
	}
}

// Losses that began within storm.window count towards a storm, those before only towards its end.
// An instance that said goodbye, never registered, or is on demand is no loss.
//
// proves SAFE-2
func TestWhichLossesCount(t *testing.T) {
	const window = time.Minute
	now := time.Unix(10_000, 0)
	long, just, within := now.Add(-window-1), now.Add(-window), now.Add(-window+1)
	type seen struct {
		verdict store.Verdict
		absent  bool
		fences  store.LeaseLost
		state   store.StreamState // "": its alive key is gone
		since   time.Time         // of the stream, or since when the key is gone
	}
	for name, test := range map[string]struct {
		seen      seen
		lost, now int
	}{
		"lost lately":              {seen{verdict: store.Lost, since: within}, 1, 1},
		"lost a window ago":        {seen{verdict: store.Lost, since: just}, 0, 1},
		"lost long ago":            {seen{verdict: store.Lost, since: long}, 0, 1},
		"lost with an open key":    {seen{verdict: store.Lost, state: store.StreamLost, since: within}, 1, 1},
		"lost long ago with a key": {seen{verdict: store.Lost, state: store.StreamLost, since: long}, 0, 1},
		"dead":                     {seen{verdict: store.Dead, since: within}, 0, 0},
		"dead for its absence":     {seen{verdict: store.Dead, absent: true, since: within}, 1, 1},
		"dead by its own fence": {seen{
			verdict: store.Dead,
			fences:  store.LeaseLost{Do: store.LeaseLostPowerOff}, since: within,
		}, 1, 1},
		"unhealthy":                  {seen{verdict: store.Unhealthy, state: store.StreamOpen, since: within}, 0, 0},
		"live":                       {seen{verdict: store.Live, state: store.StreamOpen, since: within}, 0, 0},
		"suspect, its key gone":      {seen{verdict: store.Suspect, since: within}, 1, 0},
		"suspect, its key long gone": {seen{verdict: store.Suspect, since: just}, 0, 0},
		"suspect, its stream lost":   {seen{verdict: store.Suspect, state: store.StreamLost, since: within}, 1, 0},
		"suspect, its stream overdue": {
			seen{verdict: store.Suspect, state: store.StreamOverdue, since: within},
			1,
			0,
		},
		"suspect, it said goodbye":      {seen{verdict: store.Suspect, state: store.StreamLeft, since: within}, 0, 0},
		"suspect, it moves":             {seen{verdict: store.Suspect, state: store.StreamMoved, since: within}, 0, 0},
		"suspect, its stream lost long": {seen{verdict: store.Suspect, state: store.StreamLost, since: long}, 0, 0},
	} {
		for _, who := range []struct {
			managed bool
			phase   store.Phase
			counts  bool
		}{{true, store.Running, true}, {false, store.Running, false}, {true, store.Booting, false}} {
			in := &Instance{AliveGone: test.seen.since}
			in.Record.Managed, in.Record.Spec.Report.OnLeaseLost = who.managed, test.seen.fences
			if test.seen.state != "" {
				in.Alive.Modified, in.Alive.Record.State = 1, test.seen.state
				in.AliveGone, in.StreamSince = time.Time{}, test.seen.since
			}
			d := draftWith(func(d *draft) {
				d.s, d.g, d.now = &Snapshot{}, &Group{}, now
				d.spec = &store.Group{Storm: store.StormSpec{Window: store.Duration(window)}}
			})
			d.members = []*member{{
				Instance: in, phase: who.phase,
				judgment: Judgment{Verdict: test.seen.verdict, Absent: test.seen.absent},
			}}
			d.storms.countLosses()
			var want Tally
			if who.counts {
				want = Tally{Lost: test.lost, Now: test.now, Of: 1, Groups: test.lost}
			}
			if d.storms.tally != want {
				t.Errorf("%s, managed %t, %s: %+v, want %+v", name, who.managed, who.phase, d.storms.tally, want)
			}
			if who.counts && test.lost > 0 && !d.next.Equal(test.seen.since.Add(window)) {
				t.Errorf("%s: looked at again at %s, want when it leaves the window, at %s", name, d.next,
					test.seen.since.Add(window))
			}
		}
	}
}

// The wait of a flapping slot begins with min_delay, doubles with each failure, and ends at
// max_delay, exactly; noise moves it by less than its own size to either side, and never below a
// second.
//
// proves FLAP-2
func TestWaitsOfFlappingSlots(t *testing.T) {
	wait := func(f store.FlapSpec, number, before int) time.Duration {
		return draftWith(func(d *draft) {
			d.g, d.spec = &Group{Name: "web"}, &store.Group{Flap: f}
		}).delay(number, before)
	}
	second := store.Duration(time.Second)
	plain := store.FlapSpec{MinDelay: 30 * second, MaxDelay: 150 * second}
	for before, want := range []int{30, 60, 120, 150, 150} {
		if got := wait(plain, 0, before); got != time.Duration(want)*time.Second {
			t.Errorf("after %d waits it waits %s, want %ds", before, got, want)
		}
	}
	if got := wait(plain, 0, 1_000_000); got != 150*time.Second {
		t.Errorf("after a million waits it waits %s", got)
	}
	noisy := plain
	noisy.Noise = 5 * second
	low, high := time.Hour, time.Duration(0)
	for number := range 500 {
		got := wait(noisy, number, 0)
		low, high = min(low, got), max(high, got)
		if again := wait(noisy, number, 0); again != got {
			t.Fatalf("slot %d waits %s, and %s", number, got, again)
		}
	}
	if low < 25*time.Second || low > 26*time.Second || high < 34*time.Second || high > 35*time.Second {
		t.Errorf("with noise of 5s slots wait from %s to %s, want about 25s to 35s", low, high)
	}
	for number := range 50 {
		if got := wait(store.FlapSpec{MinDelay: second, MaxDelay: second, Noise: 10 * second}, number,
			0); got < time.Second {
			t.Errorf("slot %d waits %s", number, got)
		}
	}
}

// Failures within flap.window make a slot flap once there are flap.failures of them. One from the
// near future, by a clock that is a little ahead, counts; one from further on does not.
//
// proves FLAP-1
func TestWhichFailuresAreRecent(t *testing.T) {
	now := time.Unix(10_000, 0)
	d := draftWith(func(d *draft) {
		d.now = now
		d.spec = &store.Group{Flap: store.FlapSpec{
			Failures: 2,
			Window:   store.Duration(5 * time.Minute),
		}}
	})
	for _, test := range []struct {
		ages []time.Duration
		want bool
	}{
		{nil, false},
		{[]time.Duration{0}, false},
		{[]time.Duration{0, 0}, true},
		{[]time.Duration{5*time.Minute - 1, 0}, true},
		{[]time.Duration{5 * time.Minute, 0}, false},
		{[]time.Duration{0, -time.Minute + 1}, true},
		{[]time.Duration{0, -time.Minute}, false},
		{[]time.Duration{time.Minute, time.Hour, time.Minute}, true},
	} {
		var rec store.Slot
		for _, age := range test.ages {
			rec.Failures = append(rec.Failures, store.Failure{At: now.Add(-age)})
		}
		if got := d.flapsNow(rec); got != test.want {
			t.Errorf("with failures %v ago it flaps: %t", test.ages, got)
		}
	}
}

// A group's own age limit goes before the shard's, also if it says that there is none.
//
// proves EXP-1
func TestAgeLimits(t *testing.T) {
	hour, off := store.Duration(time.Hour), store.Duration(0)
	for _, test := range []struct {
		group *store.Duration
		shard store.Duration
		want  time.Duration
	}{{nil, 0, 0}, {nil, hour, time.Hour}, {&hour, 0, time.Hour}, {&hour, 2 * hour, time.Hour}, {&off, hour, 0}} {
		if got := ageLimit(test.group, test.shard); got != test.want {
			t.Errorf("group %v, shard %s: %s", test.group, test.shard, got)
		}
	}
}

// What is waited for before an instance is removed: its hook, if it served and there is one and
// time for it, or the end that a notice told, whichever comes first.
//
// proves DRAIN-1, SPOT-2
func TestHowLongAnInstanceDrains(t *testing.T) {
	now := time.Unix(10_000, 0)
	hook := []string{"/bin/drain"}
	for _, test := range []struct {
		name    string
		phase   store.Phase
		verdict store.Verdict
		hook    []string
		timeout time.Duration
		want    time.Duration // 0: nothing is waited for
	}{
		{"running", store.Running, store.Live, hook, time.Minute, time.Minute},
		{"checking", store.Checking, store.Live, hook, time.Minute, time.Minute},
		{"stopping", store.Stopping, store.Live, hook, time.Minute, time.Minute},
		{"starting", store.Starting, store.Live, hook, time.Minute, time.Minute},
		{"booting", store.Booting, store.Live, hook, time.Minute, 0},
		{"creating", store.Creating, store.Unborn, hook, time.Minute, 0},
		{"finished", store.Finished, store.Live, hook, time.Minute, 0},
		{"lost", store.Running, store.Lost, hook, time.Minute, time.Minute},
		{"unhealthy", store.Running, store.Unhealthy, hook, time.Minute, time.Minute},
		{"dead", store.Running, store.Dead, hook, time.Minute, 0},
		{"no hook", store.Running, store.Live, nil, time.Minute, 0},
		{"no time", store.Running, store.Live, hook, 0, 0},
	} {
		in := &Instance{}
		in.Record.Spec.Drain = store.DrainSpec{Hook: test.hook, Timeout: store.Duration(test.timeout)}
		m := &member{Instance: in, phase: test.phase, judgment: Judgment{Verdict: test.verdict}}
		got, waits := draftWith(func(d *draft) { d.now = now }).drainTime(m)
		if waits != (test.want > 0) || waits && got != test.want {
			t.Errorf("%s: it drains for %s, %t, want %s", test.name, got, waits, test.want)
		}
	}
}
