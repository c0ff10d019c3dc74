package reason

import "github.com/leasehold/leasehold/store"

// Omitted stands for a name that differs between things that are summed up.
const Omitted = "…"

// FoldedEffect is an effect without the names of instances and, if zones, of zones. What is equal
// then is summed up.
func FoldedEffect(e store.Effect, zones bool) store.Effect {
	fold(&e.Instance)
	if zones {
		fold(&e.Zone)
	}
	fold(&e.Then.Instance)
	return e
}

// FoldedCause sums up two causes: without the names in which they differ. They are the same if they
// differ in names and numbers at most.
func FoldedCause(a, b store.Cause) (folded store.Cause, same bool) {
	a, b = withoutNames(a, false), withoutNames(b, false)
	if !sameCause(a, b) {
		if x, y := withoutNames(a, true), withoutNames(b, true); sameCause(x, y) {
			a, b = x, y
		}
	}
	if a.Also != nil && b.Also != nil && a.Also.Left != b.Also.Left {
		fold(&a.Also.Left) // a text, which may name instances
	}
	return a, sameCause(a, b)
}

// withoutNames is a cause without the names of instances and, if zones, of zones.
func withoutNames(c store.Cause, zones bool) store.Cause {
	fold(&c.Heir)
	switch c.Kind {
	case store.CauseUnneeded, store.CauseCalm, store.CauseTaskDone, store.CauseRollStopped, store.CauseRelieved:
		fold(&c.Other)
	case store.CauseGivesWay:
		fold(&c.Other)
		fold(&c.Name)
	case store.CauseRecordLost, store.CauseUnrecorded, store.CauseUnrecordedSlot:
		fold(&c.Name)
	case store.CauseUneven:
		if zones {
			fold(&c.Other)
			fold(&c.Name)
		}
	case store.CauseFullZone, store.CauseFullZoneEven, store.CauseEvacuated:
		if zones {
			fold(&c.Name)
		}
	default:
	}
	if c.Also != nil {
		also := *c.Also
		for _, name := range []*string{&also.Keeper, &also.Until, &also.Place} {
			fold(name)
		}
		c.Also = &also
	}
	return c
}

// sameCause reports whether two causes without names differ in numbers at most.
func sameCause(a, b store.Cause) bool {
	var of [2]store.CauseAlso
	for i, c := range []*store.Cause{&a, &b} {
		c.Count, c.Limit, c.For, c.Revision, c.Load = 0, 0, 0, 0, nil
		if c.Also != nil {
			of[i] = *c.Also
			of[i].Left = ""
		}
		c.Also = nil
	}
	return a == b && of[0] == of[1]
}

func fold(name *string) {
	if *name != "" {
		*name = Omitted
	}
}

// FoldedBlocked is blocked work without the names of instances. What is equal is summed up.
func FoldedBlocked(b store.Blocked) store.Blocked {
	b = Cause(b)
	fold(&b.Of.Other)
	b.Of.Cause = withoutNames(b.Of.Cause, false)
	return b
}
