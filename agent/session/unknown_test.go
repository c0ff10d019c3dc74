package session

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/agent/protocol"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// For any answers of replicas in any order: only a refusal that names a record at or past deleting
// stops the workload, and only a welcome takes that back.
//
// proves SAFE-14, DET-18
func TestOnlyARecordStopsTheWorkload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := ordered("a", "b", "c")
		cfg.Rand = func() float64 { return rapid.Float64Range(0, 0.999).Draw(t, "random") }
		c := New(cfg)
		now := time.Now()
		stopped := false
		c.Step(now, nil)
		for range 60 {
			s := Stream(rapid.IntRange(1, int(c.streams)).Draw(t, "stream"))
			var ev Event
			evidence := false
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0:
				now = c.Wake()
			case 1:
				ev = ended(s)
			case 2:
				ev = welcome(s, 7, "a", "b", "c")
			case 3:
				ev = nack(s, rapid.Uint64Range(0, 30).Draw(t, "sequence"))
			case 4, 5:
				r := &protocol.Refused{
					Reason:   protocol.Refused_Reason(rapid.IntRange(0, 11).Draw(t, "reason")),
					Revision: rapid.Int64Range(-1, 2).Draw(t, "revision"),
					Phase: rapid.SampledFrom([]string{
						"", "deleting", "gone", "running", "draining",
						"DELETING",
					}).Draw(t, "phase"),
				}
				evidence = r.GetReason() == protocol.Refused_RETIRED && r.GetRevision() > 0 &&
					(r.GetPhase() == "deleting" || r.GetPhase() == "gone")
				ev = Heard{s, &message{Kind: &protocol.GatewayMessage_Refused{Refused: r}}}
			}
			for _, o := range c.Step(now, ev) {
				w, ok := o.(Workload)
				switch {
				case !ok:
				case !w.Run && !evidence:
					t.Fatalf("%v stopped the workload", ev)
				case w.Run == !stopped:
					t.Fatalf("ordered run=%t twice", w.Run)
				default:
					stopped = !w.Run
				}
			}
			if c.memory.Condemned.Holds() != stopped {
				t.Fatalf("remembers %+v, and the workload's being stopped is %t", c.memory.Condemned, stopped)
			}
		}
	})
}

// An agent of an earlier release does not know the reason UNKNOWN. It takes it as this one takes a
// reason of the future: as a replica that cannot serve it now.
//
// proves SAFE-14
func TestAReasonOfTheFutureLeavesTheWorkloadAlone(t *testing.T) {
	const future = protocol.Refused_Reason(1000)
	play(t, New(ordered("a", "b")), append(joined("b"),
		step{second, refused(1, future, 0), "close 1 cut, open 2 b epoch 2 lease 7"},
		step{0, refused(2, future, 0), "close 2 cut"},
		step{second, nil, "open 3 a epoch 3 lease 7"},
	))
}

// An agent without a record never gives up. It logs that once, and makes few new connections: its
// machine may be one of a hundred thousand.
//
// proves SAFE-14
func TestAnAgentWithoutARecordAsksOnAndIsCheap(t *testing.T) {
	cfg := ordered("a", "b", "c")
	c := New(cfg)
	now := time.Now()
	kept, handshakes, notes := "", 0, 0
	asked := map[string]int{}
	var stream Open
	look := func(orders []Order) {
		for _, o := range orders {
			switch o := o.(type) {
			case Close:
				if o.Keep {
					kept = stream.Address
				}
			case Open:
				stream = o
				if asked[o.Address]++; o.Address != kept {
					handshakes++
				}
			case Note:
				notes++
			case Workload:
				t.Fatalf("ordered %+v", o)
			}
		}
	}
	look(c.Step(now, nil))
	const day = 24 * time.Hour
	for end := now.Add(day); now.Before(end); {
		before := stream.Stream
		look(c.Step(now, unrecorded(stream.Stream)))
		for stream.Stream == before {
			now = c.Wake()
			look(c.Step(now, nil))
		}
	}
	hellos := asked["a"] + asked["b"] + asked["c"]
	if hellos < int(day/cfg.ReconnectMax) || hellos > 3*int(day/cfg.ReconnectMax) {
		t.Errorf("asked %d times in a day", hellos)
	}
	if handshakes > hellos/2 {
		t.Errorf("%d of %d hellos took a new connection", handshakes, hellos)
	}
	if least := slices.Min([]int{
		asked["a"], asked["b"],
		asked["c"],
	}); least < int(day/cfg.ReconnectMax)/unknownRound/2 {
		t.Errorf("asked %v", asked)
	}
	if notes != 1 {
		t.Errorf("noted it %d times", notes)
	}
}
