package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

const (
	// comesUp is how long before the span a world begins, besides the time to create its machines:
	// by the span's beginning all instances run, and loads are known.
	comesUp = 15 * time.Minute
	// steps between two checks whether time can be skipped or the context has ended
	stepsBetween = 64
	// noticeIs is how long before its end a provider announces it: the journal does not have it.
	noticeIs = 2 * time.Minute
	// usualStart is the duration of a start if none is recorded.
	usualStart = 30 * time.Second
	// loadEvery is how often the world measures loads: as often as agents report them, since a point
	// of the tape has the mean of five minutes.
	loadEvery = 30 * time.Second
	// loadSteady is how often it does for groups whose instances stay the same: a load of the tape is
	// a mean of five minutes.
	loadSteady = time.Minute
	// settles is how long nothing was decided and nothing happened before time is skipped: by then
	// the provider has listed its machines.
	settles = 30 * time.Second
)

// play is a replay under way.
type play struct {
	tape    *tape
	w       *sim.World
	entries []store.JournalEntry
	fixed   map[string]bool // groups whose recorded sizes are played
	seen    map[string]store.Verdict
	rolls   int
	active  time.Time // when something was last decided or happened
	missed  int       // failures for which no instance served in the slot
	skipped time.Duration
	plans   int // of groups
	muted   map[string]bool
	unheard time.Duration // for which a group with scale had no load, added up
	broken  string
}

// run plays a tape with a set of groups.
func run(ctx context.Context, t *tape, groups []store.Group, own map[string]bool, settings store.ShardSettings,
	seed uint64, progress func(time.Duration),
) (*play, error) {
	p := &play{tape: t, fixed: map[string]bool{}, muted: map[string]bool{}, seen: map[string]store.Verdict{}}
	settings.CreateRate, settings.CreateBurst = max(settings.CreateRate, 1), max(settings.CreateBurst, 1)
	size := 0
	played := make([]store.Group, len(groups))
	for i, g := range groups {
		g.LoadBalancers, g.Rollout.Analysis = nil, nil
		if p.fixed[g.Name] = g.Scale == nil && !own[g.Name]; p.fixed[g.Name] && t.first[g.Name] > 0 {
			g.Size = t.first[g.Name]
		}
		if g.Scale != nil && t.first[g.Name] > 0 {
			g.Size = g.Scale.Within(t.first[g.Name])
		}
		size += g.Size
		played[i] = g
	}
	begins := t.from.Add(-comesUp - time.Duration(float64(size)/settings.CreateRate*float64(time.Second)))
	p.w = sim.New(sim.Config{
		Seed: seed, Settings: settings, Groups: played, Providers: t.providers(played), Begins: begins, Start: p.start,
		Sources: t.sources(played), PerGroup: true, LoadEvery: loadEvery, LoadSteady: steady(played), Observer: p.observer(),
		Plain: t.plain,
	})
	p.active = begins
	p.begin(played)
	for i := range t.events {
		if err := p.until(ctx, t.events[i].at, progress); err != nil {
			return nil, err
		}
		p.do(&t.events[i])
	}
	if err := p.until(ctx, t.to, progress); err != nil {
		return nil, err
	}
	if p.broken != "" {
		return nil, errors.New("a safety rule was violated, which is a bug: " + p.broken)
	}
	return p, nil
}

// steady returns loadSteady, or zero if the planner would take a group's load for not judged in
// between (AUTO-2).
func steady(groups []store.Group) time.Duration {
	for i := range groups {
		if s := groups[i].Scale; s != nil && plan.ScaleLapse(s.Complete().Down.Window.D()) <= loadSteady {
			return 0
		}
	}
	return loadSteady
}

// providers returns the groups' providers, with the recorded durations.
func (t *tape) providers(groups []store.Group) (all []sim.Provider) {
	for _, g := range groups {
		i := slices.IndexFunc(all, func(p sim.Provider) bool { return p.Name == g.Provider })
		if i < 0 {
			one := sim.Provider{Name: g.Provider}
			if short, long := t.calls(); long > 0 {
				one.Call = fake.Between(short, long)
				one.CallTimeout = max(30*time.Second, 2*long)
			}
			all, i = append(all, one), len(all)
		}
		for _, name := range g.Template.Zones {
			if !slices.ContainsFunc(all[i].Zones, func(z fake.Zone) bool { return z.Name == name }) {
				all[i].Zones = append(all[i].Zones, fake.Zones(name)...)
			}
		}
	}
	return all
}

// sources returns the recorded external metrics.
func (t *tape) sources(groups []store.Group) map[string]sim.Source {
	all := map[string]sim.Source{}
	for i := range groups {
		for _, name := range groups[i].Sources() {
			all[name] = func(w *sim.World, group string) (float64, error) {
				v, known := t.outsideAt(query.Key{Source: name, Group: group}, w.Now())
				if !known {
					return 0, fmt.Errorf("no number of %s is recorded for this time", name)
				}
				return v, nil
			}
		}
	}
	return all
}

// begin sets each group's first load.
func (p *play) begin(groups []store.Group) {
	for _, g := range groups {
		if g.Scale == nil {
			continue
		}
		for i := range p.tape.events {
			if e := &p.tape.events[i]; e.group == g.Name && e.load != nil {
				p.bear(e, 0)
				break
			}
		}
	}
}

// start returns how long a machine takes until its agent connects.
func (p *play) start(group string, chance func(int) int) (time.Duration, bool) {
	took, failed := p.tape.starts(group, p.w.Now())
	if chance(1000) < failed {
		return 0, false
	}
	if len(took) == 0 {
		return usualStart, true
	}
	return took[chance(len(took))].D(), true
}

// until lets time pass.
func (p *play) until(ctx context.Context, end time.Time, progress func(time.Duration)) error {
	for n := 0; ; n++ {
		next, any := p.w.Next()
		if !any || next > p.w.Elapsed()+end.Sub(p.w.Now()) {
			break
		}
		if n%stepsBetween == 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			progress(max(0, p.w.Now().Sub(p.tape.from)))
		}
		if p.w.Now().Sub(p.active) >= settles {
			if d := p.w.Skip(end); d > 0 {
				p.skipped += d
				continue
			}
		}
		p.w.Step()
	}
	p.w.RunUntil(end)
	return nil
}

// do makes a recorded event happen.
func (p *play) do(e *event) {
	if e.load == nil { // a new number of many: what follows from it is a decision
		p.active = p.w.Now()
	}
	switch {
	case e.failure != nil:
		p.fail(e)
	case e.load != nil || e.silent:
		if g, there := p.w.Group(e.group); there && g.Scale != nil {
			p.hear(e)
		}
	case e.roll:
		p.rolls++
		mark := fmt.Sprint(p.rolls)
		p.w.Edit(e.group, func(g *store.Group) {
			settings := map[string]any{"replayed": mark}
			for k, v := range g.Template.Settings {
				if k != "replayed" {
					settings[k] = v
				}
			}
			g.Template.Settings = settings
		})
	case p.fixed[e.group]:
		if g, there := p.w.Group(e.group); there && g.Size != e.size {
			p.w.Edit(e.group, func(g *store.Group) { g.Size = e.size })
		}
	}
}

// hear plays what is recorded of the load: a point, towards which the load goes in a straight line,
// or that there is none. Without numbers the size must not shrink (AUTO-2), and the load of before
// says nothing of the one after.
func (p *play) hear(e *event) {
	switch {
	case e.silent:
		p.w.Mute(e.group)
		p.unheard += e.lasts
	case p.muted[e.group]:
		p.bear(e, 0)
	default:
		p.bear(e, loadPoint)
	}
	p.muted[e.group] = e.silent
}

// bear sets the load of a group: the recorded load per instance times their number.
func (p *play) bear(e *event, over time.Duration) {
	p.w.SetLoad(e.group, map[string]float64{
		store.MetricCPU:     e.load[store.MetricCPU] * e.run,
		store.MetricMemory:  e.load[store.MetricMemory],
		store.MetricNetwork: e.load[store.MetricNetwork] * e.run,
	}, over)
}

// fail makes the instance fail that serves in the slot.
func (p *play) fail(e *event) {
	f := e.failure
	id := p.serving(e.group, f.Slot)
	if id == "" {
		p.missed++
		return
	}
	after := func(do func(string)) {
		if f.For > 0 {
			p.w.At(p.w.Now().Add(f.For.D()), func() { do(id) })
		}
	}
	switch f.Kind {
	case store.FailedDead:
		p.w.Kill(id)
	case store.FailedLost, store.FailedSilent:
		p.w.Cut(id)
		after(p.w.Return)
	case store.FailedChecks:
		if f.For > 0 {
			p.w.Sicken(id, sim.CuredByItself)
			after(p.w.Heal)
		} else {
			p.w.Sicken(id, sim.CuredByReboot)
		}
	case store.FailedNotice:
		p.w.Notice(id, noticeIs)
	}
}

// serving returns the instance that serves in a slot; "" if none does.
func (p *play) serving(group string, slot int) string {
	for _, id := range p.w.Instances() {
		if v := p.w.Instance(id); v.Record.Group == group && v.Record.Slot == slot && v.Record.Managed &&
			v.Record.Phase == store.Running && p.w.Works(id) {
			return id
		}
	}
	return ""
}

// observer writes the world's journal as far as a report needs it.
func (p *play) observer() sim.Observer {
	return sim.Observer{
		Committed: func(at time.Time, a *plan.Action, _ store.Revision) {
			for _, entry := range a.JournalEntries() {
				p.active = at
				e := store.JournalEntry{
					At: at, Rule: entry.Rule, Group: entry.Group, Instance: entry.Instance, Slot: entry.Slot,
					From: entry.From, To: entry.To, Verdict: entry.Verdict, Kind: entry.Kind, Cause: entry.Cause,
					Replacement: entry.Replacement,
				}
				if entry.From == entry.To {
					e.From, e.To = "", ""
				}
				p.entries = append(p.entries, review.Slim(e))
			}
		},
		Planned: func(at time.Time, s *plan.Snapshot, made *plan.Plan) {
			if p.plans += len(s.Groups); p.tape.planned != nil {
				p.tape.planned(at, s, made)
			}
		},
		Judged: func(at time.Time, group, id string, _, now plan.Judgment) { p.judged(at, group, id, now) },
		Broken: func(_ time.Time, what string) { p.broken = what },
	}
}

// judged writes the verdicts that coordinator/term.go writes. A new leader judges every instance
// again.
func (p *play) judged(at time.Time, group, id string, now plan.Judgment) {
	before := p.seen[id]
	p.active = at
	p.seen[id] = now.Verdict
	troubled := func(v store.Verdict) bool { return v == store.Suspect || v.Failed() }
	if before == now.Verdict || !troubled(now.Verdict) && (!troubled(before) || now.Verdict == store.Unborn) {
		return
	}
	rec := p.w.Instance(id)
	if !rec.Present() || rec.Record.Phase == store.Deleting {
		return
	}
	p.entries = append(p.entries, store.JournalEntry{
		At: at, Rule: now.Rule, Group: group, Instance: id, Slot: rec.Record.Place(), Kind: store.EntryVerdict,
		Verdict: now.Verdict, Cause: store.Cause{Kind: now.Cause.Kind},
	})
}
