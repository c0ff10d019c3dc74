package planning

import (
	"fmt"
	"time"
)

// Ready returns the processor time that a new leader needs from etcd's list until it has planned
// every group once.
func (r *Result) Ready() time.Duration {
	return r.Cache.CPU + r.Seen.CPU + r.Plan.CPU
}

// Rate returns how many changes per second one processor plans, if all are of the most expensive
// measured kind.
func (r *Result) Rate() float64 {
	dearest := r.dearest()
	if dearest.Each.CPU <= 0 {
		return 0
	}
	return float64(time.Second) / float64(dearest.Each.CPU)
}

func (r *Result) dearest() (most Change) {
	for _, c := range r.Changes {
		if c.Each.CPU > most.Each.CPU {
			most = c
		}
	}
	return most
}

// Problems returns violations that no machine may show, however slow it is.
func (r *Result) Problems() (all []string) {
	if r.Wrote > 0 {
		all = append(all, fmt.Sprintf("the first plan of a settled shard wrote %d keys", r.Wrote))
	}
	if s := r.Storm; s != nil && s.Replaced > 0 {
		all = append(all, fmt.Sprintf("in the storm something was made or removed for %d instances: SAFE-2",
			s.Replaced))
	}
	if s := r.Storm; s != nil && s.Left > 0 {
		all = append(all, fmt.Sprintf("%d groups were not as before after the storm", s.Left))
	}
	return all
}

// Verdict says in a sentence what the planner can carry on this machine, and what limits it.
func (r *Result) Verdict() string {
	return fmt.Sprintf(
		"one leader plans %d instances in %d groups on this machine: it has planned all of them after %s of processor time "+
			"and keeps %d MiB of them; then one processor plans about %.0f changes a second, "+
			"limited by the size of a group (%d), as each change plans its whole group",
		r.Instances, r.Groups, r.Ready().Round(10*time.Millisecond), (r.Heap.Cache+r.Heap.Evidence)>>20, r.Rate(),
		r.of(0))
}
