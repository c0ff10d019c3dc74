package agent

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// fenced is a story of an agent whose group does something about a lost lease. The workload takes
// so long to stop.
func fenced(t *testing.T, act string, stopFor time.Duration, change func(*Config),
	tell func(t *testing.T, r *running),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, m := newShard(t, "a"), newMachine(true)
		m.stopFor = stopFor
		r := startAgent(t, s, m, func(c *Config) {
			withOld(c)
			c.Bootstrap.StopTimeout, c.Bootstrap.OnLeaseLost = "2s", act
			if change != nil {
				change(c)
			}
		})
		pass(time.Millisecond)
		tell(t, r)
		r.cancel()
		if err := <-r.done; err != nil && !errors.Is(err, ErrPoweredOff) {
			t.Errorf("Run: %v", err)
		}
		s.stop()
		synctest.Wait()
	})
}

// cutOff lets a while pass and then takes the replica away. It returns when the last report was
// sent that renewed the lease.
func (r *running) cutOff() time.Time {
	r.t.Helper()
	pass(2*interval + interval/2)
	sent := time.Time{}
	for _, h := range r.shard.take() {
		if h.message.GetReport() != nil || h.message.GetHeartbeat() != nil {
			sent = h.at // time stands still here, so it was received when it was sent
		}
	}
	if sent.IsZero() {
		r.t.Fatal("nothing was reported")
	}
	r.shard.replicas["a"].stop()
	synctest.Wait()
	return sent
}

func (m *machine) is(t *testing.T, what string, running bool, starts, stops int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.Running != running || m.starts != starts || m.stops != stops {
		t.Errorf("%s: running %t, %d starts, %d stops; want %t, %d, %d", what, m.state.Running, m.starts, m.stops,
			running, starts, stops)
	}
}

func (m *machine) endedAt() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}

// proves SAFE-9
func TestWorkloadHasEndedBeforeTheLeaseCan(t *testing.T) {
	for name, c := range map[string]struct {
		stopFor time.Duration
		ends    time.Duration // after the report that renewed the lease last
	}{
		"in order":             {time.Second, leaseTTL - time.Second - 2*time.Second + time.Second},
		"killed":               {time.Hour, leaseTTL - time.Second},
		"as long as it may be": {2 * time.Second, leaseTTL - time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			fenced(t, "stop", c.stopFor, nil, func(t *testing.T, r *running) {
				r.machine.is(t, "at first", true, 1, 0)
				sent := r.cutOff()
				pass(time.Until(sent.Add(leaseTTL*2/3 - time.Millisecond)))
				r.machine.is(t, "for two thirds of the lease", true, 1, 0)
				pass(time.Until(sent.Add(leaseTTL - time.Millisecond)))
				r.machine.is(t, "before the lease can end", false, 1, 1)
				if at := r.machine.endedAt().Sub(sent); at != c.ends {
					t.Errorf("it ended %s after the last renewal, want %s", at, c.ends)
				}
				if len(r.power.off) > 0 {
					t.Error("the machine was powered off")
				}
				pass(time.Hour)
				r.machine.is(t, "an hour later", false, 1, 1)

				r.shard.replicas["a"].start()
				pass(maxReconnect)
				r.machine.is(t, "accepted again", true, 2, 1)
				got := r.shard.take()
				for _, h := range got {
					if rep := h.message.GetReport(); rep != nil && !rep.GetHealthy() {
						t.Errorf("a report says %q, as if the machine were ill", rep.GetWhy())
					}
				}
				if len(got) < 2 {
					t.Errorf("heard %q", summary(got))
				}
			})
		})
	}
}

// proves SAFE-9, SAFE-5
func TestNothingIsDoneUnlessAskedFor(t *testing.T) {
	fenced(t, "", 0, nil, func(t *testing.T, r *running) {
		r.cutOff()
		pass(time.Hour)
		r.machine.is(t, "an hour without a lease", true, 1, 0)
	})
}

// A replica that does not acknowledge, or says that nothing was renewed, renews nothing.
//
// proves SAFE-9
func TestOnlyAnAcknowledgementCounts(t *testing.T) {
	for name, act := range map[string]script{"nack": {nack: true}, "no answer": {mute: true}} {
		t.Run(name, func(t *testing.T) {
			fenced(t, "stop", 0, nil, func(t *testing.T, r *running) {
				pass(interval + interval/2)
				got := r.shard.take()
				sent := got[len(got)-1].at
				r.shard.act("a", act)
				pass(time.Until(sent.Add(leaseTTL - time.Millisecond)))
				r.machine.is(t, "before the lease can end", false, 1, 1)
				// The lease is renewed on the open stream, and no replica sends the wanted state
				// again.
				r.shard.act("a", script{})
				pass(2 * maxReconnect)
				r.machine.is(t, "renewed", true, 2, 1)
			})
		})
	}
}

// That no coordinator has a record of the machine renews nothing: the group has asked for an end
// without a lease, and gets it.
//
// proves SAFE-9, SAFE-14
func TestWithoutARecordTheFenceHolds(t *testing.T) {
	fenced(t, "stop", 0, nil, func(t *testing.T, r *running) {
		pass(interval + interval/2)
		got := r.shard.take()
		sent := got[len(got)-1].at
		unknown := &protocol.Refused{Reason: protocol.Refused_UNKNOWN}
		r.shard.act("a", script{refuse: unknown})
		r.shard.order(t, "a", &protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Refused{Refused: unknown}})
		pass(time.Until(sent.Add(leaseTTL*2/3 - time.Millisecond)))
		r.machine.is(t, "for two thirds of the lease", true, 1, 0)
		pass(time.Until(sent.Add(leaseTTL - time.Millisecond)))
		r.machine.is(t, "before the lease can end", false, 1, 1)
		r.shard.act("a", script{})
		pass(maxReconnect)
		r.machine.is(t, "once the record is back", true, 2, 1)
	})
}

// A restart that is under way is cut short, and carried out when there is a lease again. So is a
// drain.
//
// proves SAFE-9, HEAL-1, DRAIN-1
func TestWhatWasUnderWayWaitsForTheLease(t *testing.T) {
	fenced(t, "", time.Hour, nil, func(t *testing.T, r *running) {
		w := restart("r1")
		w.OnLeaseLost = &protocol.LeaseLost{Action: "stop"}
		r.want(w, 1)
		d := drain("d1")
		d.RestartToken, d.OnLeaseLost = "r1", w.GetOnLeaseLost()
		r.want(d, 1)
		sent := r.cutOff()
		pass(time.Until(sent.Add(leaseTTL - time.Millisecond)))
		r.machine.is(t, "before the lease can end", false, 1, 1)
		if len(r.hook.killed) != 1 {
			t.Errorf("drain hooks that were killed: %v", r.hook.killed)
		}
		r.shard.replicas["a"].start()
		pass(maxReconnect)
		r.want(d, 1)
		r.machine.is(t, "accepted again", true, 2, 1)
		if rep := r.tells("the restart"); rep.GetRestarted() != "r1" {
			t.Errorf("report is %v, want the restart carried out", rep)
		}
		if len(r.hook.begun) != 2 {
			t.Errorf("drain hooks that were begun: %v", r.hook.begun)
		}
	})
}

// proves SAFE-9
func TestMachineIsPoweredOffOnceNothingRuns(t *testing.T) {
	fenced(t, "poweroff", time.Second, nil, func(t *testing.T, r *running) {
		sent := r.cutOff()
		pass(time.Until(sent.Add(leaseTTL - time.Millisecond)))
		r.machine.is(t, "before the lease can end", false, 1, 1)
		select {
		case err := <-r.done:
			if !errors.Is(err, ErrPoweredOff) {
				t.Errorf("Run: %v", err)
			}
			r.done <- err
		default:
			t.Error("the agent goes on")
		}
		if len(r.power.off) != 1 || r.power.off[0].Before(r.machine.endedAt()) ||
			r.power.off[0].After(sent.Add(leaseTTL)) {
			t.Errorf("powered off at %v; the workload ended at %v, and the lease at %v", r.power.off,
				r.machine.endedAt(), sent.Add(leaseTTL))
		}
	})
}

// A process that is stuck in the kernel cannot be killed: powering off ends it.
//
// proves SAFE-9
func TestMachineIsPoweredOffThoughItsWorkloadCannotBeKilled(t *testing.T) {
	fenced(t, "poweroff", time.Hour, nil, func(t *testing.T, r *running) {
		r.machine.mu.Lock()
		r.machine.lingers = time.Minute
		r.machine.mu.Unlock()
		sent := r.cutOff()
		pass(time.Until(sent.Add(leaseTTL)))
		if len(r.power.off) != 1 || r.power.off[0].After(sent.Add(leaseTTL-leaseTTL/30)) {
			t.Errorf("powered off at %v; the lease ends at %v", r.power.off, sent.Add(leaseTTL))
		}
	})
}

// Checks wait while the workload does, and continue with their earlier verdict. Otherwise all
// machines of a group would be unhealthy when the coordinators are back, and the fence that should
// spare them would have them replaced.
//
// proves SAFE-9, DET-9
func TestChecksWaitForTheWorkloadThatWaitsForALease(t *testing.T) {
	for name, again := range map[string]bool{"the same agent": false, "one that was started meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m, dir := newShard(t, "a"), newMachine(true), t.TempDir()
				change := func(c *Config) {
					withOld(c)
					c.Bootstrap.StopTimeout, c.Bootstrap.OnLeaseLost, c.Bootstrap.Checked = "2s", "stop", true
					c.StateDir, c.Farewell, c.KeepWorkload = dir, FarewellRestart, true
				}
				r := startAgent(t, s, m, change)
				pass(time.Millisecond)
				w := checking("h1", webCheck("web", "80", false))
				w.OnLeaseLost = &protocol.LeaseLost{Action: "stop"}
				r.want(w, 1)
				r.checker.result(t, 0, "")
				r.checker.result(t, 0, "")
				sent := r.cutOff()
				pass(time.Until(sent.Add(leaseTTL)))
				r.machine.is(t, "when the lease can have ended", false, 1, 1)
				if again {
					r.cancel()
					<-r.done
					r = startAgent(t, s, m, change)
					pass(time.Millisecond)
				}
				if n := len(r.checker.States()); n != 0 {
					t.Errorf("%d checks of a workload that does not run", n)
				}
				s.replicas["a"].start()
				pass(maxReconnect)
				r.machine.is(t, "accepted again", true, 2, 1)
				if n := len(r.checker.States()); n != 1 {
					t.Errorf("%d checks go on", n)
				}
				reports := 0
				for _, h := range s.take() {
					if rep := h.message.GetReport(); rep != nil && h.at.After(sent) {
						if reports++; !rep.GetHealthy() {
							t.Errorf("a report says %q", rep.GetWhy())
						}
					}
				}
				if reports == 0 {
					t.Error("nothing was reported")
				}
				r.end()
			})
		})
	}
}

// An agent keeps working while its disk hangs: it reports, and without a lease it fences itself.
//
// proves SAFE-9
func TestDiskThatHangsHoldsUpNothing(t *testing.T) {
	fenced(t, "stop", time.Second, nil, func(t *testing.T, r *running) {
		answers := make(chan struct{})
		defer close(answers)
		r.machine.mu.Lock()
		r.machine.disk = answers
		r.machine.mu.Unlock()
		r.shard.take()
		pass(5 * interval)
		if got := len(r.shard.take()); got < 4 {
			t.Errorf("%d reports in %s", got, 5*interval)
		}
		r.machine.is(t, "with its lease renewed", true, 1, 0)
		sent := r.cutOff()
		pass(time.Until(sent.Add(leaseTTL - time.Millisecond)))
		r.machine.is(t, "before the lease can end", false, 1, 1)
	})
}

// proves SAFE-9
func TestMachineThatCannotBePoweredOffStaysStopped(t *testing.T) {
	fenced(t, "poweroff", 0, nil, func(t *testing.T, r *running) {
		r.power.fails = errors.New("not permitted")
		r.cutOff()
		pass(time.Hour)
		r.machine.is(t, "an hour later", false, 1, 1)
		r.shard.replicas["a"].start()
		pass(maxReconnect)
		r.machine.is(t, "accepted again", true, 2, 1)
	})
}

// A machine that sleeps loses its lease, though its monotonic clock stands still.
//
// proves SAFE-9
func TestAMachineThatSleptHasLostItsLease(t *testing.T) {
	for name, c := range map[string]struct {
		slept time.Duration
		runs  bool
	}{
		"longer than its lease": {time.Hour, false},
		"for a moment":          {time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			fenced(t, "stop", 0, nil, func(t *testing.T, r *running) {
				r.cutOff()
				r.machine.mu.Lock()
				r.machine.slept = c.slept
				r.machine.mu.Unlock()
				pass(interval)
				stops := 1
				if c.runs {
					stops = 0
				}
				r.machine.is(t, "awake again", c.runs, 1, stops)
				r.shard.replicas["a"].start()
				pass(maxReconnect)
				r.machine.is(t, "accepted again", true, 1+stops, stops)
			})
		})
	}
}

// proves SAFE-9
func TestCommandForALostLease(t *testing.T) {
	fenced(t, "run", 0, func(c *Config) { c.Bootstrap.OnLeaseLostRun = []string{"./fence"} },
		func(t *testing.T, r *running) {
			r.power.ends = false
			sent := r.cutOff()
			pass(time.Until(sent.Add(leaseTTL*2/3 - time.Millisecond)))
			if ran, _ := r.power.commands(); len(ran) != 0 {
				t.Errorf("ran early: %v", ran)
			}
			pass(time.Second)
			if ran, _ := r.power.commands(); len(ran) != 1 || ran[0] != "[./fence] map[greeting:hello]" {
				t.Errorf("ran %v", ran)
			}
			pass(time.Hour)
			if ran, killed := r.power.commands(); len(ran) != 1 || len(killed) != 1 ||
				!killed[0].Equal(sent.Add(leaseTTL)) {
				t.Errorf("ran %v, killed at %v; want once, until the lease can end at %v", ran, killed,
					sent.Add(leaseTTL))
			}
			r.machine.is(t, "what becomes of the workload is the command's business", true, 1, 0)
			r.shard.replicas["a"].start()
			pass(maxReconnect)
			r.cutOff()
			pass(time.Hour)
			if ran, _ := r.power.commands(); len(ran) != 2 {
				t.Errorf("lost a second time, and ran %v", ran)
			}
		})
}

// An agent that was away, or asleep, until its lease had ended runs the command late: nothing else
// ends what runs.
//
// proves SAFE-9
func TestCommandForALeaseThatWasLostMeanwhile(t *testing.T) {
	run := func(c *Config) { c.Bootstrap.OnLeaseLostRun = []string{"./fence"} }
	fenced(t, "run", 0, run, func(t *testing.T, r *running) {
		r.power.ends = false
		r.cutOff()
		r.machine.mu.Lock()
		r.machine.slept = time.Hour
		r.machine.mu.Unlock()
		pass(interval)
		if ran, killed := r.power.commands(); len(ran) != 1 || len(killed) != 0 {
			t.Errorf("ran %v, killed %v", ran, killed)
		}
		pass(leaseTTL)
		if ran, killed := r.power.commands(); len(ran) != 1 || len(killed) != 1 {
			t.Errorf("ran %v, killed %v", ran, killed)
		}
	})
}

// Until it holds a lease an agent starts nothing, and where none was ever known in this boot it
// ends no machine.
//
// proves SAFE-9
func TestWorkloadWaitsForTheFirstLease(t *testing.T) {
	fenced(t, "poweroff", 0, func(c *Config) { c.Bootstrap.Coordinators = []string{"gone"} },
		func(t *testing.T, r *running) {
			pass(time.Hour)
			r.machine.is(t, "without a lease", false, 0, 0)
			if len(r.power.off) > 0 {
				t.Error("it was powered off, and would be again after each boot")
			}
			r.shard.mu.Lock()
			r.shard.replicas["gone"] = r.shard.replicas["a"]
			r.shard.mu.Unlock()
			pass(maxReconnect)
			r.machine.is(t, "with its first lease", true, 1, 0)
		})
}

// An agent that is started again goes by the lease that the one before it knew, on a clock that has
// gone on meanwhile.
//
// proves SAFE-9
func TestLeaseOutlivesTheAgent(t *testing.T) {
	for name, c := range map[string]struct {
		away time.Duration
		boot string
		runs bool // at the start of the next agent
	}{
		"in time":      {leaseTTL / 3, "boot-1", true},
		"too late":     {leaseTTL, "boot-1", false},
		"another boot": {time.Second, "boot-2", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m, dir := newShard(t, "a"), newMachine(true), t.TempDir()
				change := func(cfg *Config) {
					withOld(cfg)
					cfg.Bootstrap.StopTimeout, cfg.Bootstrap.OnLeaseLost = "2s", "stop"
					cfg.StateDir, cfg.Farewell, cfg.KeepWorkload = dir, FarewellRestart, true
				}
				first := startAgent(t, s, m, change)
				pass(2 * interval)
				first.cancel()
				<-first.done
				m.is(t, "kept by the first", true, 1, 0)
				for _, r := range s.replicas {
					r.stop()
				}
				heard := s.take()
				sent := heard[len(heard)-2].at // the last is the goodbye
				pass(c.away)
				second := startAgent(t, s, m, func(cfg *Config) { change(cfg); cfg.BootID = c.boot })
				pass(time.Millisecond)
				stops := 0
				if !c.runs {
					stops = 1
				}
				m.is(t, "taken up by the second", c.runs, 1, stops)
				pass(max(0, time.Until(sent.Add(leaseTTL-time.Millisecond))))
				m.is(t, "before the lease can end", false, 1, 1)
				s.replicas["a"].start()
				pass(maxReconnect)
				m.is(t, "accepted again", true, 2, 1)
				second.end()
			})
		})
	}
}
