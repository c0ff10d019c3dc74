package growth_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/tests/faults/growth"
)

// series is n readings of a made-up number.
func series(n int, read func(i int, rng *rand.Rand) float64) growth.Series {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	s := growth.Series{Of: "replica a", What: "goroutines", May: growth.Allowance{Share: 0.1, More: 5}}
	for i := range n {
		s.Values = append(s.Values, read(i, rng))
	}
	return s
}

func TestGrowthIsDistinguishedFromVariation(t *testing.T) {
	const n = 50
	for name, test := range map[string]struct {
		read  func(i int, rng *rand.Rand) float64
		grows bool
	}{
		"flat":           {func(int, *rand.Rand) float64 { return 100 }, false},
		"nothing at all": {func(int, *rand.Rand) float64 { return 0 }, false},
		"noisy":          {func(_ int, rng *rand.Rand) float64 { return 80 + 40*rng.Float64() }, false},
		"a saw":          {func(i int, _ *rand.Rand) float64 { return 100 + 10*float64(i%7) }, false},
		"warms up": {func(i int, _ *rand.Rand) float64 {
			return 300 * (1 - math.Exp(-float64(i)/4))
		}, false},
		"shrinks": {func(i int, _ *rand.Rand) float64 { return 300 - 2*float64(i) }, false},
		"stands out now and then": {
			func(i int, _ *rand.Rand) float64 { return 100 + 900*float64(i%10/9) },
			false,
		},
		"stands out at the very end": {func(i int, _ *rand.Rand) float64 { return 100 + 900*float64(i/48) }, false},
		"one more with each":         {func(i int, _ *rand.Rand) float64 { return 100 + float64(i) }, true},
		"one more with each, and noisy": {func(i int, rng *rand.Rand) float64 {
			return 100 + float64(i) + 20*rng.Float64()
		}, true},
		"grows as a saw": {func(i int, _ *rand.Rand) float64 {
			return 100 + float64(i) + 10*float64(i%7)
		}, true},
		"doubles": {
			func(i int, _ *rand.Rand) float64 { return 50 * math.Exp2(float64(i)/n) },
			true,
		},
		"begins to grow after a while": {
			func(i int, _ *rand.Rand) float64 { return 100 + 3*float64(max(0, i-25)) },
			true,
		},
		"grows from nothing": {func(i int, _ *rand.Rand) float64 { return float64(i) / 3 }, true},
		"steps up for good":  {func(i int, _ *rand.Rand) float64 { return 100 + 50*float64(i/30) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := series(n, test.read)
			if v := s.Judge(); v.Grows() != test.grows || !v.Known {
				t.Errorf("grows: %v: %+v of %v", v.Grows(), v, s.Values)
			}
		})
	}
}

func TestTooFewReadingsAreNoVerdict(t *testing.T) {
	grows := func(i int, _ *rand.Rand) float64 { return 100 * float64(i) }
	for n := range 40 {
		v := series(n, grows).Judge()
		if known := n >= growth.Least; v.Known != known || v.Grows() != known {
			t.Errorf("of %d readings: %+v", n, v)
		}
	}
}

func TestWhatGrowsIsNamed(t *testing.T) {
	leak := series(30, func(i int, _ *rand.Rand) float64 { return 100 + 10*float64(i) })
	told := leak.Tell()
	for _, want := range []string{
		"goroutines of replica a grows", "225 after warm-up", "365 in the end",
		"at most 253",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not told: %s", want, told)
		}
	}
	calm := series(30, func(int, *rand.Rand) float64 { return 3 << 20 })
	calm.Unit = growth.Bytes
	table := growth.Table([]growth.Series{leak, calm, series(5, func(int, *rand.Rand) float64 { return 7 })})
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], "GROWS") || !strings.Contains(lines[2], "3.0 MiB") ||
		!strings.HasSuffix(lines[2], "flat") || !strings.HasSuffix(lines[3], "too few to say") {
		t.Errorf("the table:\n%s", table)
	}
}
