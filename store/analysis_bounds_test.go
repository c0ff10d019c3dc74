package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A number is judged by the bounds that there are, and messages say which they are.
//
// proves ROLL-5
func TestBoundsOfAnalyses(t *testing.T) {
	for _, test := range []struct {
		a       store.Analysis
		says    string
		in, out []float64
	}{
		{store.Analysis{}, "anything", []float64{-1, 0, 1}, nil},
		{store.Analysis{Max: new(0.5)}, "at most 0.5", []float64{-1, 0.5}, []float64{0.6}},
		{store.Analysis{Min: new(0.5)}, "at least 0.5", []float64{0.5, 9}, []float64{0.4}},
		{store.Analysis{Min: new(0.5), Max: new(2.0)}, "0.5 to 2", []float64{0.5, 2}, []float64{0.4, 2.1}},
	} {
		if got := test.a.Bounds(); got != test.says {
			t.Errorf("got %q, want %q", got, test.says)
		}
		for _, n := range test.in {
			if !test.a.Holds(n) {
				t.Errorf("%v is not %s", n, test.says)
			}
		}
		for _, n := range test.out {
			if test.a.Holds(n) {
				t.Errorf("%v is %s", n, test.says)
			}
		}
	}
}

// A number has to be out of its bounds for half a minute, or as long as its group says.
//
// proves ROLL-5
func TestPatienceOfAnalyses(t *testing.T) {
	for said, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 1: 1, time.Minute: time.Minute} {
		if got := (&store.Analysis{For: store.Duration(said)}).Patience().D(); got != want {
			t.Errorf("%s: got %s, want %s", said, got, want)
		}
	}
}

// proves ROLL-5
func TestWhatAnalysesMaySay(t *testing.T) {
	many := func(n int) (list []store.Analysis) {
		for i := range n {
			list = append(list, store.Analysis{From: fmt.Sprintf("source-%d", i), Min: new(1.0)})
		}
		return list
	}
	for _, test := range []struct {
		all  []store.Analysis
		want string
	}{
		{many(10), ""},
		{many(11), "rollout.analysis: 11 analyses: must be at most 10 with different sources (ROLL-5)"},
		{append(many(1), many(2)...), "rollout.analysis: 3 analyses: must be at most 10 with different sources (ROLL-5)"},
		{
			[]store.Analysis{{From: "errors", Max: new(1.0), For: store.Duration(-time.Second)}},
			"rollout.analysis[0].for: -1s: must be 0s to 1h (ROLL-5)",
		},
	} {
		g := web()
		g.Rollout.Analysis = test.all
		if got := refusalOf(g); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.all, got, test.want)
		}
	}
}
