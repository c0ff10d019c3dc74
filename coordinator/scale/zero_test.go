package scale_test

import (
	"testing"

	"github.com/leasehold/leasehold/coordinator/scale"
	"github.com/leasehold/leasehold/store"
)

// With min: 0 an empty queue takes the last machine away, although it has some load of its own.
//
// proves AUTO-1, AUTO-2
func TestTheLastMachineGoes(t *testing.T) {
	s := spec(0, 20, cpu, queue)
	for _, size := range []int{1, 4} {
		load := scale.Load{Metrics: []scale.Numbers{
			{Sum: 1 * float64(size), Warm: size},
			{Outside: scale.Outside{Known: true, Value: 0}},
		}}
		for range 10 {
			load.Metrics[0] = scale.Numbers{Sum: float64(size), Warm: size}
			w := scale.WishOf(s, size, load)
			next, stays := scale.Step(s, w, scale.State{Size: size, Largest: w.Size, Risen: true, MayShrink: true})
			t.Logf("%d: wish %+v -> %d %q", size, w, next, stays)
			size = next
		}
		if size != 0 {
			t.Errorf("the group stays at %d", size)
		}
	}
	_ = store.MaxSize
}
