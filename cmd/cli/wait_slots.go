package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leasehold/leasehold/store"
)

// slotCount compares the slots of a group with the spec.
type slotCount struct {
	members int // managed instances that are not past the point of no return
	running int // slots with an instance running on the wanted template, or a task that is done
	missing int // slots without any running instance
	surplus int // managed instances that have yet to go: more than one in a slot, or in a slot too many
	leaving int // past the point of no return
	// instances running on another template, or not relaunched since, in slots without one that is
	// up to date
	outdated []string
	underway []string // instances neither running nor leaving, with their phase, and what they wait for
}

// countSlots counts the instances of a group against its spec. The numbers of its slots do not
// matter: when a group shrinks, the oldest instances are removed, and the others keep their
// numbers.
func countSlots(spec store.Group, template string, instances map[string]store.Instance,
	reports map[string]store.Report,
) slotCount {
	var c slotCount
	type filling struct {
		any, current int
		outdated     string
	}
	slots := map[int]*filling{}
	ids := make([]string, 0, len(instances))
	for id := range instances {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		i := instances[id]
		switch {
		case !i.Managed && i.Phase != store.Deleting:
			continue
		case i.Phase == store.Deleting:
			c.leaving++
			continue
		}
		c.members++
		if i.Phase != store.Running && i.Phase != store.Finished {
			c.underway = append(c.underway, fmt.Sprintf("%s %s%s", id, i.Phase, checksLeft(i, reports[id])))
			continue
		}
		f := slots[i.Slot]
		if f == nil {
			f = &filling{}
			slots[i.Slot] = f
		}
		f.any++
		if i.Phase == store.Finished || i.Template == template && i.Relaunch >= spec.Relaunch.Number {
			f.current++
		} else if f.outdated == "" {
			f.outdated = id
		}
	}
	for _, n := range slices.Sorted(maps.Keys(slots)) {
		if f := slots[n]; f.current > 0 {
			c.running++
		} else {
			c.outdated = append(c.outdated, f.outdated)
		}
	}
	c.running = min(c.running, spec.Size)
	c.missing = max(spec.Size-len(slots), 0)
	c.surplus = max(c.members-spec.Size, 0)
	return c
}

// checksLeft says how many of an instance's checks pass, and which one does not.
func checksLeft(i store.Instance, r store.Report) string {
	if i.Phase != store.Checking || r.Healthy {
		return ""
	}
	pass, all, first := 0, 0, ""
	for _, c := range r.Checks {
		switch {
		case c.Optional:
			continue
		case c.Healthy:
			pass++
		case first == "":
			first = c.Name
		}
		all++
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf(": checks %d/%d, not %s", pass, all, first)
}
