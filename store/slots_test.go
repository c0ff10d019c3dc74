package store_test

import (
	"maps"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// The machines of one slot have one name; an instance in no slot is named by its ID. Variables are
// filled in, but none takes the place of the group or the slot.
//
// proves SLOT-1
func TestNamesOfSlots(t *testing.T) {
	for form, want := range map[string]string{
		"": "web-3-abc", "${group}-${slot}": "web-3", "db${slot}-${env}": "db3-prod", "${slot}.${other}": "3.${other}",
	} {
		in := store.Instance{ID: "web-3-abc", Group: "web", Slot: 3, Zone: "a", Spec: store.InstanceSpec{
			Slots: store.SlotsSpec{Name: form}, Vars: map[string]string{"env": "prod", "slot": "9"},
		}}
		facts := map[string]string{
			"group": "web", "instance": "web-3-abc", "name": want, "shard": "main", "slot": "3", "zone": "a",
		}
		if got := in.Facts("main"); !maps.Equal(got, facts) {
			t.Errorf("%s: got %v, want %v", form, got, facts)
		}
		in.Slot = -1
		if got := in.Facts("main")["name"]; got != in.ID {
			t.Errorf("%s: on demand it is named %s", form, got)
		}
	}
}

// A name that several slots would share is refused.
//
// proves SLOT-1
func TestNamesOfSlotsDiffer(t *testing.T) {
	g := validGroup()
	g.Slots.Name = "web"
	if err := g.Validate(); err != nil {
		t.Errorf("one slot: %v", err)
	}
	g.Size = 2
	if g.Validate() == nil {
		t.Error("two slots may have one name")
	}
	g.Slots.Name = "web-${slot}"
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
	g.Slots.Name, g.Size = "a123456789012345678901234567890123456789012345678901234567-${slot}", 100_000
	if g.Validate() == nil {
		t.Error("the name of the last slot is too long")
	}
}
