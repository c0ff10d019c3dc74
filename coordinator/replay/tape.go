package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

const dayLong = 24 * time.Hour

// tape is what happened to the replayed groups, in order.
type tape struct {
	from, to time.Time
	events   []event
	first    map[string]int // the size of each group at the beginning
	days     map[string][]store.Day
	outside  map[string][]reading // external metrics, by source
	missing  int                  // days about which nothing is known
	omitted  int                  // failures that are known only as a number
	coarse   int                  // hours whose load is known only from a summary
	mean     int                  // hours for which only the mean load is known
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
}

type reading struct {
	at    time.Time
	value float64
}

// record collects what is known of some groups.
func record(in review.Input, groups map[string]bool) *tape {
	t := &tape{
		from: in.From, to: in.To, first: map[string]int{}, days: map[string][]store.Day{},
		outside: map[string][]reading{},
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
		for _, part := range []struct{ minute, which int }{{0, 1}, {25, 2}, {35, 1}} {
			at := hour.Add(time.Duration(part.minute) * time.Minute)
			t.add(event{at: at, group: d.Group, run: l.Run, load: map[string]float64{
				store.MetricCPU: l.CPU[part.which], store.MetricMemory: l.Memory[part.which],
				store.MetricNetwork: l.Network[part.which],
			}})
			for name, v := range l.Outside {
				t.read(name, at, v[part.which])
			}
		}
	}
}

// load adds the load of an hour.
func (t *tape) load(l *store.Load) {
	if len(l.Points) == 1 && l.Points[0].Minute == 0 && !l.Hour.Before(t.from) && l.Hour.Before(t.to) {
		t.mean++
	}
	for _, p := range l.Points {
		at := l.Hour.Add(time.Duration(p.Minute) * time.Minute)
		t.add(event{at: at, group: l.Group, run: p.Run, load: map[string]float64{
			store.MetricCPU: p.CPU, store.MetricMemory: p.Memory, store.MetricNetwork: p.Network,
		}})
		for name, v := range p.Outside {
			t.read(name, at, v)
		}
	}
}

// read adds an external metric's value, from the hour on in which the span begins: an older one
// would be played until the first value of the span.
func (t *tape) read(source string, at time.Time, value float64) {
	if !at.Before(t.from.Truncate(time.Hour)) && at.Before(t.to) {
		t.outside[source] = append(t.outside[source], reading{at, value})
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

// outsideAt returns the last value of a source.
func (t *tape) outsideAt(source string, at time.Time) (float64, bool) {
	all := t.outside[source]
	n, _ := slices.BinarySearchFunc(all, at, func(r reading, at time.Time) int {
		return cmp.Or(r.at.Compare(at), -1) // after all of the same time
	})
	if n == 0 {
		return 0, false
	}
	return all[n-1].value, true
}
