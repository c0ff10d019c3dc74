package gateway_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// A share that an agent reports is one of 100: what is beyond that, or no number, cannot make a
// group grow without bound.
//
// proves AUTO-2, SEC-5
func TestSharesOfAHostAreBounded(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		span := durationpb.New(time.Minute)
		for i, test := range [][2]float64{
			{40, 40}, {100, 100}, {100.5, 100}, {1e300, 100}, {-3, 0}, {math.Inf(1), 0}, {math.NaN(), 0},
		} {
			id, sent, want := fmt.Sprint("web-", i), test[0], test[1]
			w.record(id, store.Running)
			a := r.welcomed(hello(id, "boot1", 1))
			a.report(&protocol.Report{Healthy: true, Host: &protocol.Host{
				CpuPercent: sent, MemoryPercent: sent, DiskPercent: sent, Windows: []*protocol.HostWindow{
					{Span: span, Covered: span, CpuPercent: sent, MemoryPercent: sent, DiskPercent: sent},
				},
			}})
			h := w.report(id).Record.Host
			a.hangUp()
			got := []float64{h.CPUPercent, h.MemoryPercent, h.DiskPercent}
			for _, of := range h.Windows {
				got = append(got, of.CPUPercent, of.MemoryPercent, of.DiskPercent)
			}
			if len(got) != 6 || slices.ContainsFunc(got, func(x float64) bool { return x != want }) {
				t.Errorf("%v is recorded as %v, want %v", sent, got, want)
			}
		}
	})
}
