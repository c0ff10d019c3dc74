package replay

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/review"
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

// What a replay cannot show is said of one thing as of one, and of several as of several.
//
// proves AUTO-4
func TestNumbersAndNounsAgree(t *testing.T) {
	for n, want := range map[int][]string{
		1: {
			"Of 1 day nothing is known: nothing happens then.",
			"1 failure is known as a number alone: it is not played.",
			"Of 1 hour the load is known from a summary: its middle, with its peak for ten minutes.",
			"Of 1 hour only the mean of the load is known: the group was of fixed size then.",
			"1 failure hit a slot in which nothing served with the groups of the file: it is not played.",
			"1 failure hit a slot in which nothing served with the control: it is not played.",
		},
		2: {
			"Of 2 days nothing is known: nothing happens then.",
			"2 failures are known as a number alone: they are not played.",
			"Of 2 hours the load is known from a summary: its middle, with its peak for ten minutes.",
			"Of 2 hours only the mean of the load is known: the group was of fixed size then.",
			"2 failures hit a slot in which nothing served with the groups of the file: they are not played.",
			"2 failures hit a slot in which nothing served with the control: they are not played.",
		},
	} {
		said := unknown(&tape{missing: n, omitted: n, coarse: n, mean: n}, review.Report{}, &play{missed: n},
			&play{missed: n})
		if len(said) < len(want) || !slices.Equal(said[:len(want)], want) {
			t.Errorf("%d: %q, want %q", n, said, want)
		}
	}
}
