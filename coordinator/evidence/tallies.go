package evidence

import "github.com/leasehold/leasehold/coordinator/plan"

// Tallied notes the losses of groups as they were just planned.
func (e *Evidence) Tallied(tallies map[string]plan.Tally) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for group, now := range tallies {
		e.tallied = plus(e.tallied, e.tallies[group], -1)
		e.tallied = plus(e.tallied, now, 1)
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
		sum = plus(sum, e.tallies[group], -1)
	}
	return sum
}

func plus(a, b plan.Tally, times int) plan.Tally {
	return plan.Tally{Lost: a.Lost + times*b.Lost, Now: a.Now + times*b.Now, Of: a.Of + times*b.Of, Groups: a.Groups + times*b.Groups}
}
