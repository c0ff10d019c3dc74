package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// The judge is tried on the planner itself, in worlds where it is known what is true: there it must
// find nothing. So a rule that is misread here shows before a run of real processes is accused of
// it.

// play is a simulated world whose history is written.
type play struct {
	w       *sim.World
	rng     *rand.Rand
	events  []history.Event
	calls   uint64
	hurting map[string]bool
}

func (p *play) now() history.Time {
	if p.w == nil {
		return 1
	}
	return history.Time(p.w.Elapsed()) + 1
}

func (p *play) add(e history.Event) {
	e.At = p.now()
	p.events = append(p.events, e)
}

func (p *play) machine(_ time.Time, m sim.Machine) {
	step := func(what history.Step, why string) {
		p.add(history.Event{Machine: &history.Machine{Instance: m.Instance, What: what, Why: why}})
	}
	switch m.Event {
	case fake.Made, fake.Doubled:
		step(history.Made, "")
		step(history.Booted, "")
	case fake.Restarted:
		step(history.Ended, history.ByCall)
		step(history.Booted, "")
	case fake.Stopped:
		step(history.Ended, history.ByCall)
	case fake.Crashed:
		p.harm(m.Instance, history.Crashed, false)
		step(history.Ended, history.ByFault)
	case fake.Removed:
		step(history.Removed, "")
	}
}

func (p *play) harm(id string, kind history.HarmKind, ends bool) {
	p.hurting[id] = !ends
	p.add(history.Event{Harm: &history.Harm{Instance: id, Kind: kind, Ends: ends}})
}

// trouble is told of while it may have consequences.
func (p *play) trouble(kind string, d time.Duration, many bool) {
	p.calls++
	t := history.Trouble{ID: int(p.calls), Kind: kind, ManyCut: many}
	p.add(history.Event{Trouble: &t})
	over := t
	over.Ends = true
	p.w.At(p.w.Now().Add(d), func() { p.add(history.Event{Trouble: &over}) })
}

func (p *play) observer() sim.Observer {
	return sim.Observer{
		Machine: p.machine,
		Changed: func(_ time.Time, e store.Event) {
			if kind, _, _ := store.KeysOf("default").Split(e.KV.Key); kind == store.KindLeader {
				return // who began a transaction is unknown here
			}
			p.add(history.Event{Change: &history.Change{
				Revision: e.KV.Modified, Key: e.KV.Key, Value: e.KV.Value,
				Deleted: e.Deleted, Created: e.KV.Created,
			}})
		},
		Committed: func(_ time.Time, a *plan.Action, rev store.Revision) {
			for _, a := range a.JournalEntries() {
				p.calls++
				e := store.JournalEntry{
					Schema: 1, Rule: a.Rule, What: a.What(), Why: a.Why, Group: a.Group,
					Instance: a.Instance, From: a.From, To: a.To, Verdict: a.Verdict, Facts: a.Facts,
				}
				p.add(history.Event{Change: &history.Change{
					Revision: rev,
					Key:      store.KeysOf("default").Event(time.Unix(0, int64(p.calls)), "x"), Value: store.Encode(e),
				}})
			}
		},
		Removing: func(_ time.Time, rec store.Instance) {
			p.calls++
			p.add(history.Event{Call: &history.Call{ID: p.calls, Replica: "a", Method: history.Stop, Instance: rec.ID}})
			p.add(history.Event{Call: &history.Call{
				ID: p.calls, Ended: true, Replica: "a", Method: history.Stop,
				Instance: rec.ID,
			}})
		},
		Broken: func(_ time.Time, what string) { panic(what) },
	}
}

// someone is a machine that runs.
func (p *play) someone() (string, bool) {
	var up []string
	for _, id := range p.w.Machines() {
		if p.w.Serves(id) && !p.hurting[id] {
			up = append(up, id)
		}
	}
	if len(up) == 0 {
		return "", false
	}
	return up[p.rng.IntN(len(up))], true
}

// hurt does one thing to the world.
func (p *play) hurt() {
	while := time.Duration(1+p.rng.IntN(40)) * time.Second
	id, there := p.someone()
	if !there {
		return
	}
	back := func(kind history.HarmKind, do func(string)) {
		p.w.At(p.w.Now().Add(while), func() { do(id); p.harm(id, kind, true) })
	}
	switch p.rng.IntN(14) {
	case 0:
		p.w.Kill(id)
	case 1:
		p.harm(id, history.Cut, false)
		p.w.Cut(id)
		back(history.Cut, p.w.Return)
	case 2:
		p.harm(id, history.Frozen, false)
		p.w.Freeze(id)
		back(history.Frozen, p.w.Return)
	case 3:
		p.harm(id, history.Sick, false)
		p.w.Sicken(id, sim.CuredByItself)
		back(history.Sick, p.w.Heal)
	case 4:
		p.harm(id, history.Exited, false)
		p.w.Exit(id, 1)
	case 5:
		p.trouble("list", while+time.Minute, false)
		p.w.ListsLie("cloud", sim.Lies[p.rng.IntN(len(sim.Lies))], while)
		p.add(history.Event{Call: &history.Call{ID: 1 << 40, Ended: true, Method: history.List, Lie: "some"}})
	case 6:
		p.trouble("etcd", while, false)
		p.w.StopEtcd(while, p.rng.IntN(5))
	case 7:
		p.trouble("leases", time.Minute, false)
		p.w.LoseLeases(1+p.rng.IntN(8), p.rng.IntN(2) == 0)
	case 8:
		p.trouble("leader", while+10*time.Second, false)
		p.w.KillLeader(while, 0)
	case 9:
		p.trouble("leader", while, false)
		p.w.FreezeLeader(while, 0)
	case 10:
		p.trouble("watch", while, false)
		p.w.BlindLeader(while, p.rng.IntN(2) == 0)
	case 11:
		p.trouble("provider", while, false)
		p.w.ProviderFails("cloud", while)
	case 12:
		p.many(while)
	case 13:
		p.edit()
	}
}

// many cuts all machines off at once that nothing else is wrong with. It is a storm if that is
// clearly more than half of all.
func (p *play) many(while time.Duration) {
	all := p.w.Machines()
	well := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !p.w.Serves(id) || p.hurting[id] })
	p.trouble("all cut", while, len(well) >= 4 && 3*len(well) >= 2*len(all))
	for _, id := range well {
		p.harm(id, history.Cut, false)
		p.w.Cut(id)
		p.w.At(p.w.Now().Add(while), func() { p.w.Return(id); p.harm(id, history.Cut, true) })
	}
}

// edit is what an operator does.
func (p *play) edit() {
	p.w.Edit("web", func(g *store.Group) {
		switch p.rng.IntN(5) {
		case 0:
			g.Size = 4 + p.rng.IntN(5)
		case 1:
			g.Template.InstanceType = fmt.Sprint("type", p.rng.IntN(3))
		case 2:
			g.Budget.MaxExpansion = store.Amount(1 + p.rng.IntN(3))
		case 3:
			g.Budget.MaxCreating, g.Budget.MaxDeleting = p.rng.IntN(3), p.rng.IntN(3)
		case 4:
			g.Relaunch.Number, g.Relaunch.Action = g.Relaunch.Number+1, store.ActionRecreate
		}
	})
	if id, there := p.someone(); there && p.rng.IntN(2) == 0 {
		kind := []store.RequestKind{store.RequestReplace, store.RequestDelete, store.RequestRestart}[p.rng.IntN(3)]
		p.w.Order(store.Request{Kind: kind, Instance: id, Group: "web"})
	}
}

func imagine(seed uint64, rough int) *play {
	p := &play{hurting: map[string]bool{}, rng: rand.New(rand.NewPCG(seed, 1))}
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = "web", 6, "cloud"
	g.Heal.Policy = []string{store.HealRecreate, store.HealRestart}[p.rng.IntN(2)]
	g.Workload.Run = []string{"serve"}
	g.Complete()
	p.w = sim.New(sim.Config{Seed: seed, Groups: []store.Group{g}, Observer: p.observer()})
	p.w.RunUntil(sim.Epoch.Add(3 * time.Minute))
	for range rough {
		p.hurt()
		p.w.RunUntil(p.w.Now().Add(time.Duration(p.rng.IntN(30)) * time.Second))
	}
	return p
}

var simulatedTerms = Terms{
	LeaseTTL: 17 * time.Second, Interval: 5 * time.Second, Reconnect: 30 * time.Second,
	Poll: 5 * time.Second, CallTimeout: 30 * time.Second,
}

func TestThePlannerInSimulatedWorldsIsInnocent(t *testing.T) {
	for seed := range uint64(40) {
		found := slices.DeleteFunc(Judge(imagine(seed, 40).events, simulatedTerms), func(v Violation) bool {
			return v.Rule == "REC-15" // these worlds keep no journal of what the queue writes
		})
		if len(found) > 0 {
			t.Errorf("seed %d:\n%s", seed, Tell(found))
		}
	}
}

// Without the record of the harm, healthy machines seem to be taken down: the judge is not blind in
// these worlds.
func TestTheSameWorldsWithoutTheTruthAreFullOfViolations(t *testing.T) {
	blind := 0
	for seed := range uint64(10) {
		ignorant := slices.DeleteFunc(imagine(seed, 40).events, func(e history.Event) bool { return e.Harm != nil })
		if !slices.ContainsFunc(Judge(ignorant, simulatedTerms),
			func(v Violation) bool { return v.Rule == "SAFE-1" || v.Rule == "DET-9" }) {
			blind++
		}
	}
	if blind > 2 { // in some worlds only the dead are replaced
		t.Errorf("nothing was seen in %d of 10 worlds", blind)
	}
}
