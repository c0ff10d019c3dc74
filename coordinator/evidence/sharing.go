package evidence

import (
	"bytes"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// sharing records which groups share a budget (REC-18): they are always planned together, on a
// cache that shows the last write to each of them.
type sharing struct {
	of     map[string][]string        // budget_groups of a group: as its spec says, and as it was accepted
	groups map[string]map[string]bool // groups of a budget_group
}

func newSharing() sharing {
	return sharing{of: map[string][]string{}, groups: map[string]map[string]bool{}}
}

// seeSharing records which budgets a group shares. It reads a spec only if the spec may name one.
func (e *Evidence) seeSharing(c *cache.Content, group string) {
	var now []string
	add := func(name string) {
		if name != "" && (len(now) == 0 || now[0] != name) {
			now = append(now, name)
		}
	}
	if a := c.Status[group].Record.Accepted; a != nil {
		add(a.BudgetGroup)
	}
	for _, kv := range []store.KV{c.Groups[group], c.Static[group]} {
		if bytes.Contains(kv.Value, []byte(`"budget_group"`)) {
			add(e.spec(c, group).Group.BudgetGroup)
			break
		}
	}
	s := &e.sharing
	for _, name := range s.of[group] {
		if delete(s.groups[name], group); len(s.groups[name]) == 0 {
			delete(s.groups, name)
		}
	}
	delete(s.of, group)
	for _, name := range now {
		if s.groups[name] == nil {
			s.groups[name] = map[string]bool{}
		}
		s.of[group], s.groups[name][group] = now, true
	}
}

// together adds to the dirty groups all that share a budget with one of them, and delays all of
// them if one is behind.
func (s *sharing) together(dirty map[string]bool, behind func(group string) bool) (late map[string]bool) {
	if len(s.of) == 0 {
		return nil
	}
	late = map[string]bool{}
	seen := map[string]bool{}
	for first := range dirty {
		if seen[first] || len(s.of[first]) == 0 {
			continue
		}
		all, wait := []string{first}, false
		seen[first] = true
		for i := 0; i < len(all); i++ {
			wait = wait || behind(all[i])
			for _, name := range s.of[all[i]] {
				for group := range s.groups[name] {
					if !seen[group] {
						seen[group], all = true, append(all, group)
					}
				}
			}
		}
		for _, group := range all {
			dirty[group], late[group] = true, wait
		}
	}
	return late
}

// budgetTurns returns the last written revisions of the keys of shared budgets.
func (e *Evidence) budgetTurns(c *cache.Content) map[string]store.Revision {
	if len(e.sharing.groups) == 0 {
		return nil
	}
	turns := make(map[string]store.Revision, len(e.sharing.groups))
	for name := range e.sharing.groups {
		turns[name] = c.Turns[plan.BudgetTurn(name)]
	}
	return turns
}
