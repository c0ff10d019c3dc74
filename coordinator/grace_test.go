package coordinator_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// The journal says when no instance is judged lost: once for a new leader, and in steps while a
// disturbance goes on, however many agents there are.
//
// proves SAFE-1
func TestTheJournalHasTheGrace(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		graces := func(by string) (all []store.JournalEntry) {
			for _, e := range w.journal() {
				if e.Record.Cause.Kind == store.CauseDisturbed && e.Record.By == by {
					all = append(all, e.Record)
				}
			}
			return all
		}
		one := w.start("one")
		w.leads(time.Second, "one")
		w.start("two")
		g := w.group("web", 4)
		w.apply(g)
		w.up(4)
		w.pass(10 * time.Minute)
		if all := graces("one"); len(all) > 0 {
			t.Errorf("a leader without agents had a grace: %+v", all)
		}
		one.stop()
		w.leads(time.Minute, "two")
		w.pass(10 * time.Minute)
		all := graces("two")
		if len(all) != 1 || all[0].Rule != "SAFE-1" || all[0].Cause.For < g.Report.LeaseTTL || all[0].Cause.Text == "" ||
			all[0].Group != "" {
			t.Fatalf("a new leader told of %+v", all)
		}
		const troubled = time.Minute
		for range int(troubled / (2 * time.Second)) {
			w.db.Faults().ChangeLeader()
			w.pass(2 * time.Second)
		}
		over := time.Now()
		w.pass(10 * time.Minute)
		all = graces("two")[1:]
		if len(all) == 0 || len(all) > int(troubled/(10*time.Second))+1 {
			t.Fatalf("%d entries in %s of disturbances", len(all), troubled)
		}
		last := all[len(all)-1]
		if told := last.At.Add(last.Cause.For.D()); told.Before(over) {
			t.Errorf("the last entry ends %s, before the grace does", told)
		}
	})
}
