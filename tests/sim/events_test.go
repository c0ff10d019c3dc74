package sim_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// kind is something that may happen in a world; its weight is how often it does beside the others.
type kind struct {
	name   string
	weight int
	do     func(tr *trial)
}

var kinds = slices.Concat(troubles, operations)

// troubles are what goes wrong, and what comes right again.
var troubles = []kind{
	{"kill", 8, func(tr *trial) { tr.someMachine(tr.w.Kill) }},
	{"freeze", 5, func(tr *trial) { tr.someMachine(tr.w.Freeze) }},
	{"cut", 5, func(tr *trial) { tr.someMachine(tr.w.Cut) }},
	{"return", 10, func(tr *trial) { tr.someMachine(tr.w.Return) }},
	{"sicken", 8, func(tr *trial) {
		cure := pick(tr, sim.CuredByItself, sim.CuredByRestart, sim.CuredByReboot,
			sim.CuredByNothing)
		tr.someMachine(func(id string) { tr.w.Sicken(id, cure) })
	}},
	{"heal", 6, func(tr *trial) { tr.someMachine(tr.w.Heal) }},
	{"exit", 3, func(tr *trial) { code := pick(tr, 0, 0, 1); tr.someMachine(func(id string) { tr.w.Exit(id, code) }) }},
	{"notice", 3, func(tr *trial) {
		in := time.Duration(tr.between(5, 120)) * time.Second
		tr.someMachine(func(id string) { tr.w.Notice(id, in) })
	}},
	{"goodbye", 4, func(tr *trial) {
		how := pick(tr, store.GoodbyeRestart, store.GoodbyeShutdown, store.GoodbyeMoving, store.GoodbyeEvacuating)
		tr.someMachine(func(id string) { tr.w.Goodbye(id, how) })
	}},
	{"many fall silent", 2, func(tr *trial) {
		for range tr.between(2, 6) {
			tr.someMachine(tr.w.Cut)
		}
	}},
	{"zone lost", 1, func(tr *trial) { p, z := tr.someZone(); tr.w.LoseZone(p, z) }},
	{"zone returns", 3, func(tr *trial) { p, z := tr.someZone(); tr.w.ReturnZone(p, z) }},
	{"zone full", 3, func(tr *trial) { p, z := tr.someZone(); tr.w.Fill(p, z, true) }},
	{"zone has room", 4, func(tr *trial) { p, z := tr.someZone(); tr.w.Fill(p, z, false) }},
	{"no spot", 3, func(tr *trial) { p, z := tr.someZone(); tr.w.NoSpot(p, z, true) }},
	{"spot returns", 3, func(tr *trial) { p, z := tr.someZone(); tr.w.NoSpot(p, z, false) }},
	{"provider fails", 2, func(tr *trial) { p, _ := tr.someZone(); tr.w.ProviderFails(p, tr.aWhile(40)) }},
	{"provider throttles", 2, func(tr *trial) { p, _ := tr.someZone(); tr.w.ProviderThrottles(p, tr.aWhile(20)) }},
	{"provider slow", 2, func(tr *trial) { p, _ := tr.someZone(); tr.w.ProviderSlows(p, tr.aWhile(60)) }},
	{"lists lie", 5, func(tr *trial) {
		p, _ := tr.someZone()
		lie, d := sim.Lies[tr.rng.IntN(len(sim.Lies))], tr.aWhile(25)
		tr.w.ListsLie(p, lie, d)
	}},
	{"stuck hooks", 1, func(tr *trial) { tr.w.StuckHooks(pick(tr, 0, 50, 100)) }},
	{"leases lost", 4, func(tr *trial) { tr.w.LoseLeases(tr.between(1, 8), tr.chance(50)) }},
	{"etcd stops", 2, func(tr *trial) { tr.w.StopEtcd(tr.aWhile(pick(tr, 2, 10, 60)), pick(tr, 0, 0, 2, 10)) }},
	{"interference", 3, func(tr *trial) { tr.w.Interfere(pick(tr, 0, 10, 50)) }},
	{"answers lost", 2, func(tr *trial) { tr.w.LoseAnswers(pick(tr, 0, 10, 30)) }},
	{"leader dies", 5, func(tr *trial) { tr.w.KillLeader(tr.aWhile(30), tr.wrongClock()) }},
	{"replica dies", 2, func(tr *trial) { tr.w.KillReplica(tr.aWhile(30)) }},
	{"leader resigns", 2, func(tr *trial) { tr.w.Resign(tr.wrongClock()) }},
	{"leader freezes", 2, func(tr *trial) { tr.w.FreezeLeader(tr.aWhile(pick(tr, 2, 15, 40)), tr.wrongClock()) }},
	{"leader blind", 2, func(tr *trial) { tr.w.BlindLeader(tr.aWhile(10), tr.chance(50)) }},
	{"rest", 6, func(tr *trial) { tr.rest(tr.aWhile(60)) }},
	{"long rest", 1, func(tr *trial) { tr.rest(tr.aWhile(600)) }},
}

// aWhile is some time of at most so many seconds.
func (tr *trial) aWhile(most int) time.Duration {
	return time.Duration(1+tr.rng.IntN(most*1000)) * time.Millisecond
}

func (tr *trial) wrongClock() time.Duration {
	if tr.chance(70) {
		return 0
	}
	skew := time.Duration(tr.between(-1800, 1800)) * time.Second
	tr.wrong = max(tr.wrong, skew.Abs())
	return skew
}

// rest lets time pass in which nothing new goes wrong.
func (tr *trial) rest(d time.Duration) {
	for end := tr.w.Elapsed() + d; tr.failed == "" && tr.w.Elapsed() < end; {
		tr.w.Step()
		tr.look()
	}
}

// event has something happen.
func (tr *trial) event() {
	if tr.plot.late && tr.chance(25) {
		tr.events[late.name]++
		late.do(tr)
		return
	}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := tr.rng.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			if !tr.plot.without[k.name] {
				tr.events[k.name]++
				k.do(tr)
			}
			return
		}
	}
}

func (tr *trial) someMachine(do func(id string)) {
	if ids := tr.w.Machines(); len(ids) > 0 {
		do(ids[tr.rng.IntN(len(ids))])
	}
}

func (tr *trial) someInstance() (store.Instance, bool) {
	ids := tr.w.Instances()
	if len(ids) == 0 {
		return store.Instance{}, false
	}
	return tr.w.Instance(ids[tr.rng.IntN(len(ids))]).Record, true
}

func (tr *trial) someZone() (provider, zone string) {
	p := tr.providers[tr.rng.IntN(len(tr.providers))]
	return p.Name, p.Zones[tr.rng.IntN(len(p.Zones))].Name
}

// someGroup is a group that an operator could edit now; false if there is none.
func (tr *trial) someGroup() (string, bool) {
	var names []string
	for _, name := range tr.groups() {
		if f := tr.inForce(name); f.there && !f.spec.Deleting && !tr.spoiled[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 || !tr.w.Reachable() {
		return "", false
	}
	return names[tr.rng.IntN(len(names))], true
}

// groups are the names of all groups of which there is anything.
func (tr *trial) groups() []string {
	names := append(tr.w.Names(store.KindGroups), tr.w.Names(store.KindStatus)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// edit changes a spec, and keeps it to go back to if it is spoiled.
func (tr *trial) edit(what string, change func(g *store.Group)) {
	name, ok := tr.someGroup()
	if !ok {
		return
	}
	tr.editGroup(name, what, change)
}

func (tr *trial) editGroup(name, what string, change func(g *store.Group)) {
	tr.w.Edit(name, func(g *store.Group) {
		change(g)
		if err := g.Validate(); err != nil {
			panic(fmt.Sprintf("%s: an edit that no operator could have made: %v", what, err))
		}
		tr.trace.add(tr.w.Now(), "!", "group "+name+" edited: "+what)
		tr.good[name] = *g
	})
}
