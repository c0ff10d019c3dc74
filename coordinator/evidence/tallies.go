package evidence

import "github.com/leasehold/leasehold/coordinator/plan"

// Tallied records the losses of groups that were just planned. When the losses become a storm of
// the shard, cease to be one, or become few enough for a storm to end, all groups with losses are
// planned again at once.
func (e *Evidence) Tallied(tallies map[string]plan.Tally) {
	e.mu.Lock()
	turned := e.tally(tallies)
	e.mu.Unlock()
	if turned {
		e.cfg.Wake()
	}
}

// tally records the losses of groups, and reports whether groups with losses have to be planned
// again.
func (e *Evidence) tally(tallies map[string]plan.Tally) (turned bool) {
	storm, calm := e.tallied.Storm(), e.tallied.Calm()
	for group, now := range tallies {
		e.tallied = e.tallied.Minus(e.tallies[group]).Plus(now)
		if now == (plan.Tally{}) {
			delete(e.tallies, group)
			continue
		}
		e.tallies[group] = now
	}
	if storm == e.tallied.Storm() && calm == e.tallied.Calm() {
		return false
	}
	for group, t := range e.tallies {
		if t.Groups > 0 || t.Now > 0 {
			e.dirty[group], turned = true, true
		}
	}
	return turned
}

// dropTallies forgets the losses of groups that are gone.
func (e *Evidence) dropTallies(groups map[string]bool) {
	for group, t := range e.tallies {
		if !groups[group] {
			e.tallied = e.tallied.Minus(t)
			delete(e.tallies, group)
		}
	}
}

// elsewhere returns the sum of the losses in all other groups.
func (e *Evidence) elsewhere(groups []string) plan.Tally {
	sum := e.tallied
	for _, group := range groups {
		sum = sum.Minus(e.tallies[group])
	}
	return sum
}
