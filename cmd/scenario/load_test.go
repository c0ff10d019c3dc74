package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A day, a burst, a sawtooth, numbers that fail, and slow machines: the size follows, does not
// overshoot, and changes its direction no more often than the load.
//
// proves AUTO-1, AUTO-2, AUTO-4
func TestLoadCurves(t *testing.T) {
	web := webOf(0)
	web.Template.Zones = nil
	web.Scale = &store.ScaleSpec{Min: new(2), Max: 40, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 60}}}
	web.Complete()
	for name, events := range map[string]string{
		"day": `
length: 12h
events:
- {at: 0s, load: {cpu: 200}}
- {at: 1h, load: {cpu: 1500, over: 4h}}
- {at: 6h, load: {cpu: 200, over: 4h}}
expect: {below_target: 20m, overshoot: 0, size_turns: 1, size_changes: 40}
`,
		"burst": `
length: 1h
events:
- {at: 0s, load: {cpu: 200}}
- {at: 10m, load: {cpu: 1000, over: 1m}}
- {at: 30m, load: {cpu: 200, over: 1m}}
expect: {below_target: 15m, overshoot: 1, size_turns: 1}
`,
		"sawtooth": `
length: 1h
events:
- {at: 0s, load: {cpu: 500}}
- {at: 20m, load: {cpu: 300}}
- {at: 23m, load: {cpu: 500}}
- {at: 26m, load: {cpu: 300}}
- {at: 29m, load: {cpu: 500}}
- {at: 32m, load: {cpu: 300}}
- {at: 35m, load: {cpu: 500}}
expect: {below_target: 15m, overshoot: 1, size_turns: 0}
`,
		"no numbers": `
length: 1h
events:
- {at: 0s, load: {cpu: 500}}
- {at: 20m, no_load: {percent: 100, for: 20m}}
- {at: 20m, load: {cpu: 100}}
- {at: 39m, load: {cpu: 500}}
expect: {size_turns: 0, overshoot: 1}
`,
		"slow machines": `
length: 1h
provider: {boot: 4m..5m}
events:
- {at: 0s, load: {cpu: 150}}
- {at: 15m, load: {cpu: 200}}
expect: {overshoot: 1, size_turns: 0, size_changes: 3}
`,
	} {
		set := setting()
		set.Groups = []store.Group{web}
		s, err := Read("s.yaml", strings.NewReader(events), set)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		res := s.Play(t.Context(), func(_ time.Duration) {})
		for _, c := range res.Checks {
			if !c.Met && c.Name != "converged" {
				t.Errorf("%s: %s: %s, wanted %s: %+v", name, c.Name, c.Got, c.Want, res.Groups[0].Load)
			}
		}
	}
}
