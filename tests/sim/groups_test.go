package sim_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

func seconds(n int) store.Duration { return store.Duration(time.Duration(n) * time.Second) }

// between draws a number, both ends included.
func (tr *trial) between(low, high int) int { return low + tr.rng.IntN(high-low+1) }

func (tr *trial) chance(percent int) bool { return tr.rng.IntN(100) < percent }

func pick[T any](tr *trial, from ...T) T { return from[tr.rng.IntN(len(from))] }

// conditions are what the world is like.
func (tr *trial) conditions() sim.Config {
	cfg := sim.Config{
		Seed: tr.plot.seed, Replicas: tr.between(1, 3), SessionTTL: time.Duration(tr.between(2, 5)) * time.Second,
		Settings: store.ShardSettings{
			CreateRate: float64(tr.between(1, 10)), CreateBurst: tr.between(1, 10),
			OrphanGrace: seconds(tr.between(30, 90)), ReconnectMax: seconds(tr.between(2, 30)),
			ProviderPoll: seconds(tr.between(2, 8)),
		},
	}
	if apart := rand.New(rand.NewPCG(tr.plot.seed, 1)); apart.IntN(5) == 0 {
		cfg.Settings.LimitInstances = 4 + apart.IntN(16)
	}
	if apart := rand.New(rand.NewPCG(tr.plot.seed, 5<<32)); apart.IntN(2) == 0 {
		cfg.Settings.BudgetGroups = store.Limits(fmt.Sprintf("shop:%d", apart.IntN(4)))
	}
	for i := range tr.between(1, 2) {
		p := sim.Provider{
			Name: []string{"cloud", "metal"}[i],
		}
		p.CallTimeout = time.Duration(tr.between(5, 20)) * time.Second
		p.Joins = fake.Between(time.Second, time.Duration(tr.between(2, 15))*time.Second)
		p.Forgetful = tr.chance(30)
		p.Call = fake.Between(100*time.Millisecond, time.Duration(tr.between(1, 4))*time.Second)
		for _, z := range []string{"a", "b", "c"}[:tr.between(1, 3)] {
			p.Zones = append(p.Zones, fake.Zone{Name: z})
		}
		if tr.chance(50) {
			p.Consistency = time.Duration(tr.between(1, 6)) * time.Second
		}
		if tr.chance(50) {
			p.Fails, p.Throttled, p.ListFails, p.NeverBoots = tr.between(0, 15), tr.between(0, 5), tr.between(0, 10),
				tr.between(0, 10)
		}
		tr.providers = append(tr.providers, p)
	}
	cfg.Providers = tr.providers
	for i := range tr.between(1, 3) {
		cfg.Groups = append(cfg.Groups, tr.group([]string{"web", "db", "job"}[i]))
	}
	return cfg
}

// group is a group with all that an operator may say, at random.
func (tr *trial) group(name string) store.Group {
	g := store.DefaultGroup()
	p := tr.providers[tr.rng.IntN(len(tr.providers))]
	g.Name, g.Provider, g.Size = name, p.Name, tr.between(1, 8)
	g.Template.InstanceType = "small"
	if tr.chance(30) {
		g.Template.Zones = []string{p.Zones[tr.rng.IntN(len(p.Zones))].Name}
	}
	if tr.chance(60) {
		g.Workload.Run, g.Vars = []string{"./web", "--greeting", "${greeting}"},
			map[string]string{"greeting": "hello", "colour": "red"}
	}
	if tr.chance(10) {
		g.Lifecycle = store.LifecycleTask
	}
	g.Report.Interval = seconds(tr.between(1, 5))
	g.RegistrationTimeout, g.MaxChecking, g.StopTimeout = seconds(tr.between(25, 60)), seconds(tr.between(20, 60)),
		seconds(tr.between(0, 20))
	g.Heal.Policy = pick(tr, store.HealRecreate, store.HealRecreate, store.HealRecreate, store.HealRestart,
		store.HealRestart, store.HealNone)
	tr.budget(&g)
	g.Rollout = store.RolloutSpec{
		Strategy: pick(tr, store.StrategyProactive, store.StrategyProactive, store.StrategyProactive,
			store.StrategyOpportunistic),
		MinimalAction: pick(tr, store.ActionLiveUpdate, store.ActionLiveUpdate, store.ActionRestart,
			store.ActionRecreate), ProgressDeadline: seconds(tr.between(30, 120)),
	}
	tr.stages(&g)
	tr.windows(&g)
	tr.busy(&g)
	if tr.chance(20) {
		g.Rollout.StartupDuration = seconds(tr.between(2, 20))
	}
	g.Flap = store.FlapSpec{
		Failures: tr.between(1, 4), Window: seconds(tr.between(60, 180)), MinDelay: seconds(tr.between(2, 10)),
		MaxDelay: seconds(tr.between(20, 60)),
		Noise:    seconds(tr.between(0, 3)), Reset: seconds(tr.between(20, 60)), GiveUpAfter: pick(tr, 0, 0, 0, 5),
		GiveUpTime: seconds(pick(tr, 0, 600, 36000)),
	}
	g.Storm = store.StormSpec{
		Min: tr.between(2, 4), Percent: tr.between(30, 60), Window: seconds(tr.between(20, 60)),
		Cooldown: seconds(tr.between(10, 40)), ProbeAfter: seconds(pick(tr, 0, 30, 60)),
	}
	if tr.chance(20) {
		age := seconds(tr.between(90, 400))
		g.Expiry.ForcedAge = &age
	}
	if tr.chance(20) {
		age := seconds(tr.between(60, 300))
		if forced := g.Expiry.ForcedAge; forced != nil {
			age = min(age, *forced) // no other value could be applied
		}
		g.Expiry.EligibleAge = &age
	}
	g.Spot.Enabled, g.Spot.MaxLifetime = tr.chance(10), seconds(tr.between(120, 600))
	if !g.Spot.Enabled && tr.chance(20) {
		tr.shares(&g)
	}
	if tr.chance(40) {
		g.Drain = store.DrainSpec{Hook: []string{"./drain"}, Timeout: seconds(pick(tr, 0, 10, 30, 60))}
	}
	g.OnDemandAge = seconds(pick(tr, 0, 60, 120))
	g.Complete()
	if err := g.Validate(); err != nil {
		panic(fmt.Sprintf("a group that no operator could have applied: %v", err))
	}
	return g
}

// shares divides a group between spot machines and others.
func (tr *trial) shares(g *store.Group) {
	patience, back := seconds(pick(tr, 0, 20, 60)), seconds(pick(tr, 0, 300, 600))
	g.Capacity = store.CapacitySpec{
		OnDemandBase: tr.between(0, g.Size), Spot: pick(tr, 30, 50, 100), Fallback: pick(tr, store.FallbackOnDemand,
			store.FallbackOnDemand, store.FallbackWait), FallbackAfter: &patience, ReturnAfter: &back,
	}
}

// stages gives some groups rolls in stages (ROLL-5, ROLL-8) and a breaker (ROLL-7), drawn apart.
func (tr *trial) stages(g *store.Group) {
	apart := rand.New(rand.NewPCG(tr.plot.seed, 1<<32|uint64(g.Name[0])))
	if apart.IntN(3) == 0 {
		g.Rollout.Canary = store.Percent(1 + apart.IntN(60))
		g.Rollout.CanaryDuration = new(seconds(1 + apart.IntN(40)))
	}
	if apart.IntN(4) == 0 {
		g.Rollout.Order = store.OrderZone
	}
	if apart.IntN(3) == 0 {
		g.Rollout.Bake = seconds(apart.IntN(30))
	}
	g.Rollout.AutoRollback = apart.IntN(3) == 0
	if apart.IntN(5) == 0 {
		g.Heal.MaxUnhealthy = new(store.Percent(20 + apart.IntN(60)))
	}
}

// busy has some groups ask whether workloads are busy (BUSY-1), drawn apart. Agents of these worlds
// do not know, which counts as busy.
func (tr *trial) busy(g *store.Group) {
	apart := rand.New(rand.NewPCG(tr.plot.seed, 3<<32|uint64(g.Name[0])))
	if apart.IntN(5) == 0 {
		g.Busy.File, g.Busy.Timeout = "/run/busy", new(seconds(apart.IntN(60)))
	}
}

// percentages writes some budgets as shares of the size, and gives kinds of work limits of their
// own (REC-18). What is drawn for it is drawn apart, so that seeds keep their worlds.
func (tr *trial) percentages(g *store.Group) {
	apart := rand.New(rand.NewPCG(tr.plot.seed, uint64(g.Name[0])))
	share := func() *store.Amount { return new(store.Percent(apart.IntN(101))) }
	if apart.IntN(3) == 0 {
		g.Budget.MaxExpansion = *share()
	}
	if apart.IntN(3) == 0 {
		g.Budget.MaxUnavailable = share()
	}
	for _, w := range []*store.WorkBudget{&g.Budget.Heal, &g.Budget.Roll, &g.Budget.Expiry} {
		if apart.IntN(4) == 0 {
			w.MaxExpansion = share()
		}
		if apart.IntN(4) == 0 {
			w.MaxUnavailable = share()
		}
	}
}

func (tr *trial) budget(g *store.Group) {
	g.Budget = store.Budget{
		MaxExpansion: store.Amount(tr.between(0, 3)), MaxCreating: pick(tr, 0, 0, 1, 2, 3),
		MaxDeleting: pick(tr, 0, 0, 1, 2, 3),
	}
	if tr.chance(70) {
		g.Budget.MaxUnavailable = new(store.Amount(tr.between(0, 3)))
	}
	tr.percentages(g)
	if apart := rand.New(rand.NewPCG(tr.plot.seed, 4<<32)); apart.IntN(3) == 0 { // in all groups of the world
		g.BudgetGroup = "shop"
	}
}
