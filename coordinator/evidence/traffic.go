package evidence

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/store"
)

// traffic is what a term has seen of load balancers. A listing is evidence like a List of machines:
// it has a start time, and a target that did not answer proves nothing.
type traffic struct {
	balancers map[string]*plan.Balancer  // replaced, never changed: snapshots have them
	members   map[string]map[string]bool // instances whose records have an entry, by balancer
	calls     map[membership]plan.MemberCalls
	places    places
}

// membership is an instance at a load balancer.
type membership struct{ balancer, instance string }

func newTraffic(of map[string]balancer.Capabilities) traffic {
	t := traffic{
		balancers: map[string]*plan.Balancer{}, members: map[string]map[string]bool{},
		calls: map[membership]plan.MemberCalls{}, places: newPlaces(),
	}
	for name, c := range of {
		t.balancers[name] = &plan.Balancer{Capabilities: c}
		t.members[name] = map[string]bool{}
	}
	return t
}

// seeTraffic records to which load balancers an instance's record assigns it.
func (e *Evidence) seeTraffic(rec *store.Instance) {
	for name, members := range e.traffic.members {
		i := slices.IndexFunc(rec.Traffic, func(t store.Traffic) bool { return t.Balancer == name })
		if i < 0 {
			e.dropMember(name, rec.ID)
			continue
		}
		members[rec.ID] = true
		if !e.traffic.balancers[name].Capabilities.Named {
			e.markPlaced(e.traffic.places.see(rec.ID, &rec.Traffic[i]))
		}
	}
}

// dropTraffic forgets an instance without a record.
func (e *Evidence) dropTraffic(id string) {
	for name := range e.traffic.members {
		e.dropMember(name, id)
	}
}

// dropMember forgets a membership; a call under way is remembered until it has ended.
func (e *Evidence) dropMember(name, id string) {
	delete(e.traffic.members[name], id)
	e.markPlaced(e.traffic.places.leave(membership{name, id}))
	if key := (membership{name, id}); !e.traffic.calls[key].Busy {
		delete(e.traffic.calls, key)
	}
}

// memberCalls returns the calls for the memberships of a record, in their order.
func (e *Evidence) memberCalls(rec *store.Instance) []plan.MemberCalls {
	if len(rec.Traffic) == 0 {
		return nil
	}
	calls := make([]plan.MemberCalls, len(rec.Traffic))
	for i, t := range rec.Traffic {
		calls[i] = e.traffic.calls[membership{t.Balancer, rec.ID}]
		calls[i].Taken = e.traffic.places.taken(rec.ID, placeOf(&t))
	}
	return calls
}

// Members returns the members of a load balancer as records have them, for a List, in order of ID.
// Where an address belongs to another member by now, the balancer has only that one.
func (e *Evidence) Members(name string, c *cache.Content) []balancer.Member {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []balancer.Member
	for _, id := range slices.Sorted(maps.Keys(e.traffic.members[name])) {
		for _, t := range c.Instances[id].Record.Traffic {
			if t.Balancer == name && (t.State.Wanted() || !e.traffic.places.taken(id, placeOf(&t))) {
				out = append(out, balancer.Member{Instance: id, Address: t.Address, Port: t.Port})
			}
		}
	}
	return out
}

// BalancerListed records what a load balancer listed, in a List begun at a time. It returns whether
// all targets answered.
func (e *Evidence) BalancerListed(name string, begun time.Time, l balancer.Listing, err error, c *cache.Content) bool {
	defer e.cfg.Wake()
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.traffic.balancers[name]
	now := *old
	e.traffic.balancers[name] = &now
	if err != nil {
		if now.Problem = err.Error(); now.SilentSince.IsZero() {
			now.SilentSince = begun
			e.markMembers(name, func(string) bool { return true })
		}
		return false
	}
	wasSilent := !old.SilentSince.IsZero() || old.Begun.IsZero()
	now.Begun, now.SilentSince, now.Problem = begun, time.Time{}, ""
	now.Members, now.Targets = byInstance(l)
	now.Strays, now.Down = e.strays(name, &now, c), 0
	for _, l := range now.Members {
		if l.Of(memberOf(l)).Unhealthy() {
			now.Down++
		}
	}
	if len(now.Strays) > 0 {
		e.dirty[""] = true
	}
	silent := len(l.Silent())
	all := wasSilent || silent != len(old.Targets.Silent()) || now.Down != old.Down
	e.markMembers(name, func(id string) bool {
		return all || e.awaits(name, id, old, c) || !sameMembers(old.Members[id], now.Members[id])
	})
	if wasSilent { // calls that failed while it was away are retried
		for key, calls := range e.traffic.calls {
			if key.balancer == name && !calls.RetryAt.IsZero() {
				calls.RetryAt = time.Time{}
				e.traffic.calls[key] = calls
				e.touch(key.instance)
			}
		}
	}
	return silent == 0
}

// awaits reports whether the leader waits for a change that a listing may show.
func (e *Evidence) awaits(name, id string, old *plan.Balancer, c *cache.Content) bool {
	rec := c.Instances[id].Record
	return rec.Phase != store.Running || slices.ContainsFunc(rec.Traffic, func(t store.Traffic) bool {
		return t.Balancer == name && t.State != store.TrafficServing
	}) || !old.Begun.After(e.traffic.calls[membership{name, id}].Done.Add(old.Capabilities.Consistency))
}

// markMembers marks the groups of members with a property as dirty.
func (e *Evidence) markMembers(name string, property func(id string) bool) {
	for id := range e.traffic.members[name] {
		if w := e.instances[id]; w != nil && property(id) {
			e.dirty[w.group] = true
		}
	}
}

// byInstance splits a listing.
func byInstance(l balancer.Listing) (members map[string]balancer.Listing, none balancer.Listing) {
	none.Targets = make([]balancer.Target, len(l.Targets))
	for i, t := range l.Targets {
		none.Targets[i] = balancer.Target{Name: t.Name, Err: t.Err, Foreign: t.Foreign}
	}
	members = map[string]balancer.Listing{}
	for i, t := range l.Targets {
		for _, st := range t.Members {
			of, there := members[st.Instance]
			if !there {
				of.Targets = slices.Clone(none.Targets)
				members[st.Instance] = of
			}
			of.Targets[i].Members = append(of.Targets[i].Members, st)
		}
	}
	return members, none
}

// memberOf returns the member whose entries a listing of one instance has.
func memberOf(l balancer.Listing) balancer.Member {
	for _, t := range l.Targets {
		if len(t.Members) > 0 {
			return t.Members[0].Member
		}
	}
	return balancer.Member{}
}

// sameMembers reports whether two listings of an instance differ in nothing that requires a plan:
// the number of connections of a serving member does not.
func sameMembers(a, b balancer.Listing) bool {
	return slices.EqualFunc(a.Targets, b.Targets, func(a, b balancer.Target) bool {
		return (a.Err == nil) == (b.Err == nil) && slices.EqualFunc(a.Members, b.Members, func(a, b balancer.Status) bool {
			return a.Address == b.Address && a.Port == b.Port && a.Weight == b.Weight && a.State == b.State &&
				a.Health == b.Health
		})
	})
}

// strays are members without a record that were deleted on purpose: a late call added them again. A
// member for which that is not known may be damage, and stays (SAFE-18).
func (e *Evidence) strays(name string, b *plan.Balancer, c *cache.Content) (strays []balancer.Member) {
	for id, l := range b.Members {
		key := e.cfg.Keys.Instance(id)
		if _, gone := c.Gone[key]; gone && !e.recorded(c, id) {
			strays = append(strays, slices.DeleteFunc(l.Has(id), func(m balancer.Member) bool {
				return e.traffic.places.taken(id, place{name, m.Address, m.Port})
			})...)
		}
	}
	slices.SortStableFunc(strays, func(a, b balancer.Member) int { return cmp.Compare(a.Instance, b.Instance) })
	return strays
}

// BusyMember marks the calls for a membership as under way; false if they are already.
func (e *Evidence) BusyMember(call plan.MemberCall) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := membership{call.Balancer, call.Member.Instance}
	calls := e.traffic.calls[key]
	if calls.Busy || e.traffic.balancers[call.Balancer] == nil {
		return false
	}
	calls.Busy = true
	e.traffic.calls[key] = calls
	e.touch(key.instance)
	return true
}

// longestMemberRetry bounds the wait between two calls for a member, so that a load balancer that
// is back has its members a few seconds later.
const longestMemberRetry = 4 * time.Second

// MemberAnswered records the outcome of a call to a load balancer; made is false if it was not made
// at all.
func (e *Evidence) MemberAnswered(call plan.MemberCall, made bool, err error) {
	defer e.cfg.Wake()
	e.mu.Lock()
	defer e.mu.Unlock()
	key := membership{call.Balancer, call.Member.Instance}
	calls, now := e.traffic.calls[key], e.cfg.Now()
	calls.Busy = false
	switch {
	case !made && err != nil:
		calls.RetryAt = now.Add(200 * time.Millisecond)
	case !made:
	case err != nil:
		calls.Failed++
		wait := min(longestMemberRetry, time.Second<<min(calls.Failed-1, 4))
		wait = wait/2 + e.cfg.Jitter(wait/2)
		if after, throttled := provider.RetryAfter(err); throttled {
			wait = after
		}
		calls.Problem, calls.RetryAt = err.Error(), now.Add(wait)
	default:
		calls = plan.MemberCalls{Last: call.Kind, Done: now}
	}
	e.traffic.calls[key] = calls
	if e.instances[key.instance] == nil {
		e.dropMember(key.balancer, key.instance)
	}
	e.touch(key.instance)
	e.dirty[call.Group] = true
}

// configured returns the load balancers of all replicas.
func configured(c *cache.Content) map[string]bool {
	names := map[string]bool{}
	for _, r := range c.Replicas {
		for _, name := range r.Record.Balancers {
			names[name] = true
		}
	}
	return names
}
