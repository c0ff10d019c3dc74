package scenario

import (
	"runtime/debug"
	"testing"
	"time"
)

// BenchmarkHourByInstances says how much more an hour of a group of 1,000 costs than one of a group
// of 100, for each instance and each plan that the leader makes: 1 is linear. How fast the machine
// is does not matter.
func BenchmarkHourByInstances(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as leasehold simulate has it
	perJudgment := func(size int) float64 {
		s := setting()
		s.Groups[0] = webOf(size)
		sc, err := Default(s)
		if err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		res := sc.Play(b.Context(), func(time.Duration) {})
		return time.Since(begun).Seconds() / float64(res.judgments)
	}
	for b.Loop() {
		small := perJudgment(100)
		b.ReportMetric(perJudgment(1000)/small, "of-1000/of-100")
	}
}
