package scenario

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What instances need for a number from outside is not known, so expectations of it are refused,
// wherever the group with the number comes from.
//
// proves AUTO-4
func TestExpectationsThatCannotBeJudged(t *testing.T) {
	const apply = "events: [{at: 1m, apply: queued.yaml}]\n"
	for name, text := range map[string]string{
		"below_target": apply + "expect: {below_target: 1m}\n", "overshoot": apply + "expect: {overshoot: 1}\n",
	} {
		_, err := Read("s.yaml", strings.NewReader(text), setting())
		want := "expect." + name + ": cannot be judged: web follows a number from outside, and a scenario does not say " +
			"how many instances that needs: expect size_changes or size_turns (s.yaml:2:10)"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	both := setting()
	both.Groups[0].Scale = &store.ScaleSpec{Max: 12, Targets: []store.ScaleTarget{
		{Metric: store.MetricCPU, Value: 50}, {From: "queue", Value: 100},
	}}
	both.Groups[0].Complete()
	if _, err := Read("s.yaml", strings.NewReader("expect: {overshoot: 1}\n"), both); err == nil {
		t.Error("the growth for the queue would count as overshoot")
	}
	readIt(t, "events: [{at: 1m, apply: scaled.yaml}]\nexpect: {below_target: 1m, overshoot: 1}\n")
}

// Changes of size by a number from outside count in any order of events, beside a load and without,
// and agents whose load no event gives still tell none.
//
// proves AUTO-4
func TestSizesByNumbersFromOutsideCount(t *testing.T) {
	const curve = `
length: 40m
events:
- {at: 0s, number: {from: queue, value: 600}}
- {at: 1m, apply: queued.yaml}
- {at: 10m, number: {from: queue, value: 1100}}
- {at: 15m, number: {from: queue, value: 600}}
expect: {size_changes: 1, size_turns: 0, converged: false}
`
	fails := func(set Setting, text string) *Result {
		s, err := Read("s.yaml", strings.NewReader(text), set)
		if err != nil {
			t.Fatal(err)
		}
		res := s.Play(t.Context(), func(time.Duration) {})
		for _, c := range res.Checks {
			if c.Met {
				t.Errorf("%s holds: %s, %+v", c.Name, c.Got, res.Groups[0].Load)
			}
		}
		return res
	}
	if l := fails(setting(), curve).Groups[0].Load; !l.Outside || l.Over != 0 {
		t.Errorf("the need counts as known: %+v", l)
	}
	both := setting()
	both.Groups[0].Scale = &store.ScaleSpec{Max: 12, Targets: []store.ScaleTarget{
		{Metric: store.MetricCPU, Value: 50}, {From: "queue", Value: 100},
	}}
	both.Groups[0].Complete()
	l := fails(both, strings.Replace(strings.Replace(curve, "- {at: 1m, apply: queued.yaml}\n", "", 1),
		"size_changes: 1, size_turns: 0", "size_changes: 0", 1)).Groups[0].Load
	if l.Turns != 0 || l.Changes == 0 {
		t.Errorf("without numbers of the agents it must not shrink: %+v", l)
	}
}

// A source for which two events overlap answers again when both are over.
//
// proves AUTO-4
func TestTwoSilencesOfASourceOverlap(t *testing.T) {
	const curve = `
length: 12m
events:
- {at: 1s, apply: queued.yaml}
- {at: 3m, no_number: {from: queue, for: 2m}}
- {at: 3m2s, number: {from: queue, value: 900}}
- {at: 4m, no_number: {from: queue, for: 4m}}
`
	if shown := lines(play(t, curve)); !regexp.MustCompile(`(?m)^00:08.* AUTO-1 .*size 6 ->`).MatchString(shown) {
		t.Errorf("it does not answer at 8m again:\n%s", shown)
	}
}
