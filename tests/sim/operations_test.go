package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// operations are what operators do.
var operations = []kind{
	{"size", 8, func(tr *trial) {
		n := tr.between(0, 8)
		tr.edit(fmt.Sprintf("size %d", n), func(g *store.Group) {
			g.Size, g.Capacity.OnDemandBase = n, min(n, g.Capacity.OnDemandBase)
		})
	}},
	{"budget", 3, func(tr *trial) { tr.edit("budget", tr.budget) }},
	{"policy", 2, func(tr *trial) {
		p := pick(tr, store.HealRecreate, store.HealRestart, store.HealNone)
		tr.edit("heal.policy "+p, func(g *store.Group) { g.Heal.Policy = p })
	}},
	{"strategy", 2, func(tr *trial) {
		s := pick(tr, store.StrategyProactive, store.StrategyOpportunistic)
		tr.edit("rollout.strategy "+s, func(g *store.Group) { g.Rollout.Strategy = s })
	}},
	{"template", 5, func(tr *trial) {
		kind := fmt.Sprintf("type%d", tr.between(1, 4))
		tr.edit("instance_type "+kind, func(g *store.Group) { g.Template.InstanceType = kind })
	}},
	{"bad template", 2, func(tr *trial) {
		kind, flaw := fmt.Sprintf("bad%d", tr.between(1, 1000)), sim.NeverHealthy
		if tr.chance(30) {
			flaw = sim.NeverRegisters
		}
		tr.edit("instance_type "+kind, func(g *store.Group) {
			g.Template.InstanceType = kind
			hash := g.InstanceSpec().TemplateHash()
			tr.badHash = append(tr.badHash, hash)
			tr.w.SpoilTemplate(hash, flaw)
		})
	}},
	{"vars", 5, func(tr *trial) {
		key, value := pick(tr, "greeting", "colour"), fmt.Sprintf("v%d", tr.between(1, 9))
		tr.edit("vars."+key+" "+value, func(g *store.Group) {
			g.Vars = maps.Clone(g.Vars)
			if g.Vars == nil {
				g.Vars = map[string]string{}
			}
			g.Vars[key] = value
		})
	}},
	{"run", 2, func(tr *trial) {
		arg := fmt.Sprintf("--n=%d", tr.between(1, 9))
		tr.edit("workload.run "+arg, func(g *store.Group) { g.Workload.Run = []string{"./web", arg} })
	}},
	{"relaunch", 3, func(tr *trial) {
		how := pick(tr, store.ActionRestart, store.ActionRecreate)
		tr.edit("relaunched by "+how, func(g *store.Group) {
			g.Relaunch = store.Relaunch{Number: g.Relaunch.Number + 1, Action: how}
		})
	}},
	{"pause", 2, func(tr *trial) { tr.edit("paused", func(g *store.Group) { g.Paused = true }) }},
	{"resume", 5, func(tr *trial) { tr.edit("resumed", func(g *store.Group) { g.Paused = false }) }},
	{"stop", 1, func(tr *trial) { tr.edit("stopped", func(g *store.Group) { g.Stopped = true }) }},
	{"start", 4, func(tr *trial) { tr.edit("started", func(g *store.Group) { g.Stopped = false }) }},
	{"delete group", 1, func(tr *trial) { tr.edit("deleted", func(g *store.Group) { g.Deleting = true }) }},
	{"apply again", 1, func(tr *trial) {
		if g := tr.group(pick(tr, "web", "db", "job")); tr.w.Reachable() &&
			tr.w.Value(tr.w.Keys().Group(g.Name)) == nil && !tr.spoiled[g.Name] {
			tr.good[g.Name] = g
			tr.w.Apply(g)
		}
	}},
	{"spoil", 1, spoil},
	{"mend", 4, func(tr *trial) { tr.mend() }},
	{"hold", 1, func(tr *trial) {
		if tr.w.Reachable() {
			tr.w.Hold()
		}
	}},
	{"release", 4, func(tr *trial) {
		if tr.w.Reachable() && tr.w.Shard().Hold != nil {
			tr.w.Release()
		}
	}},
	{"order replace", 3, func(tr *trial) { tr.orderSome(store.RequestReplace, "") }},
	{"order delete", 2, func(tr *trial) { tr.orderSome(store.RequestDelete, "") }},
	{"order drain", 2, func(tr *trial) { tr.orderSome(store.RequestDrain, "") }},
	{"order drained", 3, func(tr *trial) { tr.orderSome(store.RequestDrained, "") }},
	{"order restart", 3, func(tr *trial) { tr.orderSome(store.RequestRestart, "") }},
	{"order protect", 4, func(tr *trial) {
		tr.orderSome(store.RequestProtect,
			pick(tr, store.ProtectRemoval, store.ProtectHeal, store.ProtectOff, store.ProtectOff))
	}},
	{"order retry", 2, func(tr *trial) { tr.orderGroup(store.RequestRetry) }},
	{"order create", 2, func(tr *trial) { tr.orderGroup(store.RequestCreate) }},
	{"order override", 1, func(tr *trial) { tr.orderGroup(store.RequestOverrideStorm) }},
	{"evacuate", 1, func(tr *trial) {
		_, z := tr.someZone()
		tr.order(store.Request{Kind: store.RequestEvacuate, Zone: z})
	}},
	{"end evacuation", 4, func(tr *trial) {
		for _, zone := range slices.Sorted(maps.Keys(tr.w.Shard().Evacuated)) {
			tr.order(store.Request{Kind: store.RequestReturn, Zone: zone})
		}
	}},
	{"extra machine", 1, plant},
	{"adopt", 2, func(tr *trial) {
		if n := len(tr.planted); n > 0 {
			tr.order(store.Request{Kind: store.RequestAdopt, Instance: tr.planted[tr.rng.IntN(n)]})
		}
	}},
}

func (tr *trial) order(r store.Request) {
	if tr.w.Reachable() {
		tr.w.Order(r)
	}
}

func (tr *trial) orderSome(kind store.RequestKind, mode string) {
	if rec, ok := tr.someInstance(); ok {
		tr.order(store.Request{Kind: kind, Instance: rec.ID, Group: rec.Group, Mode: mode})
	}
}

func (tr *trial) orderGroup(kind store.RequestKind) {
	if name, ok := tr.someGroup(); ok {
		tr.order(store.Request{Kind: kind, Group: name})
	}
}

// spoil leaves a spec that cannot be in force, as a hand in etcd might.
func spoil(tr *trial) {
	name, ok := tr.someGroup()
	if !ok {
		return
	}
	tr.spoiled[name] = true
	switch tr.rng.IntN(3) {
	case 0:
		tr.w.Drop(tr.w.Keys().Group(name))
	case 1:
		tr.w.Spoil(tr.w.Keys().Group(name))
	default:
		g := tr.good[name]
		g.Lifecycle = "nonsense"
		tr.w.Apply(g)
	}
}

// mend puts right specs in the place of spoiled ones.
func (tr *trial) mend() {
	if !tr.w.Reachable() {
		return
	}
	for _, name := range []string{"db", "job", "web"} {
		if tr.spoiled[name] {
			delete(tr.spoiled, name)
			tr.w.Apply(tr.good[name])
		}
	}
}

// plant makes a machine without a record.
func plant(tr *trial) {
	name, ok := tr.someGroup()
	if !ok {
		return
	}
	g := tr.inForce(name).spec
	tr.planting++
	id := fmt.Sprintf("%s-x-planted%d", name, tr.planting)
	tr.planted = append(tr.planted, id)
	zone := ""
	for _, p := range tr.providers {
		if p.Name == g.Provider {
			zone = p.Zones[tr.rng.IntN(len(p.Zones))].Name
		}
	}
	if tr.chance(50) {
		tr.w.NoteGone(id, name)
	}
	tr.w.Plant(g, id, zone, time.Duration(pick(tr, 0, 0, 20, 120))*time.Second)
}
