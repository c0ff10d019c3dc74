package cache

import (
	"slices"

	"github.com/leasehold/leasehold/store"
)

// takeInstance stores an instance, and adds it to the index of its group.
func (c *Content) takeInstance(v store.Versioned[store.Instance]) {
	id, group := v.Record.ID, v.Record.Group
	if old, had := c.Instances[id]; !had || old.Record.Group != group {
		c.dropInstance(id)
		insert(c.ByGroup, group, id)
	}
	c.Instances[id] = v
}

func (c *Content) dropInstance(id string) {
	if old, had := c.Instances[id]; had {
		remove(c.ByGroup, old.Record.Group, id)
		delete(c.Instances, id)
	}
}

// takeRequest stores a request, and adds it to the index of its group or instance.
func (c *Content) takeRequest(v store.Versioned[store.Request]) {
	c.dropRequest(v.Record.ID)
	insert(c.addressed(v.Record))
	c.Requests[v.Record.ID] = v
}

func (c *Content) dropRequest(id string) {
	if old, had := c.Requests[id]; had {
		remove(c.addressed(old.Record))
		delete(c.Requests, id)
	}
}

// addressed returns the index that a request is in, its place there, and its ID.
func (c *Content) addressed(r store.Request) (index map[string][]string, of, id string) {
	if r.Instance != "" {
		return c.ToInstance, r.Instance, r.ID
	}
	return c.ToGroup, r.Group, r.ID
}

// takeStray stores an agent without a record, and adds it to the index of the group in its claim.
func (c *Content) takeStray(id string, v store.Versioned[store.Stray]) {
	c.dropStray(id)
	c.Strays[id] = v
	if claim := v.Record.Claim; claim != nil {
		if c.Claiming[claim.Group] == nil {
			c.Claiming[claim.Group] = map[string]bool{}
		}
		c.Claiming[claim.Group][id] = true
	}
}

func (c *Content) dropStray(id string) {
	if claim := c.Strays[id].Record.Claim; claim != nil {
		if delete(c.Claiming[claim.Group], id); len(c.Claiming[claim.Group]) == 0 {
			delete(c.Claiming, claim.Group)
		}
	}
	delete(c.Strays, id)
}

// insert puts an ID into its place in an index. Listings arrive in order, so their IDs go to the
// end.
func insert(index map[string][]string, of, id string) {
	ids := index[of]
	if i, there := slices.BinarySearch(ids, id); !there {
		index[of] = slices.Insert(ids, i, id)
	}
}

func remove(index map[string][]string, of, id string) {
	ids := index[of]
	i, there := slices.BinarySearch(ids, id)
	switch {
	case !there:
	case len(ids) == 1:
		delete(index, of)
	default:
		index[of] = slices.Delete(ids, i, i+1)
	}
}
