package evidence

import (
	"maps"
	"slices"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// concern is what a request is about.
type concern int

const (
	aGroup   concern = iota
	theShard         // as a whole
	nothing          // that we know
	unclear          // what we cannot read, or have not seen yet: the order waits
)

// concerns returns what a request is about, and its group if it has one.
func (e *Evidence) concerns(c *cache.Content, r store.Request) (what concern, group string) {
	if r.Instance == "" {
		switch {
		case r.Group == "":
			return theShard, ""
		case known(c, r.Group):
			return aGroup, r.Group
		default:
			return nothing, ""
		}
	}
	in, recorded := c.Instances[r.Instance]
	switch {
	case recorded:
		return aGroup, in.Record.Group
	case c.Unreadable[e.cfg.Keys.Instance(r.Instance)] != "":
		return unclear, ""
	case r.Kind == store.RequestAdopt:
		return e.adoption(c, r.Instance)
	default:
		return nothing, ""
	}
}

// adoption returns the group that should adopt a machine: the group in its tag. While a provider
// may still list the machine, the order waits.
func (e *Evidence) adoption(c *cache.Content, id string) (what concern, group string) {
	x, extra := e.extras[id]
	switch {
	case extra && known(c, x.Group):
		return aGroup, x.Group
	case !extra && len(e.listed) < len(e.cfg.Capabilities):
		return unclear, ""
	default:
		return nothing, ""
	}
}

// known reports whether anything of a group exists.
func known(c *cache.Content, group string) bool {
	_, dynamic := c.Groups[group]
	_, static := c.Static[group]
	_, status := c.Status[group]
	return dynamic || static || status || len(c.ByGroup[group]) > 0
}

// requests returns the requests that concern a group, in order.
func (e *Evidence) requests(c *cache.Content, group string) []store.Versioned[store.Request] {
	if len(c.Requests) == 0 || !known(c, group) {
		return nil
	}
	ids := slices.Clone(c.ToGroup[group])
	for _, id := range c.ByGroup[group] {
		ids = append(ids, c.ToInstance[id]...)
	}
	for _, x := range e.wanted(c, group) {
		ids = append(ids, adoptions(c, x.Instance)...)
	}
	slices.Sort(ids)
	var out []store.Versioned[store.Request]
	for _, id := range ids {
		out = append(out, c.Requests[id])
	}
	return out
}

// wanted returns the extra machines with the group's tag that an operator wants adopted, in order.
func (e *Evidence) wanted(c *cache.Content, group string) []plan.Extra {
	if len(e.tagged[group]) == 0 || !known(c, group) {
		return nil
	}
	var out []plan.Extra
	filled := fillings{}
	for _, id := range slices.Sorted(maps.Keys(e.tagged[group])) {
		if _, recorded := c.Instances[id]; recorded || c.Unreadable[e.cfg.Keys.Instance(id)] != "" {
			continue
		}
		if len(adoptions(c, id)) > 0 {
			x := e.extras[id]
			e.judgeExtra(c, &x, filled)
			out = append(out, x)
		}
	}
	return out
}

// adoptions returns the orders to adopt a machine.
func adoptions(c *cache.Content, instance string) (ids []string) {
	for _, id := range c.ToInstance[instance] {
		if c.Requests[id].Record.Kind == store.RequestAdopt {
			ids = append(ids, id)
		}
	}
	return ids
}

// shard adds to a snapshot what concerns the shard as a whole: machines and requests that belong to
// no group.
func (e *Evidence) shard(c *cache.Content, s *plan.Snapshot) {
	filled := fillings{}
	for _, id := range slices.Sorted(maps.Keys(e.extras)) {
		x := e.extras[id]
		x.Paused = e.paused(c, x.Group)
		e.judgeExtra(c, &x, filled)
		s.Extras = append(s.Extras, x)
	}
	for name, r := range c.Replicas {
		e.seeUnnoted(name, r.Record)
	}
	if !e.unnoted.IsZero() {
		s.UnnotedUntil = e.unnoted.Add(c.Shard.Record.Settings.OrphanGrace.D())
	}
	for _, id := range slices.Sorted(maps.Keys(c.Requests)) {
		r := c.Requests[id]
		switch what, _ := e.concerns(c, r.Record); what {
		case theShard:
			s.Orders = append(s.Orders, r)
		case nothing:
			s.Lost = append(s.Lost, r)
		case aGroup, unclear: // shown to the group, or not at all
		}
	}
}
