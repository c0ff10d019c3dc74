package evidence

import "github.com/leasehold/leasehold/coordinator/plan"

// Tallied notes the losses of groups as they were just planned. When they become a storm of the shard, or cease to be one, all groups
// with losses are planned anew.
func (e *Evidence) Tallied(tallies map[string]plan.Tally) {
	e.mu.Lock()
	defer e.mu.Unlock()
	storm := e.tallied.Storm()
	defer func() {
		if storm == e.tallied.Storm() {
			return
		}
		for group, t := range e.tallies {
			if t.Groups > 0 || t.Now > 0 {
				e.dirty[group] = true
			}
		}
	}()
	for group, now := range tallies {
		e.tallied = e.tallied.Minus(e.tallies[group])
		e.tallied = e.tallied.Plus(now)
		if now == (plan.Tally{}) {
			delete(e.tallies, group)
			continue
		}
		e.tallies[group] = now
	}
}

// elsewhere is the sum of the losses in all other groups.
func (e *Evidence) elsewhere(groups []string) plan.Tally {
	sum := e.tallied
	for _, group := range groups {
		sum = sum.Minus(e.tallies[group])
	}
	return sum
}
