package coordinator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/settings"
	"github.com/leasehold/leasehold/store"
)

// balancerNames returns the load balancers that this replica can use, in order.
func (r *Replica) balancerNames() []string { return slices.Sorted(maps.Keys(r.deps.Balancers)) }

// balancerCapabilities returns their capabilities.
func (r *Replica) balancerCapabilities() map[string]balancer.Capabilities {
	out := map[string]balancer.Capabilities{}
	for name, b := range r.deps.Balancers {
		out[name] = b.Capabilities()
	}
	return out
}

// validateBalancers returns what is wrong with a group's use of load balancers, or "".
func (r *Replica) validateBalancers(g *store.Group) string {
	for _, use := range g.LoadBalancers {
		b, known := r.deps.Balancers[use.Name]
		if !known {
			have := "it has none"
			if names := r.balancerNames(); len(names) > 0 {
				have = strings.Join(names, ", ")
			}
			return fmt.Sprintf("load balancer %q is not one of this coordinator's: %s", use.Name, have)
		}
		var err error
		if schema := b.Capabilities().Settings; schema != nil {
			err = settings.Check(schema, use.Settings)
		}
		if err == nil {
			err = b.Validate(balancer.Use{Weight: use.Weight, Settings: use.Settings})
		}
		if err != nil {
			return fmt.Sprintf("load balancer %s: %s", use.Name, err)
		}
	}
	return ""
}

// listMembers lists what a load balancer has.
func (t *term) listMembers(ctx context.Context, c leader.ListMembers) leader.BalancerListed {
	call, cancel := context.WithDeadline(ctx, c.Deadline)
	defer cancel()
	l, err := t.r.deps.Balancers[c.Balancer].List(call, t.shard.ID, c.Recorded)
	t.r.deps.Meter.Called(c.Balancer, "list members", time.Since(c.Begun), err)
	failing := t.noteList(ctx, store.Silent{Balancer: c.Balancer}, err)
	switch {
	case err != nil && !failing && ctx.Err() == nil:
		t.log.Error("load balancer does not answer: nothing is known of its members", "balancer", c.Balancer, "error", err)
	case err == nil && failing:
		t.log.Info("load balancer answers again", "balancer", c.Balancer)
	}
	return leader.BalancerListed{Balancer: c.Balancer, Begun: c.Begun, Listing: l, Err: err}
}

// callMember calls a load balancer for a member if all conditions of the call still hold in etcd.
// So a leader that was deposed meanwhile does only what its successor would do.
func (t *term) callMember(ctx context.Context, c leader.CallMember) leader.BalancerAnswered {
	m, kind := c.Call.Member, string(c.Call.Kind)
	if err := t.stands(ctx, c.Call.Conditions); err != nil {
		t.log.Debug("call not begun", "balancer", c.Call.Balancer, "instance", m.Instance, "error", err)
		return leader.BalancerAnswered{Call: c.Call, Err: err}
	}
	call, cancel := context.WithDeadline(ctx, c.Deadline)
	defer cancel()
	b := t.r.deps.Balancers[c.Call.Balancer]
	t.r.deps.Before("balancer "+kind, m.Instance)
	var err error
	switch c.Call.Kind {
	case plan.MemberAdd:
		err = b.Add(call, t.shard.ID, m)
	case plan.MemberDrain:
		err = b.Drain(call, t.shard.ID, m)
	case plan.MemberRemove:
		err = b.Remove(call, t.shard.ID, m)
	}
	t.r.deps.Meter.Called(c.Call.Balancer, kind+" member", time.Since(c.Begun), err)
	t.r.deps.Before("balancer did "+kind, m.Instance)
	log := t.log.With("balancer", c.Call.Balancer, "call", kind, "group", c.Call.Group, "instance", m.Instance)
	switch {
	case err == nil:
		log.Info("load balancer changed", "address", m.Address, "port", m.Port)
		t.recordMember(ctx, c.Call)
	case ctx.Err() == nil:
		log.Error("load balancer's call failed", "error", err)
	}
	return leader.BalancerAnswered{Call: c.Call, Made: true, Err: err}
}

// recordMember writes to the journal what was restored (LB-3), or what an instance has left behind.
// It repeats nothing that a record's change already says.
func (t *term) recordMember(ctx context.Context, c plan.MemberCall) {
	entry := store.JournalEntry{
		Kind: store.EntryCall, Rule: "LB-1", Group: c.Group, Instance: c.Member.Instance, Slot: c.Slot, Revision: c.Record,
	}
	switch {
	case c.Again:
		entry.Rule, entry.Effect.Kind = "LB-3", store.EffectPutBack
		entry.Why = "it was there, and another client has changed or removed it"
	case c.Group == "":
		entry.Rule, entry.Effect.Kind = "LB-3", store.EffectTakenOut
		entry.Why = "the instance was deleted before"
	case c.Kind == plan.MemberRemove:
		entry.Effect.Kind, entry.Why = store.EffectTakenOut, "it leaves"
	default:
		return
	}
	entry.Effect.Names = []string{c.Balancer}
	entry.What = reason.Effect(entry.Effect)
	t.writeJournal(ctx, entry)
}
