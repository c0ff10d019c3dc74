package session

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// What the configuration leaves out has the documented default: an answer is awaited for
// protocol.AnswerTimeout, waits grow from one second to 30, reports go out every 5 s, and a lease
// lasts three of these and 2 s.
//
// proves DET-2, DET-14
func TestDefaults(t *testing.T) {
	c := New(Config{Bootstrap: []string{"a"}, Rand: func() float64 { return 0.9999999 }})
	now := time.Unix(0, 0)
	c.Step(now, nil)
	if got := c.Wake().Sub(now); got != protocol.AnswerTimeout {
		t.Errorf("waits %s for an answer, want %s", got, protocol.AnswerTimeout)
	}
	c.Step(now, ended(1)) // once more at once
	stream := Stream(2)
	waits := []time.Duration{second, 2 * second, 4 * second, 8 * second, 16 * second}
	for i := range 80 { // as often as would overflow a wait that doubles without end
		want := 30 * second
		if i < len(waits) {
			want = waits[i]
		}
		c.Step(now, ended(stream))
		if got := c.Wake().Sub(now).Round(tolerance); got != want {
			t.Errorf("after failure %d it waits %s, want %s", stream, got, want)
		}
		now = c.Wake()
		c.Step(now, nil)
		stream++
	}
	c.Step(now, Heard{stream, &message{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{Lease: 1}}}})
	if _, ttl := c.Renewed(); ttl != 17*second {
		t.Errorf("the lease lasts %s, want 17s", ttl)
	}
	if got := c.Wake().Sub(now); got != 5*second {
		t.Errorf("reports after %s, want 5s", got)
	}
}

// Each duration in a welcome replaces the previous one; an absent one keeps it.
//
// proves DET-14
func TestWelcomeSetsTheWaits(t *testing.T) {
	cfg := ordered("a")
	cfg.ReconnectMin, cfg.ReconnectMax = time.Minute, time.Hour
	c := New(cfg)
	now := time.Unix(0, 0)
	c.Step(now, nil)
	c.Step(now, Heard{1, &message{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{
		Lease: 1, ReconnectMin: durationpb.New(3 * second), ReconnectMax: durationpb.New(7 * second),
		LeaseTtl: durationpb.New(23 * second),
	}}}})
	if _, ttl := c.Renewed(); ttl != 23*second {
		t.Errorf("the lease lasts %s, want 23s", ttl)
	}
	for i, want := range []time.Duration{0, 3 * second, 6 * second, 7 * second} {
		c.Step(now, ended(Stream(i+1)))
		if i > 0 {
			if got := c.Wake().Sub(now).Round(tolerance); got != want {
				t.Errorf("after failure %d it waits %s, want %s", i+1, got, want)
			}
			now = c.Wake()
			c.Step(now, nil)
		}
	}
}

// A restarted agent continues the lease of the previous run: it counts from that run's last
// renewal. If only half of that is known, there is no lease.
//
// proves SAFE-9
func TestLeaseOfTheRunBefore(t *testing.T) {
	renewed := time.Unix(1000, 0)
	for _, test := range []struct {
		name    string
		renewed time.Time
		ttl     time.Duration
		from    time.Time
		want    time.Duration
	}{
		{"both are known", renewed, 11 * second, renewed, 11 * second},
		{"how long it lasts is not known", renewed, 0, time.Time{}, 0},
		{"a lease without length", renewed, -second, time.Time{}, 0},
		{"since when it counts is not known", time.Time{}, 11 * second, time.Time{}, 0},
	} {
		cfg := ordered("a")
		cfg.Renewed, cfg.LeaseTTL = test.renewed, test.ttl
		c := New(cfg)
		if from, ttl := c.Renewed(); !from.Equal(test.from) || ttl != test.want {
			t.Errorf("%s: the lease counts from %s for %s, want %s for %s", test.name, from, ttl, test.from, test.want)
		}
	}
	cfg := ordered("a")
	cfg.Renewed, cfg.LeaseTTL, cfg.Memory.Lease = renewed, 11*second, 7
	c := New(cfg)
	c.Step(renewed.Add(second), nil)
	c.Step(renewed.Add(2*second), Heard{
		1,
		&message{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{Lease: 7}}},
	})
	if from, ttl := c.Renewed(); !from.Equal(renewed.Add(second)) || ttl != 17*second {
		t.Errorf("welcomed with the same lease it counts from %s for %s, want %s, when the stream was opened, for 17s",
			from, ttl, renewed.Add(second))
	}
}

// Memory is copied on its way in and out: it shares neither the caller's list nor one in an order.
func TestMemoryIsNotShared(t *testing.T) {
	cfg := ordered("z")
	cfg.Memory.Replicas = []string{"a", "b"}
	c := New(cfg)
	cfg.Memory.Replicas[0] = "x"
	for range 2 {
		r := c.remember().(Remember)
		if !slices.Equal(r.Memory.Replicas, []string{"a", "b"}) {
			t.Fatalf("remembers %v, want a and b", r.Memory.Replicas)
		}
		r.Memory.Replicas[0] = "x"
	}
}

// An agent that has room promised by several replicas goes to the soonest of them, and never later
// than the longest wait.
//
// proves DET-14, SAFE-1
func TestNoRoom(t *testing.T) {
	for _, test := range []struct {
		name   string
		random float64
		after  []time.Duration // the answers of the replicas in turn, at time 0
		want   time.Duration   // when the agent comes back
		to     string
		keep   []bool // whether each connection is kept
	}{
		{"without jitter: at the given time", 0, []time.Duration{8 * second}, 8 * second, "a", []bool{true}},
		{
			"with jitter: up to an eighth later", 0.5,
			[]time.Duration{8 * second},
			8*second + 500*time.Millisecond, "a",
			[]bool{true},
		},
		{
			"jitter never leads beyond the longest wait", 0.5,
			[]time.Duration{29 * second},
			29*second + 500*time.Millisecond, "a",
			[]bool{true},
		},
		{"the longest wait itself", 0.5, []time.Duration{30 * second}, 30 * second, "a", []bool{true}},
		{
			"more than the longest wait: between half of it and all", 0.5,
			[]time.Duration{31 * second},
			22500 * time.Millisecond, "a",
			[]bool{true},
		},
		{"the first is the soonest", 0, []time.Duration{2 * second, 8 * second}, 2 * second, "a", []bool{true, false}},
		{"the second is the soonest", 0, []time.Duration{8 * second, 2 * second}, 2 * second, "b", []bool{true, true}},
		{
			"both say the same: the first", 0,
			[]time.Duration{8 * second, 8 * second},
			8 * second, "a",
			[]bool{true, false},
		},
		{
			"the third is the soonest", 0,
			[]time.Duration{8 * second, 7 * second, 2 * second},
			2 * second, "c",
			[]bool{true, true, true},
		},
		{
			"the second of three is the latest", 0,
			[]time.Duration{2 * second, 8 * second, second},
			second, "c",
			[]bool{true, false, true},
		},
		{
			"the second of three is the soonest", 0,
			[]time.Duration{8 * second, 2 * second, 7 * second},
			2 * second, "b",
			[]bool{true, true, false},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			names := []string{"a", "b", "c"}[:len(test.after)]
			cfg := ordered(names...)
			c := New(cfg)
			c.cfg.Rand = func() float64 { return test.random }
			now := time.Unix(0, 0)
			c.Step(now, nil)
			for i, after := range test.after {
				for _, o := range c.Step(now, crowded(Stream(i+1), after)) {
					if o, ok := o.(Close); ok && o.Keep != test.keep[i] {
						t.Errorf("the connection to %s is kept: %t, want %t", names[i], o.Keep, test.keep[i])
					}
				}
			}
			if got := c.Wake().Sub(now); got != test.want {
				t.Errorf("comes back after %s, want %s", got, test.want)
			}
			for _, o := range c.Step(c.Wake(), nil) {
				if o, ok := o.(Open); ok && o.Address != test.to {
					t.Errorf("comes back to %s, want %s", o.Address, test.to)
				}
			}
			if c.trying == nil {
				t.Error("does not try at that time")
			}
		})
	}
}

// A replica's promise of room is over once another one has welcomed the agent.
func TestAWelcomeEndsTheBooking(t *testing.T) {
	c := New(ordered("a", "b"))
	c.cfg.Rand = func() float64 { return 0 }
	now := time.Unix(0, 0)
	c.Step(now, nil)
	c.Step(now, crowded(1, second))
	c.Step(now, welcome(2, 7, "a", "b"))
	c.Step(now, ack(2, 1, 7))
	now = now.Add(3 * second)
	c.Step(now, ended(2)) // asks a at once
	c.Step(now, crowded(3, 20*second))
	if got := c.Wake().Sub(now); c.trying != nil || got != 20*second {
		t.Errorf("comes back after %s, want 20s: the old promise still counts", got)
	}
}

// If the promised time has passed because another replica took long to refuse, the replica is asked
// at once.
func TestAPromiseOfRoomThatIsDue(t *testing.T) {
	c := New(ordered("a", "b"))
	c.cfg.Rand = func() float64 { return 0 }
	now := time.Unix(0, 0)
	c.Step(now, nil)
	c.Step(now, crowded(1, second))
	now = now.Add(3 * second)
	if got := words(c.Step(now, crowded(2, 20*second))); got != "close 2 cut, open 3 a epoch 3 lease 0" {
		t.Errorf("ordered %q, want to ask a again at once", got)
	}
	if got := c.Wake().Sub(now); got != 5*second {
		t.Errorf("awaits an answer for %s, want 5s from now on", got)
	}
}

// Of a silent stream only so many reports are remembered; an acknowledgement of a later one counts
// from the latest that is.
//
// proves SAFE-9
func TestUnacknowledgedReportsAreBounded(t *testing.T) {
	c := New(ordered("a"))
	begin := time.Unix(0, 0)
	c.Step(begin, nil)
	c.Step(begin, welcome(1, 7, "a"))
	now := begin
	for range 2 * maxUnacked {
		now = now.Add(time.Millisecond)
		c.Step(now, Changed{})
	}
	if got := len(c.serving.unacked); got != maxUnacked {
		t.Errorf("%d reports are remembered, want %d", got, maxUnacked)
	}
	c.Step(now, ack(1, 2*maxUnacked+1, 7))
	// The welcome's report is the first, so the last remembered one was sent maxUnacked-1 changes
	// later.
	if from, _ := c.Renewed(); from.Sub(begin) != (maxUnacked-1)*time.Millisecond {
		t.Errorf("the lease counts from %s, want %s", from.Sub(begin), (maxUnacked-1)*time.Millisecond)
	}
}

// Replicas are asked in an order of the agent's own, which chance decides, without blanks and
// doubles.
//
// proves DET-14
func TestRotation(t *testing.T) {
	for random, want := range map[float64][]string{
		0:         {"b", "c", "d", "a"},
		0.5:       {"a", "d", "b", "c"},
		0.9999999: {"a", "b", "c", "d"},
	} {
		got := shuffled([]string{"a", "", "b", "a", "c", "x", "d"}, []string{"x"}, func() float64 { return random })
		if !slices.Equal(got, want) {
			t.Errorf("with chance %v: %v, want %v", random, got, want)
		}
	}
	last := func() float64 { return 0.9999999 }
	r := newRotation([]string{"a", "b"}, []string{"b", "c", "d"}, last)
	for _, test := range []struct {
		last, avoid string
		wide        bool
		want        string
	}{
		{"", "", false, "a"},
		{"a", "", false, "b"},
		{"b", "", false, "a"},
		{"b", "", true, "c"},
		{"c", "", true, "d"},
		{"d", "", true, "a"},
		{"a", "b", false, "a"},
		{"a", "b", true, "c"},
		{"unknown", "", false, "a"},
		{"c", "", false, "a"},
	} {
		r.last = test.last
		if got, ok := r.after(test.avoid, test.wide); got != test.want || !ok {
			t.Errorf("after %q, avoiding %q, wide %t: %q %t, want %q", test.last, test.avoid, test.wide, got, ok,
				test.want)
		}
	}
	for _, test := range []struct{ address, want string }{
		{"a", "d"},
		{"b", "a"},
		{"c", "b"},
		{"d", "c"},
		{"unknown", "last"},
	} {
		r.last = "last"
		if got := before(r, test.address); got != test.want {
			t.Errorf("before %s: %s, want %s", test.address, got, test.want)
		}
	}
	one := newRotation([]string{"a"}, nil, last)
	if got, ok := one.after("a", true); ok {
		t.Errorf("the only replica is to be avoided, and %q is offered", got)
	}
	for _, list := range [][]string{{"a"}, {"a", "b", "c"}, {"a", "c"}, nil} {
		if r.same(list) {
			t.Errorf("%v counts as the same as %v", list, r.known)
		}
	}
	if !r.same([]string{"b", "a"}) {
		t.Error("the same replicas in another order count as others")
	}
}

// A process counts as frozen if it wakes later than by half an interval, and by at least a second:
// a busy machine causes shorter delays.
//
// proves DET-14
func TestWhatCountsAsFrozen(t *testing.T) {
	for interval, most := range map[time.Duration]time.Duration{5 * second: 2500 * time.Millisecond, second: second} {
		for late, want := range map[time.Duration]bool{most: false, most + 1: true} {
			cfg := ordered("a")
			cfg.ReportInterval = interval
			c := New(cfg)
			now := time.Unix(0, 0)
			c.Step(now, nil)
			c.Step(now,
				Heard{1, &message{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{Lease: 7}}}})
			c.Step(now, ack(1, 1, 7))
			var frozen bool
			for _, o := range c.Step(c.Wake().Add(late), nil) {
				if n, ok := o.(Note); ok && n.Warn && n.Text == "agent did not run for a while" {
					frozen = true
				}
			}
			if frozen != want {
				t.Errorf("reports every %s, woken %s late: frozen %t, want %t", interval, late, frozen, want)
			}
		}
	}
}

// What an agent that was frozen waited for gets a fresh, short time; what it did not wait for gets
// none.
//
// proves DET-14
func TestWaitsOfAFrozenAgent(t *testing.T) {
	begin := time.Unix(0, 0)
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	welcomedByA := func() *Session {
		c := New(ordered("a", "b"))
		c.Step(begin, nil)
		c.Step(begin, welcome(1, 7, "a", "b"))
		return c
	}

	c := New(ordered("a", "b"))
	c.Step(begin, nil)
	if got := words(c.Step(at(time.Minute), nil)); got != "" || !c.Wake().Equal(at(time.Minute+thawGrace)) {
		t.Errorf("an answer was awaited: ordered %q, and wakes at %s, want nothing until a second later", got,
			c.Wake().Sub(begin))
	}

	c = welcomedByA()
	c.Step(begin, ack(1, 1, 7))
	if got := words(c.Step(at(time.Minute), nil)); got != "report 1.2" || !c.Wake().Equal(at(time.Minute+interval)) {
		t.Errorf("no answer was awaited: ordered %q, and wakes at %s, want a report and the next after an interval",
			got, c.Wake().Sub(begin))
	}

	c = welcomedByA()
	c.Step(at(4*second), Changed{}) // the next report is due at 9s, the answer to the first one at 5s
	if got := words(c.Step(at(8*second), nil)); got != "report 1.3" {
		t.Errorf("the next report was not due: ordered %q, want one at once all the same", got)
	}

	// b is asked at 4s and must answer by 9s; the report of 4s is overdue at 9s, too, the report of
	// 0s at 5s.
	c = welcomedByA()
	c.Step(at(4*second), ack(1, 1, 7))
	c.Step(at(4*second), move(1))
	c.Step(at(4*second), Changed{})
	if got := words(c.Step(at(4500*time.Millisecond), nil)); got != "" {
		t.Errorf("ordered %q before anything was due", got)
	}
	c.cfg.ReportInterval = second // so that it oversleeps before b is due
	c.reportAt, c.wake = at(5*second), at(5*second)
	if got := words(c.Step(at(7500*time.Millisecond), nil)); got != "report 1.3" || !c.trying.due.Equal(at(9*second)) {
		t.Errorf("b had a second and a half left: ordered %q, and b has to answer by %s, want 9s", got,
			c.trying.due.Sub(begin))
	}
}
