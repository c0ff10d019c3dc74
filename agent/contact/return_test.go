package contact

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// An agent whose replicas were all away for an hour is back at the one that returned within the longest wait and one round
// through the dead addresses: so long a leader waits before it judges anybody lost.
//
// proves DET-14, SAFE-1
func TestIsBackWithinTheLongestWaitAndOneRound(t *testing.T) {
	const longest, answer = 30 * time.Second, 5 * time.Second
	for name, world := range map[string]struct {
		known, bootstrap []string
		deadFor          time.Duration // how long a dead address takes to fail
		most             time.Duration
	}{
		"one replica":                         {[]string{"a"}, []string{"a"}, time.Millisecond, longest + time.Second},
		"two, one refuses":                    {[]string{"a", "b"}, []string{"a", "b"}, time.Millisecond, longest + time.Second},
		"three, two refuse":                   {[]string{"a", "b", "c"}, []string{"a", "b", "c"}, time.Millisecond, longest + time.Second},
		"three, two do not answer":            {[]string{"a", "b", "c"}, []string{"a", "b", "c"}, answer, longest + 2*answer},
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
			c.Step(now, Heard{Stream: open.Stream, Message: &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{}}}})
			return now.Sub(back)
		default:
			now = now.Add(time.Millisecond)
			orders = c.Step(now, Ended{Stream: open.Stream, Err: errors.New("connection refused")})
		}
	}
}
