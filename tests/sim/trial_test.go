package sim_test

import (
	"fmt"
	"hash"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// plot says which world is played, and how.
type plot struct {
	seed    uint64
	steps   int
	without map[string]bool // kinds of events that do not happen
	all     bool            // keep all that happens, not the end alone

	decisions bool // keep them
	late      bool // every fourth event is a report that comes late
}

// trial is one world and what was seen in it.
type trial struct {
	plot      plot
	w         *sim.World
	rng       *rand.Rand
	providers []sim.Provider
	trace     trace
	digest    hash.Hash64

	failed string // what must not be; "" if nothing was seen
	steps  int
	mood   int // how many steps of a hundred bring an event

	records  map[string]store.Instance // as they were last
	used     map[string]bool           // IDs that were ever recorded
	specs    map[string]inForce
	wrong    time.Duration  // how wrong a leader's clock was at most
	made     map[string]int // machines, by ID
	planted  []string
	good     map[string]store.Group // specs to go back to
	spoiled  map[string]bool
	badHash  []string
	actions  map[string]int
	events   map[string]int
	endings  map[string]int
	second   time.Duration  // that is counted now
	inSecond map[string]int // actions in it, by group
	planting int
	planned  []planned // the last plans

	decisions []decision // if plot.decisions
}

// planned is when a plan was made from a snapshot.
type planned struct {
	revision store.Revision
	at       time.Time
}

// trace is what happened, as far as it is kept.
type trace struct {
	all    bool
	closed bool // what has failed is the end of the story
	lines  []line
}

// line is something that happened. It is put into words only when it is read.
type line struct {
	at   time.Duration
	kind string
	text [4]string
}

const keptLines = 60

func (t *trace) add(at time.Time, kind string, text ...string) {
	if t.closed {
		return
	}
	l := line{at: at.Sub(sim.Epoch), kind: kind}
	copy(l.text[:], text)
	t.lines = append(t.lines, l)
	if !t.all && len(t.lines) >= 4*keptLines {
		t.lines = append(t.lines[:0], t.lines[len(t.lines)-keptLines:]...)
	}
}

func (t *trace) text() string {
	lines := t.lines
	if !t.all {
		lines = lines[max(0, len(lines)-keptLines):]
	}
	var b strings.Builder
	for _, l := range lines {
		text := strings.TrimRight(strings.Join(l.text[:], "  "), " ")
		fmt.Fprintf(&b, "%12s %-8s %s\n", l.at.Round(time.Millisecond), l.kind, text)
	}
	return b.String()
}

// play plays a world to its end, or until something is seen that must not be.
func play(p plot) *trial {
	tr := &trial{
		plot: p, rng: rand.New(rand.NewPCG(p.seed, 0xf0)), trace: trace{all: p.all}, digest: fnv.New64a(),
		records: map[string]store.Instance{}, used: map[string]bool{}, specs: map[string]inForce{},
		made: map[string]int{}, good: map[string]store.Group{}, spoiled: map[string]bool{},
		actions: map[string]int{}, events: map[string]int{}, endings: map[string]int{}, inSecond: map[string]int{},
	}
	cfg := tr.conditions()
	cfg.Observer = tr.observer()
	tr.mood = pick(tr, 1, 3, 8, 15)
	for _, g := range cfg.Groups {
		tr.good[g.Name] = g
	}
	tr.w = sim.New(cfg)
	defer tr.caught()
	if tr.chance(60) {
		tr.w.RunUntil(sim.Epoch.Add(time.Duration(tr.between(10, 60)) * time.Second)) // begins well
	}
	for tr.failed == "" && tr.steps < p.steps {
		if tr.chance(tr.mood) {
			tr.event()
		}
		tr.w.Step()
		tr.steps++
		tr.look()
	}
	if tr.failed == "" {
		tr.end()
	}
	return tr
}

// caught makes a panic of what is tried a failure like any other, with its seed.
func (tr *trial) caught() {
	if r := recover(); r != nil {
		tr.fail("panic: %v\n%s", r, debug.Stack())
	}
}

// fail notes the first thing that must not be.
func (tr *trial) fail(format string, args ...any) {
	if tr.failed == "" {
		tr.failed = fmt.Sprintf(format, args...)
		tr.trace.add(tr.w.Now(), "FAILED", tr.failed)
		tr.trace.closed = true
	}
}

func (tr *trial) observer() sim.Observer {
	o := sim.Observer{
		Planned: func(at time.Time, s *plan.Snapshot, _ *plan.Plan) {
			tr.planned = append(tr.planned[max(0, len(tr.planned)-15):], planned{s.Revision, at})
		},
		Committing: tr.committing,
		Committed: func(at time.Time, a *plan.Action, rev store.Revision) {
			for _, n := range a.Notes {
				tr.actions[n.Rule]++
			}
			tr.actions[a.Rule]++
			tr.hurry(at, a)
			tr.keepDecision(at, a)
			if !a.NoJournal || tr.plot.all {
				tr.trace.add(at, "did", a.Rule, a.Group+" "+a.Instance, a.What(), a.Why)
			}
		},
		Machine: tr.machine, Removing: tr.removing,
		Judged: func(at time.Time, _, id string, _, now plan.Judgment) {
			tr.trace.add(at, "judged", id, string(now.Verdict), now.Rule, now.Why())
		},
		Noted:   func(at time.Time, what string) { tr.trace.add(at, "!", what) },
		Changed: tr.changed,
		Broken:  func(_ time.Time, what string) { tr.fail("%s", what) },
	}
	if tr.plot.all {
		o.Overtaken = func(at time.Time, a *plan.Action) {
			tr.trace.add(at, "overtaken", a.Rule, a.Group+" "+a.Instance, a.What())
		}
	}
	return o
}

// maxASecond is how many actions a group may need in a second, however much happens in it.
const maxASecond = 100

// hurry: nothing is written again and again without end.
func (tr *trial) hurry(at time.Time, a *plan.Action) {
	second := at.Sub(sim.Epoch).Truncate(time.Second)
	if second != tr.second {
		tr.second = second
		clear(tr.inSecond)
	}
	if tr.inSecond[a.Group]++; tr.inSecond[a.Group] == maxASecond {
		tr.fail("%d actions for group %q in one second, at last: %s %s", maxASecond, a.Group, a.Rule, a.What())
	}
}

// story tells of a failure, and how to see all of it.
func (tr *trial) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: after %d steps, %s of virtual time: %s\n", tr.plot.seed, tr.steps,
		tr.w.Elapsed().Round(time.Millisecond), tr.failed)
	fmt.Fprintf(&b, "see all of it: go test ./tests/sim -run TestWorlds -seed %d -steps %d%s -show\n", tr.plot.seed,
		tr.plot.steps, tr.withoutFlag())
	b.WriteString("what happened last:\n" + tr.trace.text())
	b.WriteString(tr.scene())
	return b.String()
}

func (tr *trial) withoutFlag() string {
	kinds := slices.Sorted(maps.Keys(tr.plot.without))
	kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "" })
	if len(kinds) == 0 {
		return ""
	}
	return " -without '" + strings.Join(kinds, ",") + "'"
}

// scene is how all stands at the end.
func (tr *trial) scene() string {
	var b strings.Builder
	w := tr.w
	for _, name := range tr.groups() {
		f := tr.inForce(name)
		if !f.there {
			continue
		}
		g := f.spec
		st := sim.Read[store.Status](w, w.Keys().Status(name)).Record
		fmt.Fprintf(&b,
			"group %s: size %d, %s, heal %s, budget %+v (max_unavailable %d, %d), paused %t, stopped %t, "+
				"deleting %t, state %s, healthy %d\n",
			name, g.Size, g.Lifecycle, g.Heal.Policy, g.Budget, g.MaxUnavailable(false), g.MaxUnavailable(true),
			g.Paused, g.Stopped, g.Deleting, st.State, st.Healthy)
		if st.Storm != nil {
			fmt.Fprintf(&b, "  storm %+v\n", *st.Storm)
		}
		if st.Rollout != nil {
			fmt.Fprintf(&b, "  roll %+v\n", *st.Rollout)
		}
		for _, bl := range st.Blocked {
			fmt.Fprintf(&b, "  blocked by %s: %s: %s; until %s\n", bl.Rule, bl.What, bl.Why, bl.Until)
		}
	}
	for _, id := range w.Instances() {
		rec := w.Instance(id).Record
		j, _ := w.Judgment(id)
		alive := sim.Read[store.Alive](w, w.Keys().Alive(id)).Record
		report := sim.Read[store.Report](w, w.Keys().Report(id)).Record
		m, there := w.Machine(id)
		fmt.Fprintf(&b,
			"%s slot %d %s %s zone %s%s: judged %s (%s); stream %s boot %s; report healthy %t boot %s; "+
				"machine %t %s boot %d, sound %t\n",
			id, rec.Slot, rec.Phase, rec.Template, rec.Zone, marks(rec), j.Verdict, j.Why(), alive.State, alive.BootID,
			report.Healthy, report.BootID, there, m.State, m.Boot, w.Sound(id))
	}
	return b.String()
}

func marks(rec store.Instance) string {
	out := ""
	for _, m := range []struct {
		yes  bool
		name string
	}{
		{!rec.Managed, "on demand"},
		{rec.Condemned != nil, "condemned"},
		{rec.Doomed != nil, "doomed"},
		{rec.Protected != "", "protected " + rec.Protected},
		{rec.Counted, "counted"},
		{rec.Replaces != "", "for " + rec.Replaces},
		{rec.Drain != nil, "drain"},
		{rec.Restart != nil, "restart"},
	} {
		if m.yes {
			out += ", " + m.name
		}
	}
	return out
}

// shrink looks for a shorter story of the same failure: fewer kinds of events, then fewer steps.
func shrink(tr *trial) *trial {
	best := tr
	try := func(p plot) bool {
		again := play(p)
		if sort(again.failed) != sort(tr.failed) {
			return false
		}
		best = again
		return true
	}
	for _, k := range kinds {
		p := best.plot
		p.without = maps.Clone(p.without)
		p.without[k.name] = true
		if best.events[k.name] > 0 {
			try(p)
		}
	}
	for steps := best.plot.steps / 2; steps > 0; steps /= 2 {
		p := best.plot
		p.steps = min(p.steps, best.steps) - steps
		if p.steps > 0 {
			try(p)
		}
	}
	return best
}

// sort tells failures of one sort from others: their text without names and numbers.
func sort(failure string) string {
	words := strings.Fields(failure)
	words = slices.DeleteFunc(words,
		func(s string) bool { return strings.ContainsAny(s, "0123456789") || strings.Contains(s, "-") })
	return strings.Join(words[:min(len(words), 8)], " ")
}
