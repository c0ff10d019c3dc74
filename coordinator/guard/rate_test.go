package guard

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// An agent with the most checks a group may have, which all change as often as checks can, and with
// the workload's last output in each report, is never delayed.
//
// proves SEC-5
func TestTheBusiestAgentIsNotDelayed(t *testing.T) {
	// 32 checks of 2s that reach a verdict after two results each: 8 reports a second, and the
	// regular one each second, all of the largest size.
	const rate, size = 8 + 1, protocol.MaxOutput + 33*(protocol.MaxName+600)
	now := time.Now()
	var p, burst RateState
	p.Init()
	burst.Init()
	for i := range 600 * rate {
		wait, err := p.Take(now.Add(time.Duration(i)*time.Second/rate), size)
		if wait > 0 || err != nil {
			t.Fatalf("report %d waits %s: %v", i, wait, err)
		}
	}
	for i := range 64 { // after a pause: everything at once, twice
		if wait, err := burst.Take(now, size); wait > 0 || err != nil {
			t.Fatalf("report %d of a burst waits %s: %v", i, wait, err)
		}
	}
}
