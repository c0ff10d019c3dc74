package evidence

import (
	"maps"
	"slices"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// place is where a load balancer has a member.
type place struct {
	balancer, address string
	port              int
}

func placeOf(t *store.Traffic) place { return place{t.Balancer, t.Address, t.Port} }

// places are where records have their members, at load balancers that know a member by its address
// alone. An address may be used again: while one instance leaves, another one joins there (LB-1).
type places struct {
	members map[place]map[string]bool // by instance: whether its record wants it there
	of      map[membership]place
}

func newPlaces() places {
	return places{members: map[place]map[string]bool{}, of: map[membership]place{}}
}

// see records where an instance's record has it. It returns the instances that this concerns.
func (p places) see(id string, t *store.Traffic) (concerned []string) {
	key, at := membership{t.Balancer, id}, placeOf(t)
	if was, known := p.of[key]; known && was != at {
		concerned = p.leave(key)
	}
	wanted, known := p.members[at][id]
	if known && wanted == t.State.Wanted() {
		return concerned
	}
	if p.members[at] == nil {
		p.members[at] = map[string]bool{}
	}
	p.members[at][id], p.of[key] = t.State.Wanted(), at
	return append(concerned, p.others(id, at)...)
}

// leave forgets where an instance's record had it. It returns the instances that this concerns.
func (p places) leave(key membership) (concerned []string) {
	at, known := p.of[key]
	if !known {
		return nil
	}
	delete(p.of, key)
	if delete(p.members[at], key.instance); len(p.members[at]) == 0 {
		delete(p.members, at)
	}
	return p.others(key.instance, at)
}

// others returns the other instances at a place, of which there is nearly always none.
func (p places) others(id string, at place) []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(p.members[at])), func(other string) bool { return other == id })
}

// taken reports whether the record of another instance wants that one there.
func (p places) taken(id string, at place) bool {
	for other, wanted := range p.members[at] {
		if wanted && other != id {
			return true
		}
	}
	return false
}

// markPlaced has instances planned whose place another one came to, or left.
func (e *Evidence) markPlaced(ids []string) {
	for _, id := range ids {
		if w := e.instances[id]; w != nil {
			e.touch(id)
			e.dirty[w.group] = true
		}
	}
}

// Taken reports whether a call would take another instance out: its address belongs to that one by
// now.
func (e *Evidence) Taken(call plan.MemberCall) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := place{call.Balancer, call.Member.Address, call.Member.Port}
	return call.Kind != plan.MemberAdd && e.traffic.places.taken(call.Member.Instance, at)
}
