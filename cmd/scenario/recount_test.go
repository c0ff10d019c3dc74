package scenario

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
)

// The incremental counts equal a count of all instances, whatever happens to them.
func TestTheCountIsThatOfAllInstances(t *testing.T) {
	texts := map[string]string{"default": DefaultText}
	for kind, x := range effects {
		texts[kind] = "length: 16m\nevents:\n" + x.before + "- {at: 3m, " + kind + ": {" + x.event + "}}\n" + x.after
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			st := newStage(readIt(t, text))
			compare := func() {
				st.rec.dirty = true
				st.rec.look()
				want := map[string]*count{}
				for _, name := range st.rec.names {
					want[name] = &count{}
				}
				for _, id := range st.w.Instances() {
					rec := st.w.Instance(id).Record
					if c := want[rec.Group]; c != nil && rec.Managed {
						c.add(st.rec.countOf(id, &rec), 1)
					}
				}
				for name, c := range want {
					if *st.rec.counts[name] != *c {
						t.Fatalf("%s: counted %+v of %s, there are %+v", Clock(st.w.Elapsed()), *st.rec.counts[name],
							name, *c)
					}
				}
			}
			step := func(end time.Duration) {
				for next, any := st.w.Next(); any && next <= end; next, any = st.w.Next() {
					st.w.Step()
					compare()
				}
				st.w.RunUntil(sim.Epoch.Add(end))
			}
			for _, e := range st.sc.Events {
				step(e.At)
				st.rec.begin(e)
				st.rec.end(e.play(st))
				compare()
			}
			step(st.sc.Length)
		})
	}
}
