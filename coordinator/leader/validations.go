package leader

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
)

// validationsAtOnce limits how many specs a provider is asked about at the same time: hanging
// answers must not use up what the provider has for other calls.
const validationsAtOnce = 2

// validations are specs that providers are asked about. They are asked beside all decisions: until
// the answer, the last accepted spec of the group is in force (SAFE-10).
type validations struct {
	groups  map[string]bool // that wait or are asked about
	waiting []Validate      // in order of arrival
	running map[string]int  // by provider
}

// validate queues a question about a group's spec, one at a time for each group.
func (l *Leader) validate(g *plan.Group) {
	v := &l.validations
	if g.Spec.Pending && !v.groups[g.Name] {
		v.groups[g.Name] = true
		v.waiting = append(v.waiting, Validate{Group: g.Name, Spec: g.Spec})
	}
}

// beginValidations asks the questions whose turn it is.
func (l *Leader) beginValidations(now time.Time) {
	v := &l.validations
	v.waiting = slices.DeleteFunc(v.waiting, func(c Validate) bool {
		provider := c.Spec.Group.Provider
		if v.running[provider] >= validationsAtOnce {
			return false
		}
		v.running[provider]++
		c.Begun = now
		l.do(c)
		return true
	})
}

// validated records the answer to a validation.
func (l *Leader) validated(e Validated) {
	delete(l.validations.groups, e.Group)
	l.validations.running[e.Spec.Group.Provider]--
	l.cfg.Evidence.Validated(e.Group, e.Spec, e.Problem)
}
