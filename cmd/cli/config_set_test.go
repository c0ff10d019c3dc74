package cli

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Another change of the shard's record, such as a hold, is kept; the settings do not overwrite it.
//
// proves REC-20
func TestConfigSetLosesToAnotherEdit(t *testing.T) {
	w := newWorld(t)
	w.serve()
	shard := func() store.Shard {
		t.Helper()
		kv, err := w.st.Get(t.Context(), w.keys.Shard())
		if err != nil {
			t.Fatal(err)
		}
		v, err := store.Decode[store.Shard](kv)
		if err != nil {
			t.Fatal(err)
		}
		return v.Record
	}
	held := shard()
	held.Hold = &store.Hold{By: "coord-a", Why: "4 extra machines", At: noon}
	w.race(func() { w.put(store.KindShard, "", held) })
	if code, out, stderr := w.run("config", "set", "create_rate=5"); code != Conflict ||
		!strings.Contains(stderr, "its record was changed in the meantime; nothing was written") ||
		strings.Contains(out, "changed") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if s := shard(); s.Hold == nil || s.Settings.CreateRate != 10 {
		t.Errorf("the record is %+v", s)
	}
	w.must("config", "set", "create_rate=5", "compact_after=0")
	if s := shard(); s.Hold == nil || s.Settings.CreateRate != 5 || *s.Settings.CompactAfter != 0 || s.ID != held.ID {
		t.Errorf("the record is %+v", s)
	}
}

// A budget that no group names is no error, since its groups may come later; but it may be
// misspelt.
//
// proves REC-18, REC-20
func TestABudgetThatNoGroupNames(t *testing.T) {
	w := newWorld(t)
	w.serve()
	g := webGroup(1)
	g.BudgetGroup = "shop"
	w.put(store.KindGroups, "web", g)
	for _, c := range []struct{ set, says string }{
		{"shop:2", ""},
		{"shop:2,shpo:3", "warning: budget_groups: no group names the budget_group shpo: did you mean shop?\n"},
		{"shop:3,shpo:3", ""}, // it was said
		{"shop:3,billing:1", "warning: budget_groups: no group names the budget_group billing\n"},
		{"none", ""},
	} {
		code, out, stderr := w.run("config", "set", "budget_groups="+c.set)
		if code != Done || !strings.Contains(out, "changed rev") || stderr != c.says {
			t.Errorf("%s: exit %d: %s%s", c.set, code, out, stderr)
		}
	}
}
