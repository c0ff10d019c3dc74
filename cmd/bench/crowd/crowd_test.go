package crowd_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/store"
)

// worlds are both ways in which agents are connected.
func worlds(t *testing.T, test func(t *testing.T, secured bool, config crowd.Config)) {
	t.Run("shared", func(t *testing.T) { test(t, false, crowd.Config{Shared: 3}) })
	t.Run("own", func(t *testing.T) { test(t, true, crowd.Config{Warm: true}) })
}

// A crowd's agents are, to a coordinator, agents: their instances get to running, and stay.
func TestAgentsOfACrowdAreServed(t *testing.T) {
	worlds(t, func(t *testing.T, secured bool, config crowd.Config) {
		inWorld(t, secured, config, func(w *world) {
			w.start("a")
			w.apply(20)
			w.up(20)
			before := w.crowd.Stats()
			w.pass(2 * time.Minute)
			s := w.crowd.Stats()
			if got := s.Acks - before.Acks; got < 470 || got > 490 {
				t.Errorf("%d reports were acknowledged in 2 minutes, want one of each of 20 every 5s: 480", got)
			}
			if s.Reports-s.Acks > 20 || s.Nacks+s.Dropped+s.NewLeases+s.Reconnects != 0 || len(s.Refused) != 0 {
				t.Errorf("not all is well:\n%s", w.describe())
			}
			if s.Served["a"] != 20 || s.Latency.N != s.Acks || s.Latency.Quantile(1) > 100*time.Millisecond {
				t.Errorf("served %v, %d latencies up to %s", s.Served, s.Latency.N, s.Latency.Quantile(1))
			}
			if n := len(w.instances()); n != 20 || w.crowd.Stats().Agents != 20 {
				t.Errorf("%d instances, %d agents: want 20\n%s", n, s.Agents, w.describe())
			}
			if most := map[bool]int{false: 3, true: 40}[secured]; s.Connections > most {
				t.Errorf("%d connections, want %d at most", s.Connections, most)
			}
		})
	})
}

// Agents that fall silent are detected in time, and no others.
func TestTheSilentAreFoundOut(t *testing.T) {
	for _, how := range []crowd.How{crowd.Mute, crowd.Cut, crowd.Freeze} {
		t.Run(string(how), func(t *testing.T) {
			worlds(t, func(t *testing.T, secured bool, config crowd.Config) {
				inWorld(t, secured, config, func(w *world) {
					w.start("a")
					w.apply(6)
					lost := w.up(6)
					w.pass(time.Minute)
					if err := w.crowd.Silence([]string{lost}, how); err != nil {
						t.Fatal(err)
					}
					w.until(time.Minute, "the silent one is replaced", func() bool { return len(w.instances()) == 7 })
					known := w.crowd.Stats().Silenced[lost]
					if known.How != how || known.Sent.IsZero() || known.Acked.Before(known.Sent) {
						t.Errorf("known of the silent one: %+v", known)
					}
					if took, most := time.Since(known.Acked), 17*time.Second+1500*time.Millisecond; took > most {
						t.Errorf("found out after %s, want %s at most", took, most)
					}
					w.up(6)
					if w.instances()[lost].ID != "" {
						w.until(time.Minute, "the silent one is gone",
							func() bool { return w.instances()[lost].ID == "" })
					}
					if s := w.crowd.Stats(); s.Silent != 0 || s.Agents != 6 || s.NewLeases != 0 {
						t.Errorf("in the end:\n%s", w.describe())
					}
				})
			})
		})
	}
}

// An agent that returns in time is as before.
func TestTheSilentReturn(t *testing.T) {
	for _, how := range []crowd.How{crowd.Mute, crowd.Cut, crowd.Freeze} {
		t.Run(string(how), func(t *testing.T) {
			worlds(t, func(t *testing.T, secured bool, config crowd.Config) {
				inWorld(t, secured, config, func(w *world) {
					w.start("a")
					w.apply(6)
					some := w.up(6)
					if err := w.crowd.Silence([]string{some}, how); err != nil {
						t.Fatal(err)
					}
					w.pass(10 * time.Second)
					if s := w.crowd.Stats(); s.Silent != 1 || s.Registered != 5 || s.Served["a"] != 5 {
						t.Errorf("with one silent:\n%s", w.describe())
					}
					if err := w.crowd.Return([]string{some}); err != nil {
						t.Fatal(err)
					}
					w.until(5*time.Second, "it is back", func() bool { return w.crowd.Stats().Registered == 6 })
					w.pass(time.Minute)
					s := w.crowd.Stats()
					if in := w.instances(); len(in) != 6 || in[some].Phase != store.Running || s.Registered != 6 ||
						s.NewLeases != 0 {
						t.Errorf("after its return:\n%s", w.describe())
					}
				})
			})
		})
	}
}

// When a coordinator is gone the agents go to the next, and it is known how long they were without
// one.
func TestACrowdMovesOver(t *testing.T) {
	worlds(t, func(t *testing.T, secured bool, config crowd.Config) {
		inWorld(t, secured, config, func(w *world) {
			a := w.start("a")
			w.start("b")
			w.apply(20)
			w.up(20)
			w.pass(time.Minute)
			before := w.crowd.Stats()
			if before.Served["a"] == 0 || before.Served["b"] == 0 {
				t.Fatalf("all went to one coordinator:\n%s", w.describe())
			}
			a.store.Faults().Cut()
			w.net.kill("a")
			a.end()
			w.until(10*time.Second, "all are served by b", func() bool { return w.crowd.Stats().Served["b"] == 20 })
			w.pass(2 * time.Minute)
			s := w.crowd.Stats()
			if got := int(s.Outage.N); got != before.Served["a"] || s.Outage.Quantile(1) > 5*time.Second {
				t.Errorf("%d outages of up to %s, want %d short ones", got, s.Outage.Quantile(1), before.Served["a"])
			}
			if len(w.instances()) != 20 || s.NewLeases != 0 || s.Reconnects == 0 {
				t.Errorf("after the move:\n%s", w.describe())
			}
		})
	})
}

// A second connection that was there and is lost is made again, as the first is.
func TestASecondConnectionThatIsLostIsMadeAgain(t *testing.T) {
	inWorld(t, true, crowd.Config{Warm: true}, func(w *world) {
		w.start("a")
		w.start("b")
		w.apply(10)
		w.up(10)
		two := func() bool { return w.crowd.Stats().Connections == 20 && w.crowd.Stats().Registered == 10 }
		w.until(time.Minute, "each has two connections", two)
		w.net.cut("a")
		w.pass(5 * time.Second) // until that is noticed
		w.until(time.Minute, "each has two connections again", two)
	})
}

// A crowd comes at its rate.
func TestTheRateIsKept(t *testing.T) {
	inWorld(t, false, crowd.Config{Shared: 1, Rate: 2}, func(w *world) {
		var all []string
		for range 20 {
			all = append(all, "web-"+string(rune('a'+len(all))))
		}
		if err := w.crowd.Add(all); err != nil {
			t.Fatal(err)
		}
		w.pass(5*time.Second - time.Millisecond)
		if s := w.crowd.Stats(); s.Agents != 20 || s.Begun != 10 {
			t.Errorf("after 5s at 2 a second:\n%s", w.describe())
		}
		if err := w.crowd.Add(all[:1]); err == nil {
			t.Error("an agent was added twice")
		}
		if err := w.crowd.Remove(append(all, "unknown")); !errors.Is(err, crowd.ErrUnknown) {
			t.Errorf("removing one that is not there: %v", err)
		}
		if s := w.crowd.Stats(); s.Agents != 0 || s.Begun != 0 || s.Registered != 0 {
			t.Errorf("after all were removed:\n%s", w.describe())
		}
	})
}
