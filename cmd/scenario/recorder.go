package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// recorder records what happens while a scenario is played.
type recorder struct {
	sc        *Scenario
	w         *sim.World
	all       []Entry
	names     []string // names of groups, in the order of their creation
	groups    map[string]*groupHealth
	instances map[string]countedInstance // recorded instances
	judgments int                        // of instances, in all plans together
	stirred   map[string]bool            // instances whose contribution to counts may be out of date
	counts    map[string]*count          // by group
	slots     map[slotOf]*count
	renewed   map[slotOf]bool // slots whose instance is being replaced because of its age
	dirty     bool            // something happened since the groups were last examined
	playing   int             // the entry of the current event, from 1
	events    []EventResult
	rules     map[string]int
	storms    int
	made      int
	removed   int
	there     int
	atOnce    int
	broken    []string
	cut       bool
	ends      map[time.Duration]bool // the ends of lasting troubles
	verdicts  map[string]store.Verdict
}

// countedInstance is a recorded instance that counts for the size of its group.
type countedInstance struct {
	slot    slotOf
	counted count // its contribution to the counts of its group and its slot
}

// slotOf identifies a slot.
type slotOf struct {
	group  string
	number int
}

func newRecorder(s *Scenario) *recorder {
	return &recorder{
		sc: s, groups: map[string]*groupHealth{}, instances: map[string]countedInstance{}, stirred: map[string]bool{},
		counts: map[string]*count{}, slots: map[slotOf]*count{}, renewed: map[slotOf]bool{}, rules: map[string]int{},
		ends: map[time.Duration]bool{}, verdicts: map[string]store.Verdict{},
	}
}

// attach gives the recorder its world. Before that it only learns that the groups are applied.
func (r *recorder) attach(w *sim.World) {
	r.w = w
	for _, name := range w.Names(store.KindGroups) {
		r.meet(name)
	}
	r.dirty = true
}

func (r *recorder) meet(name string) {
	if r.groups[name] == nil {
		r.groups[name] = &groupHealth{name: name, worst: 100, serving: 100}
		r.names = append(r.names, name)
		r.counts[name] = &count{}
	}
}

func (r *recorder) observer() sim.Observer {
	return sim.Observer{
		Committed: func(at time.Time, a *plan.Action, _ store.Revision) { r.committed(since(at), a) },
		Planned:   func(_ time.Time, _ *plan.Snapshot, p *plan.Plan) { r.judgments += p.Judgments.Len() },
		Machine:   func(at time.Time, m sim.Machine) { r.machine(since(at), m) },
		Judged:    func(at time.Time, group, id string, _, now plan.Judgment) { r.judged(since(at), group, id, now) },
		Stirred:   func(instance string) { r.stirred[instance] = true },
		Noted:     func(at time.Time, what string) { r.note(since(at), what) },
		Changed: func(_ time.Time, e store.Event) {
			r.dirty = true
			if r.w != nil {
				r.changed(e)
			}
		},
		Broken: func(at time.Time, what string) {
			r.broken = append(r.broken, what)
			r.add(Entry{At: since(at), Source: World, What: "IMPOSSIBLE: " + what})
		},
	}
}

func since(at time.Time) time.Duration { return at.Sub(sim.Epoch) }

func (r *recorder) add(e Entry) {
	e.Time = Clock(e.At)
	r.all = append(r.all, e)
	r.dirty = true
}

// begin records an event of the scenario that is about to happen. Reports of the world until end
// belong to it.
func (r *recorder) begin(e Event) {
	r.look()
	r.playing = len(r.all) + 1
	what := e.what.String() + forWords(e.For)
	r.add(Entry{At: e.At, Source: Happens, What: what})
	r.events = append(r.events, EventResult{
		At: e.At, Time: Clock(e.At), Kind: e.Kind, What: what, text: e.what, lasts: e.For,
	})
}

// selected records how many instances the current event has selected.
func (r *recorder) selected(count int) {
	e := &r.events[len(r.events)-1]
	e.text.selected = &count
	e.What = e.text.String() + forWords(e.lasts)
	r.all[r.playing-1].What = e.What
}

// end records which instances the current event affected.
func (r *recorder) end(detail string) {
	r.all[r.playing-1].Why = detail
	r.playing = 0
	r.events[len(r.events)-1].Detail = detail
	r.dirty = true
	r.look()
}

// over records the end of an event that lasted; the number is the event's in the scenario.
func (r *recorder) over(number int) {
	e := &r.events[number]
	r.add(Entry{At: r.w.Elapsed(), Source: Over, What: "over: " + e.text.String()})
}

// note records a text from the world, unless it is part of an event or of an event's end.
func (r *recorder) note(at time.Duration, what string) {
	r.add(Entry{At: at, Source: World, What: what, minor: r.playing > 0 || r.ends[at]})
}

func (r *recorder) machine(at time.Duration, m sim.Machine) {
	switch m.Event {
	case fake.Made:
		r.made++
		r.there++
		r.atOnce = max(r.atOnce, r.there)
	case fake.Removed:
		r.removed++
		r.there--
	default: // its verdict is the same as before
	}
	r.add(Entry{
		At: at, Source: Machine, Group: m.Group, Instance: m.Instance,
		What: "machine " + string(m.Event) + " in zone " + m.Zone, minor: true,
	})
}

func (r *recorder) committed(at time.Duration, a *plan.Action) {
	r.dirty = true
	if a.Slot != nil && a.Cause.Kind == store.CauseAge {
		r.renewed[slotOf{a.Group, *a.Slot}] = true
	}
	for _, entry := range a.JournalEntries() {
		r.rules[entry.Rule]++
		r.add(Entry{
			At: at, Source: Decision, Rule: entry.Rule, Group: entry.Group, Instance: entry.Instance,
			What: entry.What(), Why: entry.Why, effect: entry.Effect, cause: reason.Known(entry.Cause, entry.Why),
			minor: minorStep(&entry),
		})
	}
}

// minorStep reports whether an action is only a step of an earlier decision.
func minorStep(a *plan.Action) bool {
	switch {
	case a.Cause.Kind == store.CauseCalm:
		return true
	case a.Instance == "":
		return false
	case a.From == store.Pending && a.To == store.Creating, a.From == store.Creating && a.To == store.Booting,
		a.From == store.Booting && a.To == store.Checking:
		return true
	case a.From == store.Creating && a.Kind == store.EntryCall:
		return true
	case a.From == store.Deleting && a.To == "":
		return true
	default:
		return false
	}
}

// judged records a verdict. A new leader judges every instance again, so the previous verdict is
// kept here.
func (r *recorder) judged(at time.Duration, group, id string, now plan.Judgment) {
	before := r.verdicts[id]
	if before == now.Verdict {
		return
	}
	r.verdicts[id] = now.Verdict
	what := "is " + string(now.Verdict)
	minor := false
	switch now.Verdict {
	case store.Live:
		if minor = !before.Failed(); !minor {
			what = "is healthy again"
		}
	case store.Unborn, store.Suspect:
		minor = true
	case store.Dead, store.Doomed: // the decision that follows says so
		minor = true
	default:
	}
	r.add(Entry{
		At: at, Source: Verdict, Rule: now.Rule, Group: group, Instance: id, What: what, Why: now.Why(),
		cause: now.Cause, minor: minor,
	})
}

// changed handles a change of a key.
func (r *recorder) changed(e store.Event) {
	kind, name, _ := r.w.Keys().Split(e.KV.Key)
	switch kind {
	case store.KindInstances:
		r.stirred[name] = true
	case store.KindGroups:
		if !e.Deleted {
			r.meet(name)
		}
	case store.KindStatus:
		r.countStorms(name)
	}
}

// countStorms counts the storms of a group.
func (r *recorder) countStorms(group string) {
	st := r.groups[group]
	if st == nil {
		return
	}
	var status struct { // decoding the whole status would be slower
		Storm *store.Storm `json:"storm"`
	}
	// The simulation has decoded it before, or its leader corrects it, and the change is handled
	// then.
	_ = json.Unmarshal(r.w.Value(r.w.Keys().Status(group)), &status)
	on := status.Storm != nil && status.Storm.Ended == ""
	if on && !st.storm {
		r.storms++
		st.storms++
	}
	st.storm = on
}

// look evaluates the groups, if anything has happened since the last evaluation.
func (r *recorder) look() {
	if !r.dirty {
		return
	}
	r.dirty = false
	at := r.w.Elapsed()
	for id := range r.stirred {
		r.recount(id)
	}
	clear(r.stirred)
	wanted := r.settled()
	for _, name := range r.names {
		st := r.groups[name]
		was := st.whole
		st.look(at, r.w, *r.counts[name], wanted[name])
		switch {
		case st.whole && !was:
			took, short := "", false
			if st.since > 0 {
				took, short = " after "+about(at-st.since), at-st.since < time.Second
			}
			r.add(Entry{
				At: at, Source: Wanted, Group: name, minor: short, What: "is as wanted" + took,
				Why: fmt.Sprintf("%d of %d healthy", r.counts[name].healthy, st.size),
			})
		case was && !st.whole:
			r.add(Entry{At: at, Source: Wanted, Group: name, What: "is no longer as wanted", minor: true})
		}
	}
	for i := range r.events {
		r.events[i].look(at, i == len(r.events)-1, r)
	}
	r.dirty = false
}

// settled returns the counts from which each group is judged complete or not. A slot whose instance
// is being replaced because of its age counts as if that were done, as long as one of the two is
// healthy: such replacements happen without any event, and do not reduce the group.
func (r *recorder) settled() map[string]count {
	all := map[string]count{}
	for name, c := range r.counts {
		all[name] = *c
	}
	for at := range r.renewed {
		c := r.slots[at]
		switch {
		case c == nil || c.there < 2:
			delete(r.renewed, at)
		case c.healthy > 0:
			sum := all[at.group]
			sum.add(*c, -1)
			sum.add(count{there: 1, settled: 1, healthy: 1, serving: 1}, 1)
			all[at.group] = sum
		}
	}
	return all
}

// recount updates the contribution of instances that have changed. An event concerns few of them,
// and counting all of them each time would take as long as everything else.
func (r *recorder) recount(id string) {
	if m, there := r.instances[id]; there {
		r.tally(m, -1)
		delete(r.instances, id)
	}
	v := r.w.Instance(id)
	if !v.Present() || !v.Record.Managed || r.counts[v.Record.Group] == nil {
		return
	}
	m := countedInstance{slot: slotOf{v.Record.Group, v.Record.Slot}, counted: r.countOf(id, &v.Record)}
	r.tally(m, 1)
	r.instances[id] = m
}

func (r *recorder) tally(m countedInstance, times int) {
	c := r.slots[m.slot]
	if c == nil {
		c = &count{}
		r.slots[m.slot] = c
	}
	c.add(m.counted, times)
	r.counts[m.slot.group].add(m.counted, times)
}

// countOf returns an instance's contribution to the counts of its group.
func (r *recorder) countOf(id string, rec *store.Instance) count {
	one := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	finished := rec.Phase == store.Finished
	return count{
		there: 1, settled: one(finished || rec.Phase == store.Running), healthy: one(finished || r.w.Sound(id)),
		serving: one(finished || r.w.Serves(id)),
	}
}

// about rounds a duration for people.
func about(d time.Duration) string {
	if d < 10*time.Second {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
	}
	return words(d.Round(time.Second))
}
