package agent

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/workload"
)

// An agent that ends says whether the next one finds the workload.
//
// proves PROV-7
func TestTheEndOfTheKeeperSaysWhetherTheWorkloadIsRecorded(t *testing.T) {
	for name, unrecorded := range map[string]bool{"recorded": false, "unrecorded": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(true)
				m.unrecorded = unrecorded
				k := newKeeper(m, slog.New(slog.DiscardHandler))
				go k.run(t.Context())
				k.want(target{run: true})
				if whole := k.conclude(t.Context(), true); whole == unrecorded {
					t.Errorf("whole: %t", whole)
				}
			})
		})
	}
}

// What a group asks for on a lost lease is done in place of an agent that has ended for a trial.
//
// proves SAFE-9
func TestALostLeaseIsActedOnInPlaceOfAnAgent(t *testing.T) {
	for act, c := range map[string]struct{ stops, off, ran int }{
		fenceStop:     {stops: 1},
		fencePowerOff: {stops: 1, off: 1},
		fenceRun:      {ran: 1},
	} {
		t.Run(act, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, power := newMachine(true), newSwitch()
				m.state, m.stopFor = workload.State{Wanted: true, Running: true}, time.Hour
				a := &Agent{
					deps: Deps{Workload: m, Fence: power}, log: slog.New(slog.DiscardHandler),
					assignment: assignment{OnLeaseLost: act, OnLeaseLostRun: []string{"cut"}},
				}
				began := time.Now()
				a.actInPlace()(began.Add(2 * time.Second))
				ran, _ := power.commands()
				if m.stops != c.stops || len(power.off) != c.off || len(ran) != c.ran {
					t.Errorf("%d stops, %d ends, %v run", m.stops, len(power.off), ran)
				}
				if took := time.Since(began); c.stops > 0 && took != 2*time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
