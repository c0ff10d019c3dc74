package store_test

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// An error of a field shows the value as it is, also where the field is left out of a spec that is
// stored with its default, or may not stand beside another.
func TestWrongValuesBesideOthersAreShown(t *testing.T) {
	for _, test := range []struct {
		path   string
		value  any
		beside func(*store.Group)
		shown  string
		rule   string
	}{
		{"provider", "none", func(g *store.Group) { g.Size = 1 }, `"none"`, ""},
		{"template.instance_types", []string{"a", "a"}, nil, "[a a]", "PROV-5"},
		{"template.instance_types", []string{"a"}, func(g *store.Group) { g.Template.InstanceType = "b" }, "[a]", "PROV-5"},
		{"template.tags", map[string]string{"a b": "c"}, nil, "map[a b:c]", "PROV-8"},
		{"slots.name", "Web", nil, `"Web"`, "SLOT-1"},
		{"capacity.on_demand_base", 2, func(g *store.Group) { g.Size = 1 }, "2", "SPOT-4"},
		{"capacity.on_demand_base", -1, nil, "-1", "SPOT-4"},
		{"capacity.spot", 101, nil, "101", "SPOT-4"},
		{"capacity.spot", 1, func(g *store.Group) { g.Spot.Enabled = true }, "1", "SPOT-4"},
		{"capacity.fallback", "spot", nil, `"spot"`, "SPOT-4"},
		{"capacity.return_after", "4m59s", nil, "4m59s", "SPOT-4"},
		{"rollout.canary_duration", "-1s", nil, "-1s", "ROLL-5"},
		{"rollout.order", "host", nil, `"host"`, "ROLL-8"},
		{"budget_group", "Shop", nil, `"Shop"`, "REC-18"},
	} {
		g := web()
		if test.beside != nil {
			test.beside(&g)
		}
		setField(t, &g, test.path, test.value)
		errs := fieldErrors(g.Validate())
		if len(errs) != 1 || errs[0].Path != test.path || errs[0].Value != test.shown || errs[0].Rule != test.rule {
			t.Errorf("%s: %v is refused as %v, want %s (%s)", test.path, test.value, g.Validate(), test.shown, test.rule)
		}
	}
}

// What is just allowed beside others is taken.
func TestValuesThatMayStandBesideOthers(t *testing.T) {
	for name, change := range map[string]func(*store.Group){
		"no machines of a provider":    func(g *store.Group) { g.Provider = store.ProviderNone },
		"as many tags as there may be": func(g *store.Group) { g.Template.Tags = manyTags(30) },
		"one machine on demand":        func(g *store.Group) { g.Size, g.Capacity.OnDemandBase = 1, 1 },
		"all on spot machines":         func(g *store.Group) { g.Capacity.Spot = 100 },
	} {
		g := web()
		change(&g)
		if err := g.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
