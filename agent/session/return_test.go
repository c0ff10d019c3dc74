package session

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// An agent whose replicas were all away for an hour is back at the one that returned within the
// longest wait and one round through the dead addresses: a leader waits that long before it judges
// an instance lost.
//
// proves DET-14, SAFE-1
func TestIsBackWithinTheLongestWaitAndOneRound(t *testing.T) {
	const longest, answer = 30 * time.Second, 5 * time.Second
	for name, world := range map[string]struct {
		known, bootstrap []string
		deadFor          time.Duration // how long a dead address takes to fail
		most             time.Duration
	}{
		"one replica": {[]string{"a"}, []string{"a"}, time.Millisecond, longest + time.Second},
		"two, one refuses": {
			[]string{"a", "b"},
			[]string{"a", "b"},
			time.Millisecond,
			longest + time.Second,
		},
		"three, two refuse": {
			[]string{"a", "b", "c"},
			[]string{"a", "b", "c"},
			time.Millisecond,
			longest + time.Second,
		},
		"three, two do not answer": {
			[]string{"a", "b", "c"},
			[]string{"a", "b", "c"},
			answer,
			longest + 2*answer,
		},
		"two, and two old ones, three silent": {[]string{"a", "b"}, []string{"x", "y"}, answer, longest + 3*answer},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(1000) {
				if took := timeToReturn(world.known, world.bootstrap, world.deadFor, seed); took > world.most {
					t.Fatalf("seed %d: back %s after the replica returned, want at most %s", seed, took, world.most)
				}
			}
		})
	}
}

// timeToReturn plays an agent until replica a, which returns after an hour and some, welcomes it.
func timeToReturn(known, bootstrap []string, deadFor time.Duration, seed uint64) time.Duration {
	random := rand.New(rand.NewPCG(seed, 7))
	now := time.Unix(0, 0)
	c := New(Config{Bootstrap: bootstrap, Memory: Memory{Epoch: 5, Replicas: known}, Rand: random.Float64})
	back := now.Add(time.Hour + time.Duration(random.Float64()*float64(time.Minute)))
	orders := c.Step(now, nil)
	for {
		var open *Open
		for _, o := range orders {
			if o, ok := o.(Open); ok {
				open = &o
			}
		}
		switch {
		case open == nil || open.Address != "a" && deadFor >= 5*time.Second:
			now = c.Wake()
			orders = c.Step(now, nil)
		case open.Address == "a" && !now.Before(back):
			c.Step(now, Heard{
				Stream:  open.Stream,
				Message: &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{}}},
			})
			return now.Sub(back)
		default:
			now = now.Add(time.Millisecond)
			orders = c.Step(now, Ended{Stream: open.Stream, Err: errors.New("connection refused")})
		}
	}
}

// While an agent looks for another replica, reports may be acknowledged. A slow welcome does not
// make its lease older, as long as the lease is the same: otherwise the agent could fence itself
// although its lease was renewed all the time.
//
// proves SAFE-9
func TestAWelcomeMakesNoLeaseOlder(t *testing.T) {
	for lease, want := range map[int64]time.Duration{
		7: 3 * second, // when the report was sent that was acknowledged last
		8: 0,          // when the stream was opened: no replica has renewed this lease since
	} {
		start := time.Now()
		c := New(ordered("a", "b"))
		c.Step(start, nil)
		c.Step(start, welcome(1, 7, "a", "b"))
		opened := start.Add(interval)
		c.Step(opened, move(1)) // it opens the second stream, and sends its second report
		later := opened.Add(3 * second)
		c.Step(later, Changed{})
		c.Step(later, ack(1, 3, 7))
		c.Step(later, welcome(2, lease, "a", "b"))
		from, _ := c.Renewed()
		if got := from.Sub(opened); got != want {
			t.Errorf("welcomed with lease %d, it counts from %s after the stream was opened, want %s", lease, got, want)
		}
	}
}

// A welcome without a lease grants a new one: it counts from when the stream was opened, regardless
// of what the previous stream had acknowledged.
//
// proves SAFE-9
func TestAWelcomeWithoutALeaseCountsFromItsStream(t *testing.T) {
	start := time.Now()
	c := New(ordered("a", "b"))
	c.Step(start, nil)
	c.Step(start, welcome(1, 0, "a", "b"))
	opened := start.Add(interval)
	c.Step(opened, move(1))
	later := opened.Add(3 * second)
	c.Step(later, Changed{})
	c.Step(later, ack(1, 3, 0))
	c.Step(later, welcome(2, 0, "a", "b"))
	if from, _ := c.Renewed(); !from.Equal(opened) {
		t.Errorf("it counts from %s after the stream was opened, want 0s", from.Sub(opened))
	}
}
