package agent

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A start that waits for the disk starts nothing once the workload must no longer run. The next
// wanted start succeeds.
//
// proves SAFE-9
func TestAStartThatTheDiskHoldsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(true)
		m.opens = make(chan struct{})
		k := newKeeper(m, slog.New(slog.DiscardHandler))
		go k.run(t.Context())
		k.want(target{run: true})
		synctest.Wait()
		k.want(target{})
		synctest.Wait()
		close(m.opens)
		synctest.Wait()
		if m.is(t, "called off", false, 0, 0); !k.resting() {
			t.Error("something may still run")
		}
		k.want(target{run: true})
		synctest.Wait()
		m.is(t, "wanted again", true, 1, 0)
		k.conclude(t.Context(), false)
	})
}

// The time of a target that ends as another one takes its place cuts nothing short for that.
//
// proves SAFE-9
func TestATimeThatEndsAsTheLeaseReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(true)
		m.opens = make(chan struct{})
		k := newKeeper(m, slog.New(slog.DiscardHandler))
		go k.run(t.Context())
		k.want(target{by: time.Now().Add(time.Hour)})
		synctest.Wait()
		fenced := k.targets
		k.want(target{run: true})
		synctest.Wait()
		k.expire(fenced) // its timer fired before it could be stopped
		close(m.opens)
		synctest.Wait()
		m.is(t, "the lease is renewed", true, 1, 0)
		k.conclude(t.Context(), false)
	})
}

// While it is not known whether a workload runs, nothing is started, the machine does not count as
// one where nothing runs, and it is tried again.
//
// proves SAFE-9
func TestAWorkloadOfWhichNothingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(true)
		reads := func(ok bool) {
			m.mu.Lock()
			m.unread = !ok
			m.mu.Unlock()
		}
		k := newKeeper(m, slog.New(slog.DiscardHandler))
		go k.run(t.Context())
		reads(false)
		for _, want := range []target{{run: true}, {run: true, restart: "r1"}} {
			k.want(want)
			pass(time.Minute)
			m.is(t, "wanted", false, 0, 0)
		}
		if k.carriedOut() != "" {
			t.Error("a restart was carried out")
		}
		k.want(target{})
		pass(time.Minute)
		if k.resting() {
			t.Error("an unknown workload counts as stopped")
		}
		reads(true)
		pass(readAgain)
		if !k.resting() {
			t.Error("it is not tried again")
		}
		reads(false)
		k.want(target{run: true})
		pass(time.Minute)
		reads(true)
		pass(readAgain)
		m.is(t, "known", true, 1, 0)
		k.conclude(t.Context(), false)
	})
}

// A part that hangs does not keep the agent from ending, and a start that hangs starts nothing
// later.
//
// proves DET-8, SAFE-9
func TestTheAgentEndsThoughAPartHangs(t *testing.T) {
	for name, c := range map[string]struct {
		hang func(m *machine) *chan struct{}
		keep bool
	}{
		"a part":                          {func(m *machine) *chan struct{} { return &m.stuck }, false},
		"a start":                         {func(m *machine) *chan struct{} { return &m.opens }, false},
		"a start, with the workload kept": {func(m *machine) *chan struct{} { return &m.opens }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := newShard(t, "a"), newMachine(true)
				answers := make(chan struct{})
				*c.hang(m) = answers
				r := startAgent(t, s, m, func(cfg *Config) {
					if c.keep {
						cfg.Farewell, cfg.KeepWorkload = FarewellRestart, true
					}
				})
				pass(time.Minute)
				started := m.starts
				r.cancel()
				select {
				case err := <-r.done:
					if err != nil {
						t.Errorf("Run: %v", err)
					}
				case <-time.After(time.Minute):
					t.Error("it does not end")
				}
				close(answers)
				s.stop()
				synctest.Wait()
				if m.starts != started {
					t.Error("the workload was started by an agent that has ended")
				}
			})
		})
	}
}
