package replay

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// past is a past in which machines died, for tests.
type past struct {
	in   review.Input
	made int
	now  map[string]string // instance by group and slot
}

func newPast(length time.Duration, groups ...store.Group) *past {
	p := &past{now: map[string]string{}, in: review.Input{From: begin, To: begin.Add(length), Kept: 2 * length}}
	for _, g := range groups {
		p.in.Entries = append(p.in.Entries, store.JournalEntry{
			At: begin.Add(-time.Hour), Group: g.Name,
			Cause: store.Cause{Kind: store.CauseSpec, Count: g.Size, Name: "t"},
		})
		for slot := range g.Size {
			p.now[fmt.Sprint(g.Name, slot)] = fmt.Sprintf("%s-%d-0", g.Name, slot)
		}
	}
	return p
}

// dies has the machine in a slot die; another one serves after a time.
func (p *past) dies(group string, slot int, after, start time.Duration) {
	key := fmt.Sprint(group, slot)
	p.made++
	old, heir, at := p.now[key], fmt.Sprintf("%s-%d-%d", group, slot, p.made), begin.Add(after)
	p.now[key] = heir
	for _, e := range []store.JournalEntry{
		{At: at, Instance: old, Kind: store.EntryVerdict, Verdict: store.Suspect},
		{At: at.Add(time.Second), Instance: old, Kind: store.EntryVerdict, Verdict: store.Dead},
		{
			At: at.Add(2 * time.Second), Instance: old, From: store.Running, To: store.Deleting, Verdict: store.Dead,
			Replacement: heir, Cause: store.Cause{Kind: store.CauseDown},
		},
		{At: at.Add(4 * time.Second), Instance: heir, From: store.Creating, To: store.Booting},
		{At: at.Add(4*time.Second + start), Instance: heir, From: store.Checking, To: store.Running},
	} {
		e.Group, e.Slot = group, &slot
		p.in.Entries = append(p.in.Entries, e)
	}
}

// finish adds the records of now.
func (p *past) finish(groups ...store.Group) review.Input {
	for _, g := range groups {
		for slot := range g.Size {
			p.in.Instances = append(p.in.Instances, store.Instance{
				ID: p.now[fmt.Sprint(g.Name, slot)], Group: g.Name, Slot: slot, Managed: true, Phase: store.Running,
				Created: begin.Add(-time.Hour),
			})
		}
	}
	return p.in
}

func group(name string, size int) store.Group {
	g := store.DefaultGroup()
	g.Name, g.Size, g.Provider = name, size, "cloud"
	g.Complete()
	return g
}

func played(t testing.TB, in review.Input, control, would store.Group) Group {
	t.Helper()
	res, err := Play(t.Context(), Input{
		Past: in, Groups: []store.Group{would}, Control: []store.Group{control},
		Settings: store.DefaultShardSettings(), Seed: 1, Progress: func(time.Duration) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return res.Groups[0]
}

// The policy in force, played against its own past, gives the past; another policy gives something
// else.
//
// proves AUTO-4
func TestReplayOfFailures(t *testing.T) {
	web := group("web", 5)
	p := newPast(72*time.Hour, web)
	for i := range 12 {
		p.dies("web", i%5, time.Duration(i*5+1)*time.Hour, 40*time.Second)
	}
	never := group("web", 5)
	never.Heal.Policy = store.HealNone
	g := played(t, p.finish(web), web, never)
	if g.Was.Replaced != 12 || g.Control.Replaced != 12 || g.Control.Machines != 12 {
		t.Errorf("was %+v\ncontrol %+v", g.Was, g.Control)
	}
	if ratio := g.Control.Lost.D().Seconds() / g.Was.Lost.D().Seconds(); ratio < 0.7 || ratio > 1.5 {
		t.Errorf("lost: was %s, control %s", g.Was.Lost, g.Control.Lost)
	}
	if g.Would.Lost.D() < 24*time.Hour || g.Would.Replaced != 0 {
		t.Errorf("without healing: %+v", g.Would)
	}
	if again := played(t, p.in, web, never); again.Control.Lost != g.Control.Lost || again.Would.Lost != g.Would.Lost {
		t.Error("the same past comes to something else")
	}
}

// Recorded loads are played against another target.
//
// proves AUTO-4
func TestReplayOfLoads(t *testing.T) {
	scaled := func(target float64) store.Group {
		g := group("web", 4)
		least := 2
		targets := []store.ScaleTarget{{Metric: store.MetricCPU, Value: target}}
		g.Scale = &store.ScaleSpec{Min: &least, Max: 20, Targets: targets}
		g.Complete()
		return g
	}
	p := newPast(24*time.Hour, group("web", 4))
	for hour := range 24 {
		l := store.Load{Group: "web", Hour: begin.Add(time.Duration(hour) * time.Hour)}
		for minute := 0; minute < 60; minute += 5 {
			day := 1 - math.Cos(2*math.Pi*(float64(hour)+float64(minute)/60)/24)
			l.Points = append(l.Points, store.LoadPoint{Minute: minute, Run: 4, CPU: 20 + 20*day})
		}
		p.in.Loads = append(p.in.Loads, l)
	}
	g := played(t, p.finish(group("web", 4)), scaled(60), scaled(30))
	if g.Control.SizeChanges == 0 || g.Would.Wanted < g.Control.Wanted*3/2 {
		t.Errorf("control %+v\nwould %+v", g.Control, g.Would)
	}
}

// A replay skips time in which nothing happens, but no number that a size follows: with a load that
// stays low the group shrinks after down.window. A time without a recorded number is different: the
// size stays in it, and for down.window after it, as after a pause of a coordinator.
//
// proves AUTO-2, AUTO-4
func TestSkippedTimeIsNoAbsenceOfLoad(t *testing.T) {
	const length, falls, returns, window = 4 * time.Hour, time.Hour, 2 * time.Hour, 5 * time.Minute
	always := func(time.Duration) bool { return true }
	upTo := func(after time.Duration) bool { return after < falls }
	notFor := func(after time.Duration) bool { return upTo(after) || after >= returns }
	for name, test := range map[string]struct {
		recorded    func(after time.Duration) bool
		from, until time.Duration // when the group shrinks first; 0: it does not
	}{
		"all the time":   {always, falls + window, falls + window + 15*time.Minute},
		"not for a time": {notFor, returns + window, returns + window + 10*time.Minute},
		"never again":    {upTo, 0, 0},
	} {
		for _, outside := range []bool{false, true} {
			web, fixed := group("web", 8), group("fixed", 3)
			p := newPast(length, web, fixed)
			least := 2
			target := store.ScaleTarget{Metric: store.MetricCPU, Value: 50}
			if outside {
				target = store.ScaleTarget{From: "queue", Value: 100}
			}
			web.Scale = &store.ScaleSpec{Min: &least, Max: 20, Targets: []store.ScaleTarget{target}}
			web.Complete()
			for hour := time.Duration(0); hour < length; hour += time.Hour {
				l := store.Load{Group: "web", Hour: begin.Add(hour)}
				for minute := 0; minute < 60; minute += 5 {
					after := hour + time.Duration(minute)*time.Minute
					point := store.LoadPoint{Minute: minute, Run: 8, CPU: 50, Memory: 30}
					queue := 800.0
					if after >= falls {
						point.CPU, queue = 10, 150
					}
					if outside && test.recorded(after) {
						point.Outside = map[string]float64{"queue": queue}
					}
					if outside || test.recorded(after) {
						l.Points = append(l.Points, point)
					}
				}
				p.in.Loads = append(p.in.Loads, l)
			}
			in := p.finish(web, fixed)
			first, skipped := firstShrink(t, in, web, fixed)
			if first < test.from || first > test.until {
				t.Errorf("%s, outside %t: it shrinks first after %s, want %s to %s", name, outside, first, test.from, test.until)
			}
			if skipped < length/2 {
				t.Errorf("%s, outside %t: of %s only %s are skipped", name, outside, length, skipped)
			}
		}
	}
}

// firstShrink plays groups, and returns when load makes one smaller first, and how much time is
// skipped.
func firstShrink(t *testing.T, in review.Input, groups ...store.Group) (first, skipped time.Duration) {
	t.Helper()
	names := map[string]bool{}
	for _, g := range groups {
		names[g.Name] = true
	}
	p, err := run(t.Context(), record(in, names), groups, nil, store.DefaultShardSettings(), 1, func(time.Duration) {})
	if err != nil {
		t.Fatal(err)
	}
	size := 8
	for i := range p.entries {
		e := &p.entries[i]
		if to, ok := review.SizeOf(e); ok && e.Group == "web" {
			if to < size {
				return e.At.Sub(begin), p.skipped
			}
			size = to
		}
	}
	return 0, p.skipped
}
