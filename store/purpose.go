package store

// Purpose is what an instance is made for, or why it leaves. Decisions rest on it; the rule and the
// text of a Decision are for readers alone.
type Purpose string

// The purposes.
const (
	PurposeHeal     Purpose = "heal"     // one has failed
	PurposeNotice   Purpose = "notice"   // one will end soon, by the provider's word (SPOT-2)
	PurposeEvacuate Purpose = "evacuate" // its zone or host is to be emptied (DRAIN-3)
	PurposeOrder    Purpose = "order"    // an operator's
	PurposeRoll     Purpose = "roll"     // its group has changed
	PurposeAge      Purpose = "age"      // one is too old
	PurposeZones    Purpose = "zones"    // evens the zones (REC-17)
	PurposeShares   Purpose = "shares"   // of spot machines and others (SPOT-4)
	PurposeSize     Purpose = "size"     // the group grows or shrinks
	PurposeAdopt    Purpose = "adopt"    // its machine was there already (REC-8)

	// For leaving alone.
	PurposeRoom  Purpose = "room"  // a failed one gets its room (HEAL-8)
	PurposeSpare Purpose = "spare" // another keeps its slot
	PurposeEnd   Purpose = "end"   // its group or its task is over
)

// Planned reports whether an instance that leaves for this purpose works, and leaves by plan, so
// that its workload may finish first (BUSY-1).
func (p Purpose) Planned() bool {
	switch p {
	case PurposeRoll, PurposeAge, PurposeZones, PurposeShares, PurposeSize:
		return true
	default:
		return false
	}
}

// MadeFor returns what the instance was made for. Where a release before did not say, it is what
// the other fields allow.
func (i *Instance) MadeFor() Purpose {
	switch {
	case i.Purpose != "":
		return i.Purpose
	case i.Converts:
		return PurposeShares
	case i.Rebalances:
		return PurposeZones
	case i.Replaces != "":
		return PurposeHeal
	default:
		return PurposeSize
	}
}

// LeavesBecause returns why the instance leaves. The release before wrote rules alone: the drain's,
// or, of an instance that goes without one, the rule of its last step.
func (i *Instance) LeavesBecause() Purpose {
	switch {
	case i.Leaves != "":
		return i.Leaves
	case i.Drain != nil:
		return leavesBy(i.Drain.Rule, PurposeHeal)
	case i.Phase == Draining || i.Phase == Deleting:
		return leavesBy(i.Last.Rule, "")
	default:
		return ""
	}
}

// leavesBy returns why an instance leaves by a rule.
func leavesBy(rule string, other Purpose) Purpose {
	switch rule {
	case "ROLL-1":
		return PurposeRoll
	case "HEAL-8":
		return PurposeRoom
	default:
		return other
	}
}

// For returns what the instance that takes the place is made for.
func (v *Vacated) For() Purpose {
	switch {
	case v.Purpose != "":
		return v.Purpose
	case v.Roll:
		return PurposeRoll
	default:
		return PurposeHeal
	}
}
