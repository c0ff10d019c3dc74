package replay

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

const (
	dayLong   = 24 * time.Hour
	loadPoint = 5 * time.Minute // of which a recorded load is the mean
)

// tape is what happened to the replayed groups, in order.
type tape struct {
	from, to time.Time
	events   []event
	first    map[string]int // the size of each group at the beginning
	days     map[string][]store.Day
	outside  map[query.Key][]reading // external metrics
	missing  int                     // days about which nothing is known
	omitted  int                     // failures that are known only as a number
	coarse   int                     // hours whose load is known only from a summary
	mean     int                     // hours for which only the mean load is known

	// of tests
	plain   bool // it is played in a plain world
	planned func(at time.Time, s *plan.Snapshot, p *plan.Plan)
}

// event is one recorded event. One of its parts is set.
type event struct {
	at      time.Time
	group   string
	size    int
	roll    bool
	failure *store.DayFailure
	load    map[string]float64 // per running instance; run is their number
	run     float64
	silent  bool          // no load is recorded
	lasts   time.Duration // of load and silent
}

// reading is a number from outside, and until when it is recorded.
type reading struct {
	at, until time.Time
	value     float64
}

// record collects what is known of some groups.
func record(in review.Input, groups map[string]bool) *tape {
	t := &tape{
		from: in.From, to: in.To, first: map[string]int{}, days: map[string][]store.Day{},
		outside: map[query.Key][]reading{},
	}
	fine := map[string]map[time.Time]bool{}
	for i := range in.Loads {
		l := &in.Loads[i]
		if groups[l.Group] {
			if fine[l.Group] == nil {
				fine[l.Group] = map[time.Time]bool{}
			}
			fine[l.Group][l.Hour.UTC()] = true
			t.load(l)
		}
	}
	for day := t.from.UTC().Truncate(dayLong); day.Before(t.to); day = day.Add(dayLong) {
		known := daysOf(in, day)
		if len(known) == 0 {
			t.missing++
		}
		for i := range known {
			if d := &known[i]; groups[d.Group] {
				t.day(d, day, fine[d.Group])
			}
		}
	}
	t.silences(groups)
	slices.SortStableFunc(t.events, func(a, b event) int { return a.at.Compare(b.at) })
	for _, readings := range t.outside {
		slices.SortStableFunc(readings, func(a, b reading) int { return a.at.Compare(b.at) })
	}
	return t
}

// daysOf returns the summaries of a day: the stored ones or, if the journal covers the day, new
// ones.
func daysOf(in review.Input, day time.Time) []store.Day {
	reach := in.To.Add(-in.Kept)
	covered := in.Kept <= 0 || !day.Before(reach) || !in.Created.IsZero() && !in.Created.Before(reach)
	if covered && day.Add(dayLong).After(in.Created) {
		return review.Days(in, day)
	}
	var kept []store.Day
	name := day.Format(store.DayLayout)
	for _, d := range in.Days {
		if d.Day == name {
			kept = append(kept, d)
		}
	}
	return kept
}

// day adds a day's events.
func (t *tape) day(d *store.Day, begin time.Time, fine map[time.Time]bool) {
	t.days[d.Group] = append(t.days[d.Group], *d)
	t.omitted += d.Omitted
	for _, s := range d.Sizes {
		at := begin.Add(s.At.D())
		if !at.After(t.from) || t.first[d.Group] == 0 {
			t.first[d.Group] = s.Size
		}
		t.add(event{at: at, group: d.Group, size: s.Size})
	}
	for _, at := range d.Rolls {
		t.add(event{at: begin.Add(at.D()), group: d.Group, roll: true})
	}
	for i := range d.Failures {
		t.add(event{at: begin.Add(d.Failures[i].At.D()), group: d.Group, failure: &d.Failures[i]})
	}
	for _, l := range d.Loads {
		hour := begin.Add(time.Duration(l.Hour) * time.Hour)
		if fine[hour] {
			continue
		}
		t.coarse++
		// The middle of the hour, and its peak for ten minutes.
		for _, part := range []struct{ minute, lasts, which int }{{0, 25, 1}, {25, 10, 2}, {35, 25, 1}} {
			p := store.LoadPoint{
				Run: l.Run, CPU: l.CPU[part.which], Memory: l.Memory[part.which], Network: l.Network[part.which],
				Outside: map[string]float64{},
			}
			for name, v := range l.Outside {
				p.Outside[name] = v[part.which]
			}
			at := hour.Add(time.Duration(part.minute) * time.Minute)
			t.point(d.Group, p, at, time.Duration(part.lasts)*time.Minute)
		}
	}
}

// load adds the load of an hour.
func (t *tape) load(l *store.Load) {
	lasts := loadPoint
	if len(l.Points) == 1 && l.Points[0].Minute == 0 {
		if lasts = time.Hour; !l.Hour.Before(t.from) && l.Hour.Before(t.to) {
			t.mean++
		}
	}
	for _, p := range l.Points {
		t.point(l.Group, p, l.Hour.Add(time.Duration(p.Minute)*time.Minute), lasts)
	}
}

// point takes up what is known of the load for some time. What is over when the span begins is not
// played. No machine has no memory in use: then no agent told its load, and only a number from
// outside is known.
func (t *tape) point(group string, p store.LoadPoint, at time.Time, lasts time.Duration) {
	until := at.Add(lasts)
	if !until.After(t.from) || !at.Before(t.to) {
		return
	}
	if at.Before(t.from) {
		at = t.from
	}
	for name, v := range p.Outside {
		key := query.Key{Source: name, Group: group}
		t.outside[key] = append(t.outside[key], reading{at, until, v})
	}
	if p.CPU > 0 || p.Memory > 0 || p.Network > 0 {
		t.add(event{at: at, group: group, lasts: until.Sub(at), run: p.Run, load: map[string]float64{
			store.MetricCPU: p.CPU, store.MetricMemory: p.Memory, store.MetricNetwork: p.Network,
		}})
	}
}

// silences adds the times for which no load of a group is recorded: no agent reported it, or no
// leader saw it. In a time that the replay skips, the load stays as it is.
func (t *tape) silences(groups map[string]bool) {
	loads := map[string][]event{}
	for _, e := range t.events {
		if e.load != nil {
			loads[e.group] = append(loads[e.group], e)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		slices.SortStableFunc(loads[group], func(a, b event) int { return a.at.Compare(b.at) })
		known := t.from // until then
		for _, e := range append(loads[group], event{at: t.to}) {
			if e.at.After(known) {
				t.add(event{at: known, group: group, silent: true, lasts: e.at.Sub(known)})
			}
			if until := e.at.Add(e.lasts); until.After(known) {
				known = until
			}
		}
	}
}

func (t *tape) add(e event) {
	if !e.at.Before(t.from) && e.at.Before(t.to) {
		t.events = append(t.events, e)
	}
}

// starts returns how long the starts of a group took on the day of a time, or on the nearest
// earlier day with starts, else on a later one; and how many in a thousand failed on that day.
func (t *tape) starts(group string, at time.Time) (took []store.Duration, failed int) {
	today := at.UTC().Format(store.DayLayout)
	for _, d := range t.days[group] {
		if d.Day > today && len(took) > 0 {
			break
		}
		if d.Starts.Times > 0 {
			took = d.Starts.Took
		}
		if d.Day == today && d.Unready > 0 {
			failed = 1000 * d.Unready / (d.Unready + d.Starts.Times)
		}
	}
	return took, failed
}

// calls returns how long it took to create machines, in ascending order.
func (t *tape) calls() (short, long time.Duration) {
	var all []store.Duration
	for _, days := range t.days {
		for _, d := range days {
			all = append(all, d.Calls.Took...)
		}
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.SortFunc(all, func(a, b store.Duration) int { return cmp.Compare(a, b) })
	return all[len(all)/10].D(), all[len(all)*9/10].D()
}

// outsideAt returns the number that a source gave at a time; false if it gave none. Before the span
// it is the number at the span's beginning.
func (t *tape) outsideAt(key query.Key, at time.Time) (float64, bool) {
	all := t.outside[key]
	if at.Before(t.from) {
		at = t.from
	}
	n, _ := slices.BinarySearchFunc(all, at, func(r reading, at time.Time) int {
		return cmp.Or(r.at.Compare(at), -1) // after all of the same time
	})
	if n == 0 || !at.Before(all[n-1].until) {
		return 0, false
	}
	return all[n-1].value, true
}
