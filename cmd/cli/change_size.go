package cli

import "fmt"

// sizes returns the sizes in force before and after the change. If the size follows the load, load
// continues from its last choice.
func (c groupChange) sizes() (before, after int) {
	return c.before.SizeAt(c.loadSize, c.readAt), c.after.SizeAt(c.loadSize, c.readAt)
}

// shrinks reports whether the change removes machines.
func (c groupChange) shrinks() bool {
	if c.isNew() || c.remaining > 0 {
		return c.after.SizeAt(nil, c.readAt) < c.remaining
	}
	if c.before == nil || c.broken != nil {
		return false
	}
	before, after := c.sizes()
	return after < before
}

// A typed digit too many costs money before anyone sees it: the operator confirms growth to so many
// times the size and by so many instances.
const (
	growsMuchTimes = 10
	growsMuchBy    = 50 // instances
)

// growsMuch reports whether the group grows so much that the size may be a mistake.
func (c groupChange) growsMuch() bool {
	if c.isNew() || c.before == nil || c.broken != nil {
		return false
	}
	before, after := c.sizes()
	return after >= growsMuchTimes*before && after-before >= growsMuchBy
}

// describeGrowth describes a much larger size, for the confirmation.
func (c groupChange) describeGrowth() string {
	before, after := c.sizes()
	return fmt.Sprintf("group %s grows from %d to %s", c.name, before, counted(after, "instance", "instances"))
}

// describeShrinking describes a smaller size, for the confirmation.
func (c groupChange) describeShrinking() string {
	if c.isNew() {
		return fmt.Sprintf("group %s, whose key is missing, has %s left and shrinks to %s", c.name,
			counted(c.remaining, "instance", "instances"), counted(c.after.Size, "instance", "instances"))
	}
	if c.remaining > 0 {
		return fmt.Sprintf("group %s, whose spec of revision %d is not in force, has %s and shrinks to %s", c.name,
			c.rev(), counted(c.remaining, "instance", "instances"), counted(c.after.Size, "instance", "instances"))
	}
	before, after := c.sizes()
	return fmt.Sprintf("group %s shrinks from %d to %s", c.name, before, counted(after, "instance", "instances"))
}
