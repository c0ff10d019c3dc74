package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// A record in deleting ends without a confirmed removal only when Lists prove that there is no
// machine: two of them, begun after a removal was tried, after every Create must have ended, and
// with an agent that holds no lease.
//
// proves SAFE-8
func TestWhatEndsARecordWhoseRemovalWasNeverConfirmed(t *testing.T) {
	cases := map[string]struct {
		change func(in *Instance, now time.Time)
		gone   bool
	}{
		"two lists after a failed removal": {func(*Instance, time.Time) {}, true},
		"one list": {func(in *Instance, _ time.Time) {
			in.Sighting.Times, in.Sighting.Sure = 1, 1
		}, false},
		"lists that miss a machine whose agent reports": {
			func(in *Instance, _ time.Time) { in.Sighting.Sure = 0 },
			false,
		},
		"absent for less than orphan_grace": {func(in *Instance, now time.Time) {
			in.Sighting.Since = now.Add(-time.Minute)
		}, false},
		"no removal was tried": {func(in *Instance, _ time.Time) {
			in.Calls.RemovalFailed = time.Time{}
		}, false},
		"lists begun before the removal": {func(in *Instance, now time.Time) {
			in.Calls.RemovalFailed = now
			in.Sighting.Begun = now.Add(-time.Second)
		}, false},
		"it is listed": {func(in *Instance, _ time.Time) { in.Sighting.Listed = true }, false},
		"a create may still make it": {func(in *Instance, now time.Time) {
			in.Calls.AbsentFrom = now.Add(time.Second)
		}, false},
		"its agent holds a lease": {func(in *Instance, _ time.Time) { in.Alive.Modified = 5 }, false},
		"a removal is under way":  {func(in *Instance, _ time.Time) { in.Calls.Busy = true }, false},
		"a removal has succeeded too": {func(in *Instance, now time.Time) {
			in.Calls.Deleted, in.Sighting.Times = now.Add(-10*time.Second), 1
		}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.play("group size=1\nsettle")
			v := s.instance(s.id("0a"))
			v.Record.Phase = store.Deleting
			s.put(v.Key, v.Record)
			s.drop(s.keys.Alive(v.Record.ID))
			snapshot := s.snapshot()
			in := &snapshot.Groups[0].Instances[0]
			in.Calls = Calls{RemovalFailed: s.now.Add(-time.Minute), Problem: "the call timed out"}
			in.Sighting = Sighting{Begun: s.now.Add(-time.Second), Times: 2, Sure: 2, Since: s.now.Add(-time.Hour)}
			c.change(in, s.now)
			p := Compute(snapshot, s.now)
			gone := slices.ContainsFunc(p.Actions, func(a Action) bool { return a.What() == "gone" })
			if gone != c.gone {
				t.Errorf("the record ends: %t, want %t", gone, c.gone)
			}
			for _, a := range p.Actions {
				after := func(f store.Fact) bool { return f.Kind == store.FactListAfter || f.Kind == store.FactListAfterFail }
				if a.What() == "gone" && (len(a.Facts) != 2 || a.Facts[0].Kind != store.FactUnlisted || !after(a.Facts[1])) {
					t.Errorf("it ends on %q", reason.Lines(a.Facts))
				}
				never := strings.Contains(a.Why, "never confirmed (the call timed out)")
				if a.What() == "gone" && never == strings.HasPrefix(name, "a removal has succeeded") {
					t.Errorf("it ends because %s", a.Why)
				}
			}
			if name == "absent for less than orphan_grace" && !p.Due[s.group].Equal(s.now.Add(9*time.Minute)) {
				t.Errorf("looked at again at %s", p.Due[s.group])
			}
		})
	}
}
