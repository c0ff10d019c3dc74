package plan

import (
	"math"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/scale"
	"github.com/leasehold/leasehold/store"
)

// Each state in which the size must not shrink by load is one by itself.
//
// proves AUTO-5
func TestWhatHoldsASize(t *testing.T) {
	for want, edit := range map[store.ScaleStays]func(*draft){
		"":                 func(*draft) {},
		store.ScaleStorm:   func(d *draft) { d.storms.storm = &store.Storm{} },
		store.ScaleBreaker: func(d *draft) { d.healing.breaker = &store.Breaker{} },
		store.ScaleStalled: func(d *draft) { d.roll.rollout = &store.Rollout{Stalled: "no progress"} },
		store.ScaleGrace:   func(d *draft) { d.s.GraceEnd = epoch.Add(time.Second) },
	} {
		d := draftWith(func(d *draft) { d.s, d.now, d.roll.rollout = &Snapshot{}, epoch, &store.Rollout{} })
		if edit(d); d.scaler.holdsSize() != want {
			t.Errorf("held by %q, want %q", d.scaler.holdsSize(), want)
		}
	}
	d := draftWith(func(d *draft) {
		d.s, d.now = &Snapshot{}, epoch
		d.roll.rollout = &store.Rollout{Blamed: "it fails"}
	})
	if d.scaler.holdsSize() != store.ScaleStalled {
		t.Error("a roll that has stopped does not hold the size")
	}
}

// What drains since load asked for fewer holds up no growth, however long it takes, but there are
// never more machines for that than at scale.max. What drains for another reason counts, and in a
// group without scale everything does.
//
// proves AUTO-2, REC-18
func TestLongDrainsHoldUpNoGrowth(t *testing.T) {
	byCPU := func(most int) *store.ScaleSpec {
		return &store.ScaleSpec{Max: most, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}}}
	}
	for name, test := range map[string]struct {
		scale  *store.ScaleSpec
		leaves store.Purpose
		want   string
	}{
		"load asked for fewer":   {byCPU(9), store.PurposeSize, "REC-3 +2, REC-3 +3"},
		"as many as at max":      {byCPU(5), store.PurposeSize, "REC-3 +2"},
		"more than at max":       {byCPU(4), store.PurposeSize, ""},
		"an operator ordered it": {byCPU(9), store.PurposeOrder, ""},
		"no load is followed":    {nil, store.PurposeSize, ""},
	} {
		w := newTestWorld(t)
		w.edit(func(g *store.Group) { g.Size, g.Budget.MaxExpansion, g.Scale = 4, 1, test.scale })
		w.place("a", 0, store.Running)
		w.place("b", 1, store.Running)
		for i, id := range []string{"c", "d", "e"} {
			w.place(id, 2+i, store.Draining, func(r *store.Instance) {
				r.Leaves = test.leaves
				r.Drain = &store.Drain{Token: "t", Timer: store.Timer{Start: w.now, For: store.Duration(time.Hour)}}
			})
		}
		w.pass(0)
		if got := w.briefly(); got != test.want {
			t.Errorf("%s: planned %q, want %q", name, got, test.want)
		}
	}
}

// Load that moves to a new instance counts once: of the instance's reported load, only the share
// counts that it had when the others reported theirs last.
//
// proves AUTO-2
func TestLoadThatMovesCountsOnce(t *testing.T) {
	const s = time.Second
	for name, test := range map[string]struct {
		every, healthy, told time.Duration
		want                 float64
	}{
		"it has just got healthy":         {5 * s, 10 * s, 5 * s, 0},
		"it told before it was healthy":   {5 * s, 40 * s, -5 * s, 0},
		"the others have told since":      {5 * s, 65 * s, 40 * s, 0.75},
		"the others tell whole minutes":   {5 * s, 95 * s, 80 * s, 1},
		"it told long ago":                {5 * s, 80 * s, 20 * s, 1},
		"agents report every two minutes": {120 * s, 150 * s, 60 * s, 0.5},
	} {
		spec := store.Group{Report: store.ReportSpec{Interval: store.Duration(test.every)}}
		d := draftWith(func(d *draft) { d.spec = &spec })
		if got := d.scaler.shareThen(test.healthy, test.told); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// Instances that leave count until the others tell their load: in full for as long as a report may
// be old, and less and less in the minute after it. What drains has not left yet, nor has a slot
// that is to be filled again.
//
// proves AUTO-2
func TestLoadOfThoseThatLeftCounts(t *testing.T) {
	w := newTestWorld(t)
	w.edit(func(g *store.Group) { g.Size = 2 })
	for i, id := range []string{"a", "b", "c", "d"} {
		w.place(id, i, store.Running)
	}
	d := w.drafted()
	d.g.Due, d.scaler.scale = Due{}, &store.Scale{}
	after := func(wait time.Duration, want float64, edit func()) {
		t.Helper()
		d.now = d.now.Add(wait)
		edit()
		if got := d.scaler.noteLeft(); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v left, want %v: %+v", got, want, d.scaler.scale)
		}
		for _, l := range d.scaler.scale.Left {
			d.g.Due[l.TimerName()] = l.Counts.Start.Add(l.Counts.For.D())
		}
	}
	phase := func(slot int, p store.Phase) func() {
		return func() { d.order[slot].members[0].phase = p }
	}
	after(0, 0, func() {})
	after(0, 0, phase(2, store.Draining))
	after(time.Minute, 1, phase(2, store.Deleting))
	after(loadEvery, 1, func() {})
	after(30*time.Second, 1.5, phase(3, store.Deleting))
	after(30*time.Second, 1, func() {})
	after(35*time.Second, 0.5, phase(1, store.Deleting))
	after(30*time.Second, 0, func() {})
}

// A number counts if it came in our time, lately, and covers half a minute.
//
// proves AUTO-2
func TestWhichLoadCounts(t *testing.T) {
	window := store.HostWindow{
		Span: store.Duration(time.Minute), Covered: store.Duration(30 * time.Second), CPUPercent: 40, MemoryPercent: 50,
		NetworkSent: 20e6, NetworkRecv: 10e6,
	}
	for name, test := range map[string]struct {
		metric string
		seen   time.Time
		edit   func(*store.HostWindow)
		want   float64 // 0: it does not count, unless it is idle
	}{
		"cpu":                {store.MetricCPU, epoch, nil, 40},
		"memory":             {store.MetricMemory, epoch, nil, 50},
		"network":            {store.MetricNetwork, epoch, nil, 1},
		"just fresh":         {store.MetricCPU, epoch.Add(-3 * time.Minute), nil, 40},
		"old":                {store.MetricCPU, epoch.Add(-3*time.Minute - 1), nil, 0},
		"before our time":    {store.MetricCPU, time.Time{}, nil, 0},
		"another window":     {store.MetricCPU, epoch, func(w *store.HostWindow) { w.Span *= 5 }, 0},
		"too little covered": {store.MetricCPU, epoch, func(w *store.HostWindow) { w.Covered-- }, 0},
		"not measured":       {store.MetricCPU, epoch, func(w *store.HostWindow) { w.CPUPercent = 0 }, 0},
		"idle":               {store.MetricCPU, epoch, func(w *store.HostWindow) { w.CPUPercent, w.CPUIdle = 0, true }, 0},
		"no network traffic": {store.MetricNetwork, epoch, func(w *store.HostWindow) {
			w.NetworkSent, w.NetworkRecv, w.NetworkIdle = 0, 0, true
		}, 0},
	} {
		w := window
		if test.edit != nil {
			test.edit(&w)
		}
		m := &member{Instance: &Instance{ReportSeen: test.seen}}
		m.Report.Record.Host.Windows = []store.HostWindow{w}
		value, told := draftWith(func(d *draft) { d.now = epoch }).scaler.reported(m, test.metric)
		if told != (test.want > 0 || w.CPUIdle || w.NetworkIdle) || told && value != test.want {
			t.Errorf("%s: %v, %t; want %v", name, value, told, test.want)
		}
	}
}

// Why a number is missing is written as soon as that is known.
//
// proves AUTO-2
func TestWhyANumberIsMissingIsShownAtOnce(t *testing.T) {
	w := newTestWorld(t)
	d := w.drafted()
	missing := func(why string) []store.ScaleNumber {
		return []store.ScaleNumber{{Metric: "queue", Old: true, Why: why}}
	}
	d.scaler.scale = &store.Scale{At: d.now, Numbers: missing(store.NumberNotAsked)}
	for _, why := range []string{store.NumberNotAsked, "unreachable: connection refused"} {
		was := *d.scaler.scale
		d.scaler.showNumbers(&was, scale.Wish{Numbers: missing(why)})
		if got := d.scaler.scale.Numbers[0].Why; got != why {
			t.Errorf("shown is %q, want %q", got, why)
		}
	}
}
