package replay

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What a policy changes is said as a number, with the error of the replay where that is as large.
//
// proves AUTO-4
func TestWhatAPolicyChanges(t *testing.T) {
	minutes := func(n int) store.Duration { return store.Duration(time.Duration(n) * time.Minute) }
	was := Figures{Lost: minutes(9), Wanted: minutes(600), Machines: 4}
	control := Figures{Lost: minutes(10), Wanted: minutes(600), Machines: 4, SizeChanges: 2}
	for want, would := range map[string]Figures{
		"web: the same as with the policy in force.": control,
		"web: with the file, 7m less lost, 1h more of instances, 1 more machine made, 2 fewer changes of size " +
			"than with the policy in force.": {Lost: minutes(3), Wanted: minutes(660), Machines: 5},
		"web: with the file, 1m more lost than with the policy in force; the replay itself is off by 1m lost, " +
			"so the difference in lost time means little.": {
			Lost: minutes(11), Wanted: minutes(600), Machines: 4, SizeChanges: 2,
		},
	} {
		g := Group{Name: "web", Change: difference(control, would), Error: difference(was, control)}
		if got := g.Sentence(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
