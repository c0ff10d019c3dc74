package sim

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

const (
	loadSample = 5 * time.Second  // interval at which agents measure, unless Config.LoadEvery says otherwise
	loadMean   = time.Minute      // span over which a report averages
	loadReport = 30 * time.Second // interval between two reports of load
	// loadSettles is how long the instances of a group have been the same before its load is measured
	// less often: until then the planner corrects the numbers of those that came and of those that
	// are left.
	loadSettles = 3 * time.Minute
)

// load is the total load of a group's instances: it goes from one level to another in a straight
// line and stays there.
type load struct {
	from, to    map[string]float64
	begun, over time.Duration
	reported    bool // false: agents report no load
	next        time.Duration
	tick        int
	running     int // instances at the last tick
	serving     int
	moved       time.Duration // when these numbers changed last
	calm        *calm         // nil: each agent's report is to be written
	measured    bool          // result is asked for
	result      LoadResult
	last        int // the last size
	direction   int // of the last change of size
}

// share is an instance's share of the load of its group.
type share struct {
	at                   time.Duration
	cpu, memory, network float64
}

// LoadResult says how the size of a group followed its load.
type LoadResult struct {
	Below    time.Duration // time in which the load of each serving instance was above the target and its tolerance
	Machines time.Duration // total time of all machines
	Over     int           // the largest excess of the size over the need just after growing
	Outside  bool          // an external metric asked for instances: Below and Over say nothing
	Changes  int           // changes of size
	Turns    int           // changes of direction
}

// SetLoad changes the load of a group: cpu and network of all instances together, memory of each.
// Metrics that are left out do not change.
func (w *World) SetLoad(group string, to map[string]float64, over time.Duration) {
	l := w.followed(group)
	l.reported = true
	now := map[string]float64{}
	for _, metric := range []string{store.MetricCPU, store.MetricMemory, store.MetricNetwork} {
		now[metric] = l.at(w.clock, metric)
	}
	l.from, l.to, l.begun, l.over = now, maps.Clone(now), w.clock, over
	maps.Copy(l.to, to)
}

// Follow measures from now on how the size of a group changes, whether or not the group has a load:
// see LoadOf.
func (w *World) Follow(group string) { w.followed(group).measured = true }

func (w *World) followed(group string) *load {
	if w.loads == nil {
		w.loads = map[string]*load{}
	}
	l := w.loads[group]
	if l == nil {
		l = &load{from: map[string]float64{}}
		w.loads[group] = l
		w.bearNext(group, l)
	}
	return l
}

// bearNext schedules the next measurement of a group's load.
func (w *World) bearNext(group string, l *load) {
	wait := w.cfg.LoadEvery
	if steady := w.cfg.LoadSteady; steady > 0 && w.clock-l.moved >= loadSettles {
		wait = steady - w.clock%steady // all groups at once
	}
	l.next = w.clock + wait
	w.routinely(wait, func() { w.bearLoad(group) })
}

// nextNumber returns when the next number arrives that a group's size follows, from agents or from
// outside; zero: never.
func (w *World) nextNumber() (next time.Time) {
	if t := w.leader; t != nil {
		if at := t.leader.NextQuery(); !at.IsZero() {
			next = at.Add(-t.skew)
		}
	}
	for _, l := range w.loads {
		if l.reported {
			next = plan.Sooner(next, w.cfg.Begins.Add(l.next))
		}
	}
	return next
}

// Mute makes the agents of a group report no load until the next SetLoad.
func (w *World) Mute(group string) {
	l := w.followed(group)
	l.reported = false
	l.settle()
	for _, a := range w.agentsOf(group) {
		if a.m.Running() {
			a.shares = nil
			a.tellLoad()
		}
	}
}

// at returns the level of the load.
func (l *load) at(clock time.Duration, metric string) float64 {
	if clock >= l.begun+l.over {
		return l.to[metric]
	}
	return l.from[metric] + (l.to[metric]-l.from[metric])*float64(clock-l.begun)/float64(l.over)
}

// Unmeasured makes an agent report no load, or report it again.
func (w *World) Unmeasured(id string, on bool) {
	if a := w.agents[id]; a != nil {
		a.settle()
		a.unmeasured = on
	}
}

// LoadOf returns how the size of a group followed its load so far; false if it is not measured.
func (w *World) LoadOf(group string) (LoadResult, bool) {
	if l := w.loads[group]; l != nil && l.measured {
		return l.result, true
	}
	return LoadResult{}, false
}

// bearLoad divides the load of a group among the serving instances, and makes agents report.
func (w *World) bearLoad(group string) {
	l := w.loads[group]
	l.tick++
	if w.bearCalmly(group, l) {
		return
	}
	l.settle()
	type bearer struct {
		*agent
		serves bool
	}
	var serving int
	running := make([]bearer, 0, len(w.agentsOf(group)))
	for _, a := range w.agentsOf(group) {
		if !a.m.Running() {
			continue
		}
		running = append(running, bearer{a, a.serves()})
		if running[len(running)-1].serves {
			serving++
		}
	}
	if l.running != len(running) || l.serving != serving {
		l.running, l.serving, l.moved = len(running), serving, w.clock
	}
	w.bearNext(group, l)
	if l.measured {
		w.followSize(group, l, serving, len(running))
	}
	if !l.reported {
		return
	}
	busy := l.divided(w.clock, serving)
	idle := share{at: w.clock, cpu: 1, memory: busy.memory}
	together := w.newLoads(group, len(running))
	for i, a := range running {
		for len(a.shares) > 0 && (len(a.shares) >= int(loadMean/w.cfg.LoadEvery) ||
			w.cfg.LoadSteady > 0 && w.clock-a.shares[0].at >= loadMean) {
			a.shares = slices.Delete(a.shares, 0, 1)
		}
		a.shares = append(a.shares, pick(a.serves, busy, idle))
		if (l.tick+i)%max(1, int(loadReport/w.cfg.LoadEvery)) == 0 && !a.joins(together) {
			a.tellLoad()
		}
	}
	if together != nil && serving == len(w.agentsOf(group)) && len(together.Instances) == serving {
		l.settles(w.agentsOf(group), together, busy)
	}
}

// divided returns the share of each of so many instances that serve.
func (l *load) divided(clock time.Duration, among int) share {
	return share{
		at: clock, cpu: max(1, min(100, l.at(clock, store.MetricCPU)/float64(among))),
		memory: l.at(clock, store.MetricMemory), network: l.at(clock, store.MetricNetwork) / float64(among),
	}
}

// tells reports whether the agent's reports get through.
func (a *agent) tells() bool {
	return a.open && !a.frozen && !a.w.db.down && a.said.BootID != ""
}

// measure puts together what the agent reports of its load. Its neighbour's is the same, nearly
// always: then it is shared.
func (a *agent) measure(like *measured) {
	a.host = store.HostReport{}
	if a.unmeasured || len(a.shares) == 0 {
		return
	}
	if like.windows != nil && slices.Equal(like.shares, a.shares) {
		a.host.Windows = like.windows
		return
	}
	a.host.Windows = a.w.windowsOf(a.shares)
	*like = measured{a.shares, a.host.Windows}
}

// windowsOf returns what an agent reports of its shares.
func (w *World) windowsOf(shares []share) []store.HostWindow {
	covered := store.Duration(time.Duration(len(shares)) * w.cfg.LoadEvery)
	window := store.HostWindow{Span: store.Duration(time.Minute), Covered: covered}
	for _, share := range shares {
		n := float64(len(shares))
		window.CPUPercent += share.cpu / n
		window.MemoryPercent += share.memory / n
		window.NetworkSent += uint64(share.network * 1e6 * w.cfg.LoadEvery.Seconds())
	}
	window.CPUIdle, window.NetworkIdle = window.CPUPercent == 0, window.NetworkSent == 0
	return []store.HostWindow{window}
}

// measured is what came of shares.
type measured struct {
	shares  []share
	windows []store.HostWindow
}

// tellLoad persists a report in which only the load is new.
func (a *agent) tellLoad() {
	if !a.tells() {
		return
	}
	a.measure(&measured{})
	rec := a.said
	rec.Received, rec.Sent, rec.Epoch, rec.Host = a.w.Now(), a.w.Now(), a.epoch, a.host
	a.reported = a.w.putReport(a.reportKey, &rec)
}

// loads are reports of a group that are written together: the leader sees all of them at once.
type loads struct {
	cache.Loads
	last measured
}

// newLoads returns nil if each report must be written by itself: when observers see each one, and
// when the leader may not have seen the one before.
func (w *World) newLoads(group string, most int) *loads {
	if w.cfg.Plain || w.cfg.Observer.Changed != nil || w.leader == nil || w.leader.reports > 0 {
		return nil
	}
	return &loads{Loads: cache.Loads{
		Group: group, At: w.Now(), Instances: make([]string, 0, most), Windows: make([][]store.HostWindow, 0, most),
		Revisions: make([]store.Revision, 0, most),
	}}
}

// joins writes the report together with others, if nothing but the load is new in it. It uses up as
// much chance as a report for itself does.
func (a *agent) joins(l *loads) bool {
	if l == nil || a.reported == nil || !a.tells() {
		return false
	}
	v, ok := a.reported.record.(*store.Versioned[store.Report])
	if !ok || v.Record.Epoch != a.epoch {
		return false
	}
	a.measure(&l.last)
	d := &a.w.db
	d.rev++
	l.Instances, l.Windows = append(l.Instances, a.m.ID), append(l.Windows, a.host.Windows)
	l.Revisions = append(l.Revisions, d.rev)
	l.Write(len(l.Revisions)-1, v)
	a.reported.kv.Modified, a.reported.kv.Value = d.rev, nil
	if len(l.Revisions) == 1 {
		a.w.leader.committed(batch{loads: &l.Loads})
	} else {
		a.w.chance.upTo(watchLag)
	}
	return true
}

// followSize measures how the size follows the load.
func (w *World) followSize(group string, l *load, serving, machines int) {
	g, there := w.Group(group)
	if !there || g.Scale == nil {
		return
	}
	l.result.Machines += time.Duration(machines) * w.cfg.LoadEvery
	need, below := 0, false
	for _, t := range g.Scale.Targets {
		l.result.Outside = l.result.Outside || t.From != ""
		if t.Metric == store.MetricMemory || t.From != "" {
			continue
		}
		height := l.at(w.clock, t.Metric)
		need = max(need, int(math.Ceil(height/t.Value-1e-6)))
		below = below || height > float64(serving)*t.Value*(1+float64(g.Scale.Tolerance)/100)
	}
	if below {
		l.result.Below += w.cfg.LoadEvery
	}
	size := w.SizeOf(group)
	if change := size - l.last; l.last > 0 && change != 0 {
		l.result.Changes++
		direction := 1
		if change < 0 {
			direction = -1
		} else if !l.result.Outside {
			l.result.Over = max(l.result.Over, size-g.Scale.Within(need))
		}
		if l.direction == -direction {
			l.result.Turns++
		}
		l.direction = direction
	}
	l.last = size
}

// SizeOf returns the size of a group that is in force: the spec's, or what its load or an operator
// chose.
func (w *World) SizeOf(group string) int {
	g, there := w.Group(group)
	if !there {
		return 0
	}
	return g.SizeAt(Read[store.Status](w, w.keys.Status(group)).Record.Scale, w.Now())
}

// Loads lists the groups that have a load, in order.
func (w *World) Loads() []string { return slices.Sorted(maps.Keys(w.loads)) }
