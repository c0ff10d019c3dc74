package review

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What a day keeps at most.
const (
	maxFailures = 200
	maxSizes    = 100
	maxRolls    = 50
)

// Slim returns what summaries, reports and replays need of an entry. The rest is text for people,
// of which a shard may have very much.
func Slim(e store.JournalEntry) store.JournalEntry {
	return store.JournalEntry{
		At: e.At, Rule: e.Rule, Group: e.Group, Instance: e.Instance, Kind: e.Kind,
		Cause:       store.Cause{Kind: e.Cause.Kind, Name: e.Cause.Name, Count: e.Cause.Count, Limit: e.Cause.Limit},
		Replacement: e.Replacement, Claimed: e.Claimed, Slot: e.Slot, From: e.From, To: e.To, Verdict: e.Verdict,
	}
}

// Days sums up the day that begins at a time, for each group that was there. The entries reach from
// some time before the day until now. What was before in.Created does not count.
func Days(in Input, begin time.Time) []store.Day {
	in.From, in.To = begin, begin.Add(dayLong)
	if in.Created.After(begin) {
		in.From = in.Created
	}
	in.Entries = inOrder(in.Entries)
	w, p := walked(in), pastsOf(in.Entries, in.From, in.To)
	loads := map[string][]store.DayLoad{}
	for _, l := range in.Loads {
		if !l.Hour.Before(begin) && l.Hour.Before(in.To) && len(l.Points) > 0 {
			loads[l.Group] = append(loads[l.Group], dayLoad(l, begin))
		}
	}
	var days []store.Day
	for _, name := range slices.Sorted(maps.Keys(w.groups)) {
		g := w.groups[name]
		var s sum
		s.walked(g, in.To)
		s.order()
		if s.wanted == 0 && len(s.made) == 0 {
			continue // it was not there
		}
		d := store.Day{
			Schema: store.Schema, Group: name, Day: begin.UTC().Format(store.DayLayout),
			Wanted: store.Duration(s.wanted), Lost: store.Duration(s.lost), Causes: s.causes, Made: s.made,
			Detect: dayOf(g.detect), Replace: dayOf(g.replace), Heal: dayOf(g.heal),
			Loads: loads[name], Uncounted: p.more,
		}
		p.group(name).fill(&d, begin, in.From, g.atFirst)
		slices.SortFunc(d.Loads, func(a, b store.DayLoad) int { return cmp.Compare(a.Hour, b.Hour) })
		days = append(days, d)
	}
	return days
}

// fill adds what a replay needs of what happened from a time on, when so many slots were wanted.
func (g *past) fill(d *store.Day, begin, from time.Time, wanted int) {
	since := func(at time.Time) store.Duration { return store.Duration(at.Sub(begin).Round(time.Second)) }
	size := g.size
	if size == 0 {
		size = wanted // no entry says what it was
	}
	if size > 0 {
		d.Sizes = append(d.Sizes, store.DaySize{At: since(from), Size: size})
	}
	for _, s := range g.sizes {
		if n := len(d.Sizes); n > 0 && d.Sizes[n-1].Size == s.size || n >= maxSizes {
			continue
		}
		d.Sizes = append(d.Sizes, store.DaySize{At: since(s.at), Size: s.size})
	}
	for _, at := range g.rolls[:min(maxRolls, len(g.rolls))] {
		d.Rolls = append(d.Rolls, since(at))
	}
	failures := slices.Clone(g.failures)
	slices.SortStableFunc(failures, func(a, b Failure) int { return a.At.Compare(b.At) })
	d.Omitted = max(0, len(failures)-maxFailures)
	for _, f := range failures[:len(failures)-d.Omitted] {
		one := store.DayFailure{At: since(f.At), Kind: f.Kind, Slot: f.Slot}
		if f.For > 0 {
			one.For = store.Duration(max(time.Second, f.For.Round(time.Second)))
		}
		d.Failures = append(d.Failures, one)
	}
	d.Starts, d.Calls, d.Unready = dayOf(g.starts), dayOf(g.calls), g.unready
}

// dayLoad sums an hour up.
func dayLoad(l store.Load, begin time.Time) store.DayLoad {
	out := store.DayLoad{Hour: int(l.Hour.Sub(begin).Hours())}
	var cpu, memory, network []float64
	outside := map[string][]float64{}
	for _, p := range l.Points {
		out.Run += p.Run / float64(len(l.Points))
		cpu, memory, network = append(cpu, p.CPU), append(memory, p.Memory), append(network, p.Network)
		for name, v := range p.Outside {
			outside[name] = append(outside[name], v)
		}
	}
	out.CPU, out.Memory, out.Network = lowMidHigh(cpu), lowMidHigh(memory), lowMidHigh(network)
	for name, values := range outside {
		if out.Outside == nil {
			out.Outside = map[string][3]float64{}
		}
		out.Outside[name] = lowMidHigh(values)
	}
	return out
}

func lowMidHigh(v []float64) [3]float64 {
	slices.Sort(v)
	return [3]float64{v[0], v[len(v)/2], v[len(v)-1]}
}
