package plan

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A restart of a group goes zone by zone also where an instance stays on another template because
// it is protected. A rollback does not.
//
// proves ROLL-8, REC-13
func TestWhichRollGoesZoneByZone(t *testing.T) {
	for name, c := range map[string]struct {
		last     []func(*store.Instance) // what is special about the third
		relaunch int
		want     string // the zone in which it begins
	}{
		"a restart": {nil, 1, "a"},
		"a restart, and one stays on another template": {[]func(*store.Instance){outdated, protected}, 1, "a"},
		"a rollback":               {[]func(*store.Instance){outdated}, 0, ""},
		"a rollback and a restart": {[]func(*store.Instance){outdated}, 1, ""},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) {
			g.Size, g.Rollout.Order = 3, store.OrderZone
			g.Relaunch = store.Relaunch{Number: c.relaunch, Action: store.ActionRecreate}
		})
		w.place("a", 0, store.Running, zone("a"))
		w.place("b", 1, store.Running, zone("b"))
		w.place("c", 2, store.Running, append(c.last, zone("b"))...)
		g := w.spec().Record
		good := store.GoodSpec{Template: g.InstanceSpec().TemplateHash(), Spec: g.InstanceSpec()}
		w.put(w.keys.Status(w.group), store.Status{Schema: store.Schema, Group: w.group, LastGood: &good, Accepted: &g})
		if r := w.drafted().roll.rollout; r == nil || r.Zone != c.want {
			t.Errorf("%s: %+v, want zone %q", name, r, c.want)
		}
	}
}
