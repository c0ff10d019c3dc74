package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/agent/protocol"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

const (
	second   = time.Second
	interval = 5 * second
)

// step lets time pass, then gives an event, and says what must be ordered, in words.
type step struct {
	after time.Duration
	ev    Event
	want  string
}

type message = protocol.GatewayMessage

func welcome(s Stream, lease int64, replicas ...string) Event {
	return Heard{s, &message{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{
		Lease: lease, Coordinators: replicas, ReportInterval: durationpb.New(interval),
		LeaseTtl:     durationpb.New(17 * second),
		ReconnectMin: durationpb.New(second), ReconnectMax: durationpb.New(30 * second),
	}}}}
}

func refused(s Stream, why protocol.Refused_Reason, stored uint64) Event {
	return Heard{s, &message{Kind: &protocol.GatewayMessage_Refused{Refused: &protocol.Refused{
		Reason:      why,
		StoredEpoch: stored, Message: "the reason",
	}}}}
}

// retired returns a refusal that names the record that ended the instance.
func retired(s Stream) Event {
	return Heard{s, &message{Kind: &protocol.GatewayMessage_Refused{Refused: &protocol.Refused{
		Reason: protocol.Refused_RETIRED, Revision: 12, Phase: protocol.PhaseDeleting,
	}}}}
}

// unrecorded returns the refusal of an agent without a record.
func unrecorded(s Stream) Event {
	return Heard{s, &message{Kind: &protocol.GatewayMessage_Refused{Refused: &protocol.Refused{
		Reason: protocol.Refused_UNKNOWN, After: durationpb.New(20 * second),
	}}}}
}

func crowded(s Stream, after time.Duration) Event {
	return Heard{s, &message{Kind: &protocol.GatewayMessage_Refused{Refused: &protocol.Refused{
		Reason: protocol.Refused_UNAVAILABLE, After: durationpb.New(after),
	}}}}
}

func waiting(s Stream, most time.Duration) Event {
	return Heard{
		s,
		&message{Kind: &protocol.GatewayMessage_Waiting{Waiting: &protocol.Waiting{Most: durationpb.New(most)}}},
	}
}

func ack(s Stream, sequence uint64, lease int64) Event {
	return Heard{s, &message{Kind: &protocol.GatewayMessage_Ack{Ack: &protocol.Ack{Sequence: sequence, Lease: lease}}}}
}

func nack(s Stream, sequence uint64) Event {
	return Heard{s, &message{Kind: &protocol.GatewayMessage_Nack{Nack: &protocol.Nack{
		Sequence: sequence,
		Message:  "not written",
	}}}}
}

func move(s Stream) Event {
	return Heard{s, &message{Kind: &protocol.GatewayMessage_Move{Move: &protocol.Move{Reason: "shutting down"}}}}
}

func coordinators(s Stream, list ...string) Event {
	return Heard{
		s,
		&message{Kind: &protocol.GatewayMessage_Coordinators{Coordinators: &protocol.Coordinators{Addresses: list}}},
	}
}

func ended(s Stream) Event { return Ended{Stream: s, Err: errors.New("reset")} }

// words renders orders without notes, and without memories unless they matter: a memory precedes
// each open and has the same epoch.
func words(orders []Order) string {
	var out []string
	for _, o := range orders {
		switch o := o.(type) {
		case Open:
			out = append(out, fmt.Sprintf("open %d %s epoch %d lease %d", o.Stream, o.Address, o.Epoch, o.Lease))
		case Report:
			out = append(out, fmt.Sprintf("report %d.%d", o.Stream, o.Sequence))
		case Close:
			how := "cut"
			if o.Goodbye != protocol.Goodbye_KIND_UNSPECIFIED {
				how = o.Goodbye.String()
			}
			if o.Keep {
				how = "and keep"
			}
			out = append(out, fmt.Sprintf("close %d %s", o.Stream, how))
		case Warm:
			out = append(out, "warm "+o.Address)
		case Workload:
			out = append(out, map[bool]string{true: "run workload", false: "stop workload"}[o.Run])
		}
	}
	return strings.Join(out, ", ")
}

// tolerance: jitter is a little less than its ceiling.
const tolerance = time.Millisecond

// ordered begins with replicas that are asked in this order, and always waits for the longest time
// that jitter allows.
func ordered(replicas ...string) Config {
	return Config{
		Bootstrap: replicas, ReportInterval: interval, ReconnectMin: second, ReconnectMax: 30 * second,
		AnswerTimeout: 5 * second,
		Rand:          func() float64 { return 0.9999999 },
	}
}

func play(t *testing.T, c *Session, steps []step) time.Time {
	t.Helper()
	now := time.Now()
	for i, s := range steps {
		// Time passes as it does for the shell: the wake-ups in between are answered, and order
		// nothing.
		until := now.Add(s.after)
		for s.after > 0 && !c.Wake().IsZero() && c.Wake().Before(until.Add(-tolerance)) {
			now = c.Wake()
			if got := words(c.Step(now, nil)); got != "" {
				t.Fatalf("step %d: %s before its time ordered %q", i, until.Sub(now), got)
			}
			if !c.Wake().After(now) {
				t.Fatalf("step %d: asked to be woken at once, for ever", i)
			}
		}
		now = until
		if got := words(c.Step(now, s.ev)); got != s.want {
			t.Fatalf("step %d (%T after %s): ordered %q, want %q", i, s.ev, s.after, got, s.want)
		}
	}
	return now
}

// proves DET-14
func TestBackOffHasFullJitter(t *testing.T) {
	random := 0.0
	cfg := ordered("a")
	cfg.Rand = func() float64 { return random }
	c := New(cfg)
	now := time.Now()
	c.Step(now, nil)
	c.Step(now, Ended{Stream: 1}) // once more at once
	c.Step(now, Ended{Stream: 2}) // no wait: jitter began at zero
	for i, wait := range []struct {
		random float64
		want   time.Duration
	}{{0.125, 250 * time.Millisecond}, {0.75, 3 * second}, {0.25, 2 * second}, {0.5, 8 * second}, {0.5, 15 * second}} {
		random = wait.random
		c.Step(now, Ended{Stream: Stream(i + 3)})
		if got := c.Wake().Sub(now); got != wait.want {
			t.Errorf("failure %d with jitter %v: waits %s, want %s", i+3, wait.random, got, wait.want)
		}
		now = c.Wake()
		c.Step(now, nil)
	}
}

// proves SAFE-9
func TestLeaseIsCountedFromBeforeTheReportWasSent(t *testing.T) {
	c := New(ordered("a"))
	if !leaseEnds(c).IsZero() {
		t.Errorf("lease ends %v before there was one", leaseEnds(c))
	}
	hello := time.Now()
	c.Step(hello, nil)
	first := hello.Add(second)
	c.Step(first, welcome(1, 7, "a"))
	if got := leaseEnds(c).Sub(hello); got != 17*second {
		t.Errorf("after the welcome the lease ends %s after the hello, want 17s", got)
	}
	c.Step(first.Add(3*second), ack(1, 1, 7))
	if got := leaseEnds(c).Sub(first); got != 17*second {
		t.Errorf("after a late acknowledgement the lease ends %s after the report, want 17s", got)
	}
	second := c.Wake()
	c.Step(second, nil)
	c.Step(second.Add(interval/2), nack(1, 2))
	if got := leaseEnds(c).Sub(first); got != 17*time.Second {
		t.Errorf("a report that renewed nothing moved the end of the lease to %s", got)
	}
}

// proves DET-2
func TestWelcomeWithoutDurationsKeepsWhatIsKnown(t *testing.T) {
	cfg := ordered("a")
	cfg.ReportInterval = 10 * second
	c := New(cfg)
	now := time.Now()
	c.Step(now, nil)
	c.Step(now, Heard{1, &message{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{Lease: 7}}}})
	if got := leaseEnds(c).Sub(now); got != 32*second {
		t.Errorf("lease ends after %s, want the default for reports every 10s: 32s", got)
	}
	if got := c.Wake().Sub(now); got != 10*second {
		t.Errorf("next report after %s, want 10s", got)
	}
	c.Step(now, Heard{1, &message{Kind: &protocol.GatewayMessage_Ack{Ack: &protocol.Ack{Sequence: 1}}}})
	c.Step(now, ended(1))
	if c.trying == nil || c.trying.address != "a" {
		t.Errorf("tries %+v after a list without replicas, want a", c.trying)
	}
}

// The welcome's interval counts, and changes with the next welcome.
//
// proves DET-1, DET-2
func TestWelcomeSetsThePace(t *testing.T) {
	cfg := ordered("a")
	cfg.ReportInterval = time.Hour
	c := New(cfg)
	now := time.Now()
	c.Step(now, nil)
	c.Step(now, welcome(1, 7, "a"))
	if got := c.Wake().Sub(now); got != interval {
		t.Errorf("next report after %s, want %s", got, interval)
	}
}

// An agent that was frozen must not blame the replica for the time that it slept, and must find out
// soon whether the stream still is one.
//
// proves DET-14
func TestFrozenAndThawed(t *testing.T) {
	c := New(ordered("a", "b"))
	now := play(t, c, append(joined("b"), step{5 * second, nil, "report 1.2"}))
	thawed := now.Add(time.Hour)
	if got := words(c.Step(thawed, nil)); got != "report 1.3" {
		t.Fatalf("on waking it ordered %q, want a report at once", got)
	}
	if got := c.Wake().Sub(thawed); got != thawGrace {
		t.Errorf("looks again after %s, want %s", got, thawGrace)
	}
	if got := words(c.Step(thawed.Add(thawGrace), nil)); got != "open 2 b epoch 2 lease 7" {
		t.Errorf("still no answer: ordered %q, want another replica", got)
	}

	c = New(ordered("a", "b"))
	now = play(t, c, append(joined("b"), step{5 * second, nil, "report 1.2"}))
	if got := words(c.Step(now.Add(time.Hour), ended(1))); got != "open 2 b epoch 2 lease 7" {
		t.Errorf("stream was gone: ordered %q, want another replica at once", got)
	}

	c = New(ordered("a", "b"))
	now = play(t, c, append(joined("b"), step{5 * second, nil, "report 1.2"}))
	if got := words(c.Step(now.Add(time.Hour), ack(1, 2, 7))); got != "report 1.3" {
		t.Errorf("the answer had been waiting: ordered %q, want the next report", got)
	}
}

// What was sent before the machine slept renews its lease from that time on, by whatever clock.
//
// proves SAFE-9
func TestTheTimeThatTheMachineSleptCountsForItsLease(t *testing.T) {
	renewed := func(c *Session) time.Time {
		from, _ := c.Renewed()
		return from
	}
	c := New(ordered("a", "b"))
	began := time.Now()
	c.Step(began, nil)
	c.Slept(time.Minute)
	now := began.Add(second)
	c.Step(now, welcome(1, 7, "a"))
	if got := now.Sub(renewed(c)); got != second+time.Minute {
		t.Errorf("a lease that was asked for before the machine slept is %s old", got)
	}
	c.Step(now, ack(1, 1, 7))
	if got := now.Sub(renewed(c)); got != 0 {
		t.Errorf("the lease is renewed, and is %s old", got)
	}
	sent := now.Add(interval)
	c.Step(sent, nil)
	c.Slept(time.Minute)
	if got := sent.Sub(renewed(c)); got != interval+time.Minute {
		t.Errorf("the lease is %s old", got)
	}
	now = sent.Add(second)
	c.Step(now, ack(1, 2, 7))
	if got := now.Sub(renewed(c)); got != second+time.Minute {
		t.Errorf("the report was sent before the machine slept, and the lease is %s old", got)
	}
}

// proves DET-18
func TestEveryEpochIsRememberedBeforeItIsUsed(t *testing.T) {
	c := New(ordered("a", "b"))
	now := time.Now()
	var remembered uint64
	look := func(orders []Order) {
		for _, o := range orders {
			switch o := o.(type) {
			case Remember:
				if o.Memory.Epoch < remembered {
					t.Errorf("epoch fell from %d to %d", remembered, o.Memory.Epoch)
				}
				remembered = o.Memory.Epoch
			case Open:
				if o.Epoch != remembered {
					t.Errorf("stream %d opened with epoch %d while %d is remembered", o.Stream, o.Epoch, remembered)
				}
			}
		}
	}
	look(c.Step(now, nil))
	for i := range 20 {
		look(c.Step(now, Ended{Stream: Stream(i + 1)}))
		now = c.Wake()
		look(c.Step(now, nil))
	}
	if remembered < 20 {
		t.Errorf("remembered epoch %d after 20 failures", remembered)
	}
}

// proves DET-8
func TestLeave(t *testing.T) {
	c := New(ordered("a", "b"))
	now := play(t, c, append(joined("b"), step{second, move(1), "open 2 b epoch 2 lease 7"}))
	if got := words(c.Leave(protocol.Goodbye_SHUTDOWN, "")); got != "close 2 cut, close 1 SHUTDOWN" {
		t.Errorf("leaving ordered %q", got)
	}
	if got := words(c.Step(now.Add(time.Hour), ended(1))); got != "" || !c.Wake().IsZero() {
		t.Errorf("after leaving it ordered %q and wakes at %v", got, c.Wake())
	}
}

// For any events in any order, the agent never stops trying, never loops, has at most two streams,
// and never uses an epoch twice.
//
// proves DET-14, DET-18
func TestAlwaysOnItsWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := ordered("a", "b", "c")
		cfg.Rand = func() float64 { return rapid.Float64Range(0, 0.999).Draw(t, "random") }
		c := New(cfg)
		now := time.Now()
		open := map[Stream]bool{}
		var epoch uint64
		take := func(orders []Order) {
			for _, o := range orders {
				switch o := o.(type) {
				case Open:
					open[o.Stream] = true
					if o.Epoch <= epoch {
						t.Fatalf("epoch %d after %d", o.Epoch, epoch)
					}
					epoch = o.Epoch
				case Close:
					delete(open, o.Stream)
				case Report:
					if !open[o.Stream] {
						t.Fatalf("report on stream %d, which is closed", o.Stream)
					}
				}
			}
			if len(open) > 2 {
				t.Fatalf("%d streams are open", len(open))
			}
			if c.Wake().IsZero() {
				t.Fatal("sleeps for ever")
			}
			if d := c.Wake().Sub(now); d > cfg.ReconnectMax && d > 17*second {
				t.Fatalf("sleeps for %s", d)
			}
		}
		take(c.Step(now, nil))
		for range 60 {
			s := Stream(rapid.IntRange(1, int(c.streams)).Draw(t, "stream"))
			var ev Event
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				now = c.Wake()
			case 1:
				now = now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "seconds")) * second)
			case 2:
				ev = ended(s)
				delete(open, s)
			case 3, 4:
				ev = welcome(s, 7, "a", "b", "c")
			case 5:
				ev = ack(s, rapid.Uint64Range(0, 30).Draw(t, "sequence"), 7)
			case 6:
				ev = nack(s, rapid.Uint64Range(0, 30).Draw(t, "sequence"))
			case 7:
				ev = move(s)
			case 8:
				ev = refused(s, protocol.Refused_Reason(rapid.IntRange(0, 11).Draw(t, "reason")),
					rapid.Uint64Range(0, 99).Draw(t, "stored"))
			case 9:
				ev = coordinators(s, rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ""}), 0, 3).Draw(t,
					"list")...)
			}
			take(c.Step(now, ev))
			if !c.Wake().After(now) {
				t.Fatal("asks to be woken at once")
			}
		}
	})
}

// leaseEnds returns the earliest time at which the lease can end; zero while there never was one.
func leaseEnds(c *Session) time.Time {
	from, ttl := c.Renewed()
	if from.IsZero() {
		return time.Time{}
	}
	return from.Add(ttl)
}

// What is logged already is not noted again; the next replica is asked all the same.
func TestWhatIsReportedAlreadyIsNotNoted(t *testing.T) {
	for _, told := range []bool{false, true} {
		c := New(ordered("a", "b"))
		now := time.Now()
		c.Step(now, nil)
		orders := c.Step(now, Ended{Stream: 1, Err: errors.New("not joined"), Logged: told})
		notes := slices.ContainsFunc(orders, func(o Order) bool { _, ok := o.(Note); return ok })
		if notes == told || words(orders) != "open 2 b epoch 2 lease 0" {
			t.Errorf("told %t: ordered %s, with a note %t", told, words(orders), notes)
		}
	}
}
