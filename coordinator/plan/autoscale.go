package plan

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/leasehold/leasehold/coordinator/scale"
	"github.com/leasehold/leasehold/store"
)

const (
	// loadFresh is how old the numbers of an instance may be, on our clock. Agents report their load
	// every half minute.
	loadFresh = 3 * time.Minute
	// loadEvery is how often agents report their load, with some time for its way; a number is a mean
	// of loadMean.
	loadEvery = 35 * time.Second
	loadMean  = time.Minute
	// loadCovered is how much of its minute a window of load has to cover.
	loadCovered = 30 * time.Second
	// scalePace is how often a wish is judged: instances report one after the other, and each could
	// be another one.
	scalePace = 5 * time.Second
	// scaleNumbersEvery is how often the numbers of a wish that stands are written.
	scaleNumbersEvery = 30 * time.Second
	// maxWishes bounds the wishes that are remembered, maxGrowths the growths, maxLeft how often
	// instances left.
	maxWishes, maxGrowths, maxLeft = 12, 12, 12
)

// ScaleLapse returns how long a wish may go without being judged before the present size is taken
// for wished, with some time for a plan. A number is a mean of loadMean: it has the load since the
// number before, if that is no older. In a short down.window the lapse must not be most of it.
func ScaleLapse(window time.Duration) time.Duration {
	return max(scaleNumbersEvery, min(loadMean+scalePace, window/2))
}

// scaler chooses the size of a group that follows its load or a schedule.
type scaler struct {
	*draft
	scale *store.Scale // as it will be recorded; nil: the size does not follow the load
	next  time.Time    // when the size has to be judged again
}

func (d *scaler) wake(at time.Time) {
	if !at.IsZero() && at.After(d.now) {
		d.next = Sooner(d.next, at)
	}
}

// follow judges what load asks for, and chooses the size.
func (d *scaler) follow() {
	if d.spec == nil || d.spec.Scale == nil {
		return
	}
	spec, old := d.spec.Scale, d.g.Status.Record.Scale
	if old == nil {
		d.scale = &store.Scale{Wish: d.spec.Size, Asks: d.spec.Size, Wishes: d.wished(nil, d.spec.Size)}
	} else {
		next := *old
		d.scale = &next
		if old.Divided == 0 && old.Shrunk != nil {
			next.Grew = true // a record of a release before: what it has grown to must not shrink at once
		}
	}
	s := d.scale
	s.Size = d.spec.Size
	if !d.mayAct() || d.spec.Deleting || d.spec.Stopped || d.spec.Unstarted {
		return
	}
	moved := d.followSchedule()
	held := d.spec.HeldAt(s, d.now)
	if spec = spec.Under(s.Scheduled); moved && !held && !spec.Advises() {
		s.Size = spec.Within(s.Size) // what load asks for is judged again
		s.Pace = nil
	}
	if h := d.spec.ScaleHold; held {
		d.wake(h.Until)
	} else if old != nil && old.Stays == store.ScaleHeld {
		d.tell("AUTO-3", effect(store.EffectSizeFollows), store.Cause{Kind: store.CauseHoldEnded, By: old.By})
		s.Stays = "" // judged now
	} else if s.Pace != nil { // a group grows in a grace too (AUTO-5)
		if due := d.over(d.g.Due, store.TimerScalePace, s.Pace); d.now.Before(due) {
			d.wake(due)
			return
		}
	}
	was := *s
	load := d.load()
	load.Left = d.noteLeft()
	wish := scale.WishOf(spec, s.Size, load)
	s.Asks, s.Wish = wish.Size, spec.Within(wish.Size)
	size, stays := scale.Step(spec, wish, d.state(spec, wish))
	s.By, s.Until, s.Advice = "", time.Time{}, 0
	switch h := d.spec.ScaleHold; {
	case held:
		stays, s.By, s.Until = store.ScaleHeld, h.By, h.Until
	case spec.Advises():
		if stays = store.ScaleAdvised; size != s.Size {
			s.Advice = size
		}
		if s.Advice != was.Advice && s.Advice != 0 {
			d.tellSize(store.EffectSizeAdvised, s.Size, size, wish.Numbers, store.ScaleAdvised)
		}
	case size != s.Size:
		d.tellSize(store.EffectSize, s.Size, size, wish.Numbers, "")
		changed := d.timer(spec.Down.Every.D())
		s.Shrunk, s.Grew = &changed, size > s.Size
		if s.Grew {
			s.Growths, s.Rising = d.withGrowth(s.Growths, size, spec.Up.Every.D()), nil
		}
		s.Size = size
	}
	s.Stays = stays
	d.showNumbers(&was, wish)
}

// showNumbers writes the numbers of a wish when the wish changes, or why one of them is missing;
// else now and then.
func (d *scaler) showNumbers(was *store.Scale, wish scale.Wish) {
	s := d.scale
	asShown := slices.EqualFunc(s.Numbers, wish.Numbers, func(a, b store.ScaleNumber) bool {
		return a.Old == b.Old && (a.Why == "") == (b.Why == "") &&
			(a.Why == store.NumberNotAsked) == (b.Why == store.NumberNotAsked)
	})
	if samePart(was, s) && asShown && d.now.Sub(s.At) < scaleNumbersEvery && !s.At.After(d.now) {
		return
	}
	pace := d.timer(scalePace)
	s.Pace, s.Numbers, s.At = &pace, wish.Numbers, d.now.UTC()
}

// state is what the next step depends on, by the clock. It takes timers that have ended out of
// the record.
func (d *scaler) state(spec *store.ScaleSpec, wish scale.Wish) scale.State {
	s := d.scale
	over := func(name string, t **store.Timer) bool {
		if *t == nil {
			return true
		}
		due := d.ends(d.g.Due, name, *t)
		if d.now.Before(due) {
			d.wake(due)
			return false
		}
		*t = nil
		return true
	}
	st := scale.State{
		Size: s.Size, Largest: s.Wish, Halted: d.holdsSize(), MayShrink: over(store.TimerScaleShrunk, &s.Shrunk),
	}
	s.Growths = d.growths(s.Growths)
	for _, g := range s.Growths {
		st.Added += g.By
	}
	if len(s.Growths) > 0 {
		st.From = s.Growths[0].From
	}
	switch {
	case s.Wish <= s.Size || wish.Unknown:
		s.Rising = nil
	case s.Rising == nil && spec.Up.Window > 0:
		rising := d.timer(spec.Up.Window.D())
		s.Rising = &rising
		d.wake(d.now.Add(spec.Up.Window.D()))
	default:
		rising := s.Rising // it stays in the record until the group has grown
		st.Risen = over(store.TimerScaleRising, &rising)
	}
	latest := s.Wish
	if wish.Unknown || wish.Silent { // no number says that fewer would do
		latest = max(latest, s.Size)
	}
	if s.Wishes = d.wished(s.Wishes, latest); len(s.Wishes) > 0 {
		st.Largest = max(spec.Within(s.Wishes[0].Size), s.Wish)
	}
	return st
}

// growths returns the part of a list that still counts.
func (d *scaler) growths(list []store.ScaleGrowth) (kept []store.ScaleGrowth) {
	for _, g := range list {
		if due := d.ends(d.g.Due, g.TimerName(), &g.Counts); d.now.Before(due) {
			kept = append(kept, g)
			d.wake(due)
		}
	}
	return kept
}

// withGrowth adds the growth to a size. Of too many, the two oldest become one, which counts as
// long as the later one.
func (d *scaler) withGrowth(list []store.ScaleGrowth, size int, every time.Duration) []store.ScaleGrowth {
	from := d.scale.Size
	list = append(slices.Clone(list), store.ScaleGrowth{From: from, By: size - from, Counts: d.timer(every)})
	if len(list) > maxGrowths {
		list[1].From, list[1].By = list[0].From, list[0].By+list[1].By
		list = list[1:]
	}
	return list
}

// wished adds a wish to those that still count, and drops the others. The new wish replaces all
// earlier ones that are not larger. A wish that stands is renewed: if the newest one is old, the
// load was not judged since, and the present size is taken for wished.
func (d *scaler) wished(list []store.ScaleWish, size int) []store.ScaleWish {
	window := d.spec.Scale.Complete().Down.Window.D()
	if window == 0 {
		return nil
	}
	var kept []store.ScaleWish
	left := time.Duration(0) // of the newest
	for _, w := range list {
		if due := d.ends(d.g.Due, w.TimerName(), &w.Counts); d.now.Before(due) {
			kept, left = append(kept, w), due.Sub(d.now)
			d.wake(due)
		}
	}
	if len(kept) == 0 || left < window-ScaleLapse(window) {
		size = max(size, d.spec.Size)
	}
	for len(kept) > 0 && kept[len(kept)-1].Size < size {
		kept = kept[:len(kept)-1]
	}
	// a tenth more, so that a wish that stands need not be written at each look, and at least as much
	// that it is renewed before it ends
	now := store.ScaleWish{Size: size, Counts: d.timer(window + max(window/10, 2*scalePace))}
	d.wake(d.now.Add(now.Counts.For.D()))
	if last := len(kept) - 1; last >= 0 && kept[last].Size == size {
		if due := d.ends(d.g.Due, kept[last].TimerName(), &kept[last].Counts); due.Sub(d.now) > window {
			return kept
		}
		kept[last] = now
	} else {
		kept = append(kept, now)
	}
	for len(kept) > maxWishes { // the two that differ least become one, which is as large and as long as both
		least := 0
		for i := range len(kept) - 1 {
			if kept[i].Size-kept[i+1].Size < kept[least].Size-kept[least+1].Size {
				least = i
			}
		}
		kept[least].Counts = kept[least+1].Counts
		kept = slices.Delete(kept, least+1, least+2)
	}
	return kept
}

// holdsSize is why the size must not shrink by load (AUTO-5).
func (d *scaler) holdsSize() store.ScaleStays {
	switch r := d.roll.rollout; {
	case d.storms.storm != nil:
		return store.ScaleStorm
	case d.healing.breaker != nil:
		return store.ScaleBreaker
	case r != nil && (r.Stalled != "" || r.Blamed != ""):
		return store.ScaleStalled
	case d.now.Before(d.s.GraceEnd):
		d.wake(d.s.GraceEnd)
		return store.ScaleGrace
	default:
		return ""
	}
}

// load adds up what the instances tell. A slot without a warm instance is missing or on the way.
func (d *scaler) load() scale.Load {
	targets := d.spec.Scale.Targets
	load := scale.Load{Metrics: make([]scale.Numbers, len(targets)), Grew: d.scale.Grew}
	warmup := d.spec.Scale.Complete().Warmup.D()
	for i := range targets {
		load.Metrics[i].Outside = d.outside(&targets[i])
	}
	slots, warm := 0, make([]bool, len(targets))
	for _, sl := range d.order {
		clear(warm)
		fills, starts := false, false
		for _, m := range sl.members {
			if !m.Record.Managed {
				continue
			}
			if m.phase == store.Draining {
				d.addLeaving(&load, m)
			}
			if !m.phase.Fills() {
				continue
			}
			fills = true
			since := m.HealthySince
			if since.Before(m.PhaseStart) {
				since = m.PhaseStart
			}
			switch due := since.Add(warmup); {
			case m.failing() || m.judgment.Verdict == store.Suspect:
			case !m.healthy():
				starts = starts || m.Record.Phase != store.Running
			case d.now.Before(due):
				d.wake(due)
				starts = true
				for i, t := range targets {
					if value, known := d.reported(m, t.Metric); known && t.From == "" {
						value *= d.shareThen(d.now.Sub(since), m.ReportSeen.Sub(since))
						load.Metrics[i].Warming = append(load.Metrics[i].Warming, value)
					}
				}
			default:
				for i, t := range targets {
					value, known := load.Metrics[i].Outside.Value, t.Per == store.PerInstance
					if t.From == "" {
						value, known = d.reported(m, t.Metric)
					}
					if known {
						load.Metrics[i].Sum += value
						load.Metrics[i].Warm++
						warm[i] = true
					}
				}
			}
		}
		switch {
		case !fills:
			continue
		case starts && !slices.Contains(warm, true):
			load.OnTheWay++
		default:
			for i := range targets {
				if !warm[i] {
					load.Metrics[i].Missing++
				}
			}
		}
		slots++
	}
	load.OnTheWay += max(0, d.spec.Size-slots)
	return load
}

// addLeaving adds the reported load of an instance that drains.
func (d *scaler) addLeaving(load *scale.Load, m *member) {
	for i, t := range d.spec.Scale.Targets {
		if value, known := d.reported(m, t.Metric); known && t.From == "" {
			load.Metrics[i].Leaving += value
		}
	}
}

// shareThen returns the share of an instance's reported load that it already had when the other
// instances reported theirs: up to one report interval ago, as a mean of a minute. The other
// instances' numbers still include load that has moved to this instance since then, so it would
// count twice. The instance has been healthy for the first duration, and had been so for the second
// one when it reported.
func (d *scaler) shareThen(healthy, healthyThen time.Duration) float64 {
	then := min(loadMean, healthy-d.loadLate())
	healthyThen = min(loadMean, healthyThen)
	if then <= 0 || healthyThen <= 0 {
		return 0
	}
	return min(1, then.Seconds()/healthyThen.Seconds())
}

// outside is what is known of a number from outside; nothing, of a metric that agents report.
func (d *scaler) outside(t *store.ScaleTarget) (o scale.Outside) {
	if t.From == "" {
		return o
	}
	r := d.g.Readings[t.From]
	if !r.Asked.IsZero() {
		d.wake(r.Asked.Add(query.Fresh))
		o.Age = d.now.Sub(r.Asked)
	}
	o.Value, o.Known = r.Fresh(d.now)
	o.Why = r.Problem
	switch {
	case o.Known && o.Value < 0: // no load is negative, and many programs answer -1 for "unknown"
		o.Known, o.Why = false, "its answer is negative"
	case !o.Known && o.Why == "":
		o.Why = store.NumberNotAsked
	}
	return o
}

// reported returns a member's value of a metric, if it is fresh. An agent that could not measure a
// metric reports a bare zero.
func (d *scaler) reported(m *member, metric string) (value float64, known bool) {
	if m.ReportSeen.IsZero() || d.now.Sub(m.ReportSeen) > loadFresh {
		return 0, false
	}
	windows := m.Report.Record.Host.Windows
	i := slices.IndexFunc(windows, func(w store.HostWindow) bool { return w.Span.D() == time.Minute })
	if i < 0 || windows[i].Covered.D() < loadCovered {
		return 0, false
	}
	idle := false
	switch w := windows[i]; metric {
	case store.MetricCPU:
		value, idle = w.CPUPercent, w.CPUIdle
	case store.MetricMemory:
		value = w.MemoryPercent
	case store.MetricNetwork:
		value, idle = float64(w.NetworkSent+w.NetworkRecv)/w.Covered.D().Seconds()/1e6, w.NetworkIdle
	}
	return value, value > 0 || idle
}

// tellSize notes a change of size with the numbers that it rests on, or one that is only advised.
func (d *scaler) tellSize(what store.EffectKind, from, to int, numbers []store.ScaleNumber, stays store.ScaleStays) {
	d.tell("AUTO-1", store.Effect{Kind: what, Count: from, Limit: to}, store.Cause{
		Kind: store.CauseLoad, Name: string(stays), Count: d.spec.Size, Limit: to,
		Load: &store.CauseNumbers{Numbers: numbers},
	})
}
