package store

import (
	"regexp"
	"strconv"
	"strings"
)

// SlotsSpec is what belongs to the slots of a group and outlives the instances in them (SLOT-1).
type SlotsSpec struct {
	Name string `json:"name,omitempty"` // of the machine in a slot; ${group}, ${slot} and vars are filled in
}

var hostForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// NameIn returns the name of the machine that is made for an instance: the slot's, or the
// instance's ID where its group does not name slots or it is in none.
func (s InstanceSpec) NameIn(group string, slot int, instance string) string {
	if s.Slots.Name == "" || slot < 0 {
		return instance
	}
	return slotName(s.Slots.Name, group, slot, s.Vars)
}

func slotName(form, group string, slot int, vars map[string]string) string {
	values := []string{"${group}", group, "${slot}", strconv.Itoa(slot)}
	for name, value := range vars {
		if name != "group" && name != "slot" {
			values = append(values, "${"+name+"}", value)
		}
	}
	return strings.NewReplacer(values...).Replace(form)
}

// slotNameOK reports whether every slot gets a host name of its own.
func (g *Group) slotNameOK() bool {
	form := g.Slots.Name
	return form == "" || (strings.Contains(form, "${slot}") || g.Size <= 1) &&
		hostForm.MatchString(slotName(form, g.Name, max(0, g.Size-1), g.Vars))
}

// commonFacts are the facts of every machine, whatever its provider.
var commonFacts = []string{"group", "instance", "name", "shard", "slot", "zone"}

// Facts returns what the agent of an instance can fill in beside its group's variables, and its
// provider's own facts.
func (i *Instance) Facts(shard string) map[string]string {
	return map[string]string{
		"group": i.Group, "instance": i.ID, "name": i.Spec.NameIn(i.Group, i.Slot, i.ID), "shard": shard,
		"slot": strconv.Itoa(i.Slot), "zone": i.Zone,
	}
}
