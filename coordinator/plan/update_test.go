package plan_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// A change of checks asks for no more than telling the agents.
//
// proves ROLL-2, DET-9
func TestChangeOfChecksIsALiveUpdate(t *testing.T) {
	group := func(checks ...store.Check) store.Group {
		g := store.DefaultGroup()
		g.Name, g.Provider, g.Checks = "web", "mem", checks
		g.Complete()
		return g
	}
	on := func(port store.Port) store.Check {
		c := store.DefaultCheck()
		c.TCP = &store.TCPCheck{Port: port}
		return c
	}
	strict := on("80")
	strict.UnhealthyThreshold = 3
	for name, c := range map[string]struct {
		was, now store.Group
		action   string
		why      string
	}{
		"none":      {group(), group(), "", ""},
		"the same":  {group(on("80")), group(on("80")), "", ""},
		"first one": {group(), group(on("80")), store.ActionLiveUpdate, "outdated: checks"},
		"last one":  {group(on("80")), group(), store.ActionLiveUpdate, "outdated: checks"},
		"another":   {group(on("80")), group(on("81")), store.ActionLiveUpdate, "outdated: checks"},
		"stricter":  {group(on("80")), group(strict), store.ActionLiveUpdate, "outdated: checks"},
	} {
		spec := c.was.InstanceSpec()
		rec := store.Instance{
			Managed: true, Phase: store.Running, Since: time.Unix(0, 0), Spec: spec,
			Template: spec.TemplateHash(),
		}
		if action, why := plan.Update(rec, c.now); action != c.action || why != c.why {
			t.Errorf("%s: got %q, %q; want %q, %q", name, action, why, c.action, c.why)
		}
	}
}
