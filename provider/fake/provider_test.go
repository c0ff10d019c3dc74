package fake_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	for name, config := range map[string]struct {
		fake.Config
		fake.Inside
	}{
		"Plain": {},
		"Slow": {
			fake.Config{
				Consistency: 20 * time.Millisecond, Boot: 10 * time.Millisecond, Call: fake.Exactly(time.Millisecond),
			},
			fake.Inside{Run: func(ctx context.Context, _ fake.Boot) { <-ctx.Done() }},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := fake.NewProvider(config.Config, config.Inside)
			t.Cleanup(p.Close)
			providertest.Run(t, "memory, for tests", providertest.Harness{
				Open: func() (provider.Provider, error) { return p, nil },
				Kill: func(m provider.Machine) error {
					if !p.Crash(m.Instance, "killed by the test") {
						return fmt.Errorf("there is no machine %s to crash", m.Instance)
					}
					return nil
				},
				Remains: func(m provider.Machine) string {
					if p.Life(m.Instance).Exists() {
						return "the machine"
					}
					return ""
				},
				Print: func(m provider.Machine, text string) error { p.Print(m.Instance, text); return nil },
			})
		})
	}
}

func request(instance string) provider.CreateRequest {
	return providertest.Request("s1", instance, "a", provider.Template{})
}

func state(t *testing.T, p provider.Provider, instance string) provider.State {
	t.Helper()
	machines, err := p.List(t.Context(), "s1")
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	for _, m := range machines {
		if m.Instance == instance {
			return m.State
		}
	}
	return ""
}

func TestMachinesBootInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boots := make(chan fake.Boot, 2)
		downs := make(chan string, 2)
		p := fake.NewProvider(fake.Config{Boot: 3 * time.Second}, fake.Inside{
			Run: func(ctx context.Context, b fake.Boot) {
				boots <- b
				<-ctx.Done()
				downs <- b.ID
			},
		})
		defer p.Close()
		m, err := p.Create(t.Context(), request("i1"))
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(3*time.Second - 1)
		synctest.Wait()
		if got := state(t, p, "i1"); got != provider.StateStarting || len(boots) != 0 {
			t.Errorf("before its time: %s, %d boots", got, len(boots))
		}
		<-time.After(1)
		synctest.Wait()
		if got := state(t, p, "i1"); got != provider.StateRunning || len(boots) != 1 {
			t.Fatalf("after its time: %s, %d boots", got, len(boots))
		}
		if b := <-boots; b.ID != m.BootID || b.Number != 1 || b.Bootstrap.Instance != "i1" {
			t.Errorf("booted %+v, created %+v", b, m)
		}
		if !p.Crash("i1", "power") {
			t.Error("nothing to crash")
		}
		if id := <-downs; id != m.BootID {
			t.Errorf("%s went down", id)
		}
		if got := state(t, p, "i1"); got != provider.StateCrashed {
			t.Errorf("after the crash: %s", got)
		}
	})
}

func TestListLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake.NewProvider(fake.Config{Consistency: time.Minute}, fake.Inside{})
		if _, err := p.Create(t.Context(), request("i1")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute - 1)
		if got := state(t, p, "i1"); got != "" {
			t.Errorf("listed too early: %s", got)
		}
		<-time.After(1)
		if got := state(t, p, "i1"); got != provider.StateRunning {
			t.Errorf("not listed: %q", got)
		}
		if err := p.Delete(t.Context(), "s1", "i1"); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute - 1)
		if got := state(t, p, "i1"); got != provider.StateRunning {
			t.Errorf("a List that lags shows %q, want the machine as it was", got)
		}
		<-time.After(1)
		if got := state(t, p, "i1"); got != "" {
			t.Errorf("listed for too long: %s", got)
		}
	})
}

var errLost = errors.New("connection reset")

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault  fake.Fault
		err    error
		took   time.Duration
		at     time.Duration // when the machine is there; 0: never
		repeat error
	}{
		"fails": {fault: fake.Fault{Err: errLost}, err: errLost},
		"answer lost": {
			fault: fake.Fault{Err: errLost, Effect: fake.EffectDone}, err: errLost,
			at: 1,
		},
		"delayed": {
			fault: fake.Fault{Delay: 5 * time.Second}, took: 5 * time.Second,
			at: 5 * time.Second,
		},
		"delayed for too long": {
			fault: fake.Fault{Delay: time.Hour}, err: context.DeadlineExceeded,
			took: 40 * time.Second,
		},
		"hangs": {
			fault: fake.Fault{Hang: true}, err: context.DeadlineExceeded,
			took: 40 * time.Second,
		},
		"hangs and is late": {
			fault: fake.Fault{Hang: true, Effect: fake.EffectLate, Late: time.Minute},
			err:   context.DeadlineExceeded, took: 40 * time.Second, at: 100 * time.Second,
		},
		"another instance": {fault: fake.Fault{Instance: "i2", Err: errLost}, at: 1},
		"another call":     {fault: fake.Fault{Call: fake.CallDelete, Err: errLost}, at: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := fake.NewProvider(fake.Config{}, fake.Inside{})
				defer p.Close()
				f := c.fault
				f.Times = 1
				p.Inject(f)
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), p.Capabilities().CallTimeout)
				defer cancel()
				_, err := p.Create(ctx, request("i1"))
				if !errors.Is(err, c.err) || c.err == nil && err != nil {
					t.Errorf("error %v, want %v", err, c.err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("took %s, want %s", took, c.took)
				}
				<-time.After(time.Hour)
				synctest.Wait()
				life := p.Life("i1")
				if c.at == 0 != (life.Made == 0) {
					t.Fatalf("machines made: %d", life.Made)
				}
				if c.at > 1 && life.MadeAt.Sub(began) != c.at {
					t.Errorf("made after %s, want %s", life.MadeAt.Sub(began), c.at)
				}
				p.Heal()
				if _, err := p.Create(t.Context(), request("i1")); err != nil {
					t.Errorf("repeated: %v", err)
				}
				if life := p.Life("i1"); life.Made != 1 || life.Calls[fake.CallCreate] != 2 {
					t.Errorf("after the repetition: %+v", life)
				}
			})
		})
	}
}

// A Create that takes effect after the Delete makes nothing.
// proves SAFE-8
func TestLateCreateAfterDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake.NewProvider(fake.Config{}, fake.Inside{})
		defer p.Close()
		p.Inject(fake.Fault{
			Call: fake.CallCreate, Err: errLost, Effect: fake.EffectLate,
			Late: time.Minute,
		})
		if _, err := p.Create(t.Context(), request("i1")); !errors.Is(err, errLost) {
			t.Fatal(err)
		}
		if err := p.Delete(t.Context(), "s1", "i1"); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if life := p.Life("i1"); life.Made != 0 || len(p.Existing()) != 0 {
			t.Errorf("the late Create made a machine: %+v", life)
		}
	})
}

func TestListThatLies(t *testing.T) {
	p := fake.NewProvider(fake.Config{}, fake.Inside{})
	for _, id := range []string{"i1", "i2"} {
		if _, err := p.Create(t.Context(), request(id)); err != nil {
			t.Fatal(err)
		}
	}
	heal := p.Inject(fake.Fault{
		Call: fake.CallList,
		Answer: func(all []provider.Machine) []provider.Machine {
			return all[:1]
		},
	})
	if got, err := p.List(t.Context(), "s1"); err != nil || len(got) != 1 {
		t.Errorf("truncated: %v, %v", got, err)
	}
	heal()
	if got, err := p.List(t.Context(), "s1"); err != nil || len(got) != 2 {
		t.Errorf("healed: %v, %v", got, err)
	}
	p.Vanish("i1")
	if got, err := p.List(t.Context(), "s1"); err != nil || len(got) != 1 || got[0].Instance != "i2" {
		t.Errorf("after i1 vanished: %v, %v", got, err)
	}
	if p.Lists() != 3 {
		t.Errorf("%d lists", p.Lists())
	}
}

func TestCapacity(t *testing.T) {
	p := fake.NewProvider(fake.Config{Zones: []fake.Zone{{Name: "a", Room: 1}, {Name: "b", Room: 1}}}, fake.Inside{})
	if _, err := p.Create(t.Context(), request("i1")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), request("i2")); !errors.Is(err, provider.ErrCapacity) {
		t.Errorf("zone a is full: %v, want ErrCapacity", err)
	}
	other := request("i3")
	other.Zone = "b"
	if _, err := p.Create(t.Context(), other); err != nil {
		t.Errorf("zone b has room: %v", err)
	}
	if err := p.Delete(t.Context(), "s1", "i1"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), request("i2")); err != nil {
		t.Errorf("zone a has room again: %v", err)
	}
}

// proves SAFE-8
func TestLedgerSeesOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake.NewProvider(fake.Config{Call: fake.Exactly(time.Second)}, fake.Inside{})
		// What the calls answer does not matter: the ledger counts.
		go p.Create(t.Context(), request("i1"))
		go p.Create(t.Context(), request("i2"))
		<-time.After(time.Second / 2)
		if err := p.Delete(t.Context(), "s1", "i1"); err != nil {
			t.Error(err)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if !p.Life("i1").Overlapped || p.Life("i2").Overlapped {
			t.Errorf("overlapped: i1 %v, i2 %v; want i1 alone", p.Life("i1").Overlapped, p.Life("i2").Overlapped)
		}
		if n := p.MostAtOnce(); n != 3 {
			t.Errorf("%d calls at once, want 3", n)
		}
	})
}

// What a machine runs is waited for as long as the timeout says. A Stop whose answer is lost stops
// all the same.
func TestStopWaitsForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fake.NewProvider(fake.Config{}, fake.Inside{Run: func(ctx context.Context, _ fake.Boot) {
			<-ctx.Done()
			<-time.After(10 * time.Second)
		}})
		defer p.Close()
		for _, id := range []string{"i1", "i2", "i3"} {
			if _, err := p.Create(t.Context(), request(id)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for id, c := range map[string]struct{ timeout, took time.Duration }{
			"i1": {time.Minute, 10 * time.Second}, "i2": {time.Second, time.Second},
		} {
			began := time.Now()
			if err := p.Stop(t.Context(), "s1", id, c.timeout); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took != c.took {
				t.Errorf("Stop of %s took %s, want %s", id, took, c.took)
			}
			if got := state(t, p, id); got != provider.StateStopped {
				t.Errorf("%s is %s", id, got)
			}
		}
		p.Inject(fake.Fault{Call: fake.CallStop, Err: errLost, Effect: fake.EffectDone})
		if err := p.Stop(t.Context(), "s1", "i3", time.Minute); !errors.Is(err, errLost) {
			t.Error(err)
		}
		if got := state(t, p, "i3"); got != provider.StateStopping {
			t.Errorf("i3 is %s", got)
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		if got := state(t, p, "i3"); got != provider.StateStopped {
			t.Errorf("i3 is %s", got)
		}
	})
}

func TestChanceFollowsItsSeed(t *testing.T) {
	hits := func(seed uint64) (pattern string) {
		p := fake.NewProvider(fake.Config{Seed: seed}, fake.Inside{})
		p.Inject(fake.Fault{Call: fake.CallList, Err: errLost, Chance: 0.5})
		for range 64 {
			if _, err := p.List(t.Context(), "s1"); err != nil {
				pattern += "x"
			} else {
				pattern += "."
			}
		}
		return pattern
	}
	one, again, two := hits(1), hits(1), hits(2)
	if one != again || one == two {
		t.Errorf("seed 1: %s, again %s; seed 2: %s", one, again, two)
	}
}

// What runs in a machine knows how it goes down, and each machine is told of as it comes and goes.
func TestHowMachinesGoDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []string
		downs := make(chan fake.Down, 1)
		boots := make(chan fake.Boot, 1)
		p := fake.NewProvider(fake.Config{}, fake.Inside{
			Run: func(ctx context.Context, b fake.Boot) {
				boots <- b
				<-ctx.Done()
				if down := new(fake.Down); errors.As(context.Cause(ctx), &down) {
					downs <- *down
				}
			},
			Observe: func(e fake.Event, instance, zone string) {
				heard = append(heard, fmt.Sprint(instance, " ", zone, " ", e))
			},
		})
		defer p.Close()
		ctx := t.Context()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		expect := func(want fake.Down) {
			t.Helper()
			if got := <-downs; got != want {
				t.Errorf("down by %+v, want %+v", got, want)
			}
			synctest.Wait()
		}
		_, err := p.Create(ctx, request("i1"))
		must(err)
		first := <-boots
		must(p.Restart(ctx, request("i1").Bootstrap.Shard, "i1", ""))
		expect(fake.Down{By: fake.CallRestart})
		second := <-boots
		if first.Exit("late"); state(t, p, "i1") != provider.StateRunning {
			t.Error("a boot that is over has ended the next one")
		}
		if second.Exit("done"); state(t, p, "i1") != provider.StateStopped {
			t.Error("it has not ended itself")
		}
		expect(fake.Down{})
		must(p.Restart(ctx, request("i1").Bootstrap.Shard, "i1", ""))
		<-boots
		must(p.Stop(ctx, request("i1").Bootstrap.Shard, "i1", time.Second))
		expect(fake.Down{By: fake.CallStop, Within: time.Second})
		must(p.Restart(ctx, request("i1").Bootstrap.Shard, "i1", ""))
		<-boots
		must(p.Delete(ctx, request("i1").Bootstrap.Shard, "i1"))
		expect(fake.Down{By: fake.CallDelete})
		want := []string{
			"i1 a made", "i1 a restarted", "i1 a stopped", "i1 a restarted", "i1 a stopped", "i1 a restarted",
			"i1 a stopped", "i1 a removed",
		}
		if !slices.Equal(heard, want) {
			t.Errorf("told of %q, want %q", heard, want)
		}
		hit := 0
		p.Inject(fake.Fault{Call: fake.CallDelete, Times: 1})
		told := fake.TellHit(ctx, func(fake.Fault) { hit++ })
		must(p.Delete(told, request("i1").Bootstrap.Shard, "i1"))
		must(p.Delete(told, request("i1").Bootstrap.Shard, "i1"))
		if hit != 1 {
			t.Errorf("%d calls were hit", hit)
		}
	})
}
