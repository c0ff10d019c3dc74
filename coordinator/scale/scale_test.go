package scale_test

import (
	"testing"

	"github.com/leasehold/leasehold/coordinator/scale"
	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // one seed every day
	"pgregory.net/rapid"
)

func spec(least, most int, targets ...store.ScaleTarget) *store.ScaleSpec {
	s := store.ScaleSpec{Min: &least, Max: most, Targets: targets}.Complete()
	return &s
}

var (
	cpu     = store.ScaleTarget{Metric: store.MetricCPU, Value: 50}
	memory  = store.ScaleTarget{Metric: store.MetricMemory, Value: 80}
	queue   = store.ScaleTarget{From: "queue", Value: 100}
	perOne  = store.ScaleTarget{From: "delay", Per: store.PerInstance, Value: 50}
	network = store.ScaleTarget{Metric: store.MetricNetwork, Value: 2}

	onCPU          = []store.ScaleTarget{cpu}
	onMemory       = []store.ScaleTarget{memory}
	onBoth         = []store.ScaleTarget{cpu, network}
	onCPUAndMemory = []store.ScaleTarget{cpu, memory}
)

// What load asks for, by what is known of it.
//
// proves AUTO-1, AUTO-2
func TestWish(t *testing.T) {
	told := func(sum float64, warm, missing int) scale.Numbers {
		return scale.Numbers{Sum: sum, Warm: warm, Missing: missing}
	}
	type numbers = []scale.Numbers
	for name, test := range map[string]struct {
		targets     []store.ScaleTarget
		size, onWay int
		metrics     numbers
		want        int
		flags       string // unknown, silent
	}{
		"on target":                  {onCPU, 4, 0, numbers{told(200, 4, 0)}, 4, ""},
		"tolerated above":            {onCPU, 4, 0, numbers{told(210, 4, 0)}, 4, ""},
		"above":                      {onCPU, 4, 0, numbers{told(210.1, 4, 0)}, 5, ""},
		"tolerated beside a start":   {onCPU, 3, 1, numbers{told(165, 3, 0)}, 3, ""},
		"above beside a start":       {onCPU, 3, 1, numbers{told(165.1, 3, 0)}, 4, ""},
		"tolerated beside a silence": {onCPU, 3, 0, numbers{told(165, 3, 1)}, 3, ""},
		"far above":                  {onCPU, 4, 0, numbers{told(400, 4, 0)}, 8, ""},
		"a little below":             {onCPU, 10, 0, numbers{told(450.1, 10, 0)}, 10, ""},
		"below":                      {onCPU, 10, 0, numbers{told(450, 10, 0)}, 9, ""},
		"idle":                       {onCPU, 10, 0, numbers{told(0, 10, 0)}, 0, ""},
		"no hair too many":           {onCPU, 10, 0, numbers{told(150.00000000001, 10, 0)}, 3, ""},
		"more are on the way":        {onCPU, 8, 4, numbers{told(400, 4, 0)}, 8, ""},
		"too few are on the way":     {onCPU, 6, 2, numbers{told(400, 4, 0)}, 8, ""},
		"those on the way carry":     {onCPU, 8, 4, numbers{told(40, 4, 0)}, 5, ""},
		"missing carry for down":     {onCPU, 5, 0, numbers{told(30, 3, 2)}, 3, ""},
		"missing do not for up":      {onCPU, 5, 0, numbers{told(300, 3, 2)}, 6, ""},
		"lost ones count":            {onCPU, 8, 0, numbers{told(400, 5, 3)}, 8, ""},
		"half is not most":           {onCPU, 4, 0, numbers{told(200, 2, 2)}, 4, "unknown silent"},
		"none tells":                 {onCPU, 4, 0, numbers{told(0, 0, 4)}, 4, "unknown silent"},
		"none is warm":               {onCPU, 4, 4, numbers{told(0, 0, 0)}, 4, "unknown silent"},
		"size 0":                     {onCPU, 0, 0, numbers{told(0, 0, 0)}, 0, "unknown silent"},
		"memory grows":               {onMemory, 4, 0, numbers{told(400, 4, 0)}, 5, ""},
		"memory does not shrink":     {onMemory, 4, 0, numbers{told(40, 4, 0)}, 4, ""},
		"the largest wins":           {onBoth, 4, 0, numbers{told(40, 4, 0), told(13, 4, 0)}, 7, ""},
		"the largest below":          {onBoth, 4, 0, numbers{told(40, 4, 0), told(4, 4, 0)}, 2, ""},
		"memory holds a shrink up":   {onCPUAndMemory, 4, 0, numbers{told(40, 4, 0), told(200, 4, 0)}, 3, ""},
		"memory lets it shrink":      {onCPUAndMemory, 4, 0, numbers{told(40, 4, 0), told(20, 4, 0)}, 1, ""},
		"one is silent, for growth":  {onBoth, 4, 0, numbers{told(400, 4, 0), told(0, 0, 4)}, 8, "silent"},
		"one is silent, for a dip":   {onBoth, 4, 0, numbers{told(40, 4, 0), told(0, 0, 4)}, 1, "silent"},
		"memory is silent":           {onCPUAndMemory, 4, 0, numbers{told(40, 4, 0), told(0, 0, 4)}, 1, ""},
		"only memory, cpu is silent": {onCPUAndMemory, 4, 0, numbers{told(0, 0, 4), told(40, 4, 0)}, 4, "silent"},
	} {
		load := scale.Load{OnTheWay: test.onWay, Metrics: test.metrics}
		got := scale.WishOf(spec(1, 100, test.targets...), test.size, load)
		flags := ""
		if got.Unknown {
			flags = "unknown "
		}
		if got.Silent {
			flags += "silent"
		}
		if got.Size != test.want || flags != test.flags {
			t.Errorf("%s: %+v, want %d %s", name, got, test.want, test.flags)
		}
	}
	for leaving, want := range map[float64]int{0: 4, 90: 6, 1000: 10} {
		n := scale.Numbers{Sum: 200, Warm: 10, Leaving: leaving}
		if got := scale.WishOf(spec(1, 100, cpu), 10, scale.Load{Metrics: []scale.Numbers{n}}); got.Size != want {
			t.Errorf("with %v on those that drain: %+v, want %d", leaving, got, want)
		}
	}
	for left, want := range map[float64]int{0: 4, 0.5: 5, 2.5: 5, 3: 6, 20: 10} {
		n := scale.Numbers{Sum: 200, Warm: 10}
		got := scale.WishOf(spec(1, 100, cpu), 10, scale.Load{Left: left, Metrics: []scale.Numbers{n}})
		if got.Size != 4 || got.Settling != want {
			t.Errorf("with %v that left: %+v, want size 4, and %d until it has settled", left, got, want)
		}
	}
	for name, test := range map[string]struct {
		sum     float64
		warming []float64
		want    int
	}{
		"those that warm up bear their part":    {400, []float64{100, 100, 100}, 14},
		"none has load yet":                     {400, []float64{0, 0, 0}, 8},
		"their start costs more than load":      {240, []float64{100, 100, 100}, 9},
		"on target, whatever their start costs": {200, []float64{100, 100, 100}, 7},
	} {
		load := scale.Load{OnTheWay: 3, Metrics: []scale.Numbers{{Sum: test.sum, Warm: 4, Warming: test.warming}}}
		if got := scale.WishOf(spec(1, 100, cpu), 7, load); got.Size != test.want {
			t.Errorf("%s: %+v, want %d", name, got, test.want)
		}
	}
}

// A group that has grown shrinks only as far as leaves load below the target by the tolerance; one
// that has shrunk goes on down to the target. For growth it makes no difference.
//
// proves AUTO-2
func TestNoiseDoesNotTurnAGroup(t *testing.T) {
	for name, test := range map[string]struct {
		target store.ScaleTarget
		load   float64 // in instances at the target
		want   [2]int  // after a shrink, after a growth
	}{
		"a little below":           {cpu, 9, [2]int{9, 10}},
		"below by the tolerance":   {cpu, 8.1, [2]int{9, 9}},
		"far below":                {cpu, 4, [2]int{4, 5}},
		"above":                    {cpu, 10.6, [2]int{11, 11}},
		"a queue, a little below":  {queue, 9, [2]int{9, 10}},
		"a queue, far below":       {queue, 4, [2]int{4, 5}},
		"a queue that is above":    {queue, 10.6, [2]int{11, 11}},
		"a queue, tolerated above": {queue, 10.5, [2]int{10, 10}},
	} {
		for i, grew := range []bool{false, true} {
			n := scale.Numbers{Sum: test.load * test.target.Value, Warm: 10}
			n.Outside = scale.Outside{Known: true, Value: n.Sum}
			load := scale.Load{Metrics: []scale.Numbers{n}, Grew: grew}
			if got := scale.WishOf(spec(1, 100, test.target), 10, load); got.Size != test.want[i] {
				t.Errorf("%s, it has grown: %t: %d, want %d", name, grew, got.Size, test.want[i])
			}
		}
	}
}

// What numbers from outside ask for. One that is not known asks for nothing and keeps the group
// from shrinking; with min: 0 they alone decide whether there is any instance.
//
// proves AUTO-1, AUTO-2
func TestWishFromOutside(t *testing.T) {
	known := func(value float64) scale.Numbers {
		return scale.Numbers{Outside: scale.Outside{Known: true, Value: value}}
	}
	average := func(value float64, warm, missing int) scale.Numbers {
		n := known(value)
		n.Sum, n.Warm, n.Missing = value*float64(warm), warm, missing
		return n
	}
	type numbers = []scale.Numbers
	for name, test := range map[string]struct {
		targets     []store.ScaleTarget
		size, onWay int
		metrics     numbers
		want        int
		flags       string
	}{
		"on target":                   {[]store.ScaleTarget{queue}, 4, 0, numbers{known(420)}, 4, ""},
		"above":                       {[]store.ScaleTarget{queue}, 4, 0, numbers{known(421)}, 5, ""},
		"below":                       {[]store.ScaleTarget{queue}, 4, 0, numbers{known(210)}, 3, ""},
		"those on the way are known":  {[]store.ScaleTarget{queue}, 8, 8, numbers{known(800)}, 8, ""},
		"beyond all bounds":           {[]store.ScaleTarget{queue}, 4, 0, numbers{known(1e300)}, store.MaxSize, ""},
		"less than nothing":           {[]store.ScaleTarget{queue}, 4, 0, numbers{known(-5)}, 0, ""},
		"nothing to do":               {[]store.ScaleTarget{queue}, 4, 0, numbers{known(0)}, 0, ""},
		"something to do":             {[]store.ScaleTarget{queue}, 0, 0, numbers{known(0.5)}, 1, ""},
		"much to do":                  {[]store.ScaleTarget{queue}, 0, 0, numbers{known(950)}, 10, ""},
		"not known":                   {[]store.ScaleTarget{queue}, 4, 0, numbers{{}}, 4, "unknown silent"},
		"not known at 0":              {[]store.ScaleTarget{queue}, 0, 0, numbers{{}}, 0, "unknown silent"},
		"not known, and cpu is high":  {[]store.ScaleTarget{queue, cpu}, 4, 0, numbers{{}, {Sum: 400, Warm: 4}}, 8, "silent"},
		"not known, and cpu is low":   {[]store.ScaleTarget{queue, cpu}, 4, 0, numbers{{}, {Sum: 40, Warm: 4}}, 1, "silent"},
		"idle machines":               {[]store.ScaleTarget{queue, cpu}, 1, 0, numbers{known(0), {Sum: 2, Warm: 1}}, 0, ""},
		"idle machines, and work":     {[]store.ScaleTarget{queue, cpu}, 1, 0, numbers{known(5), {Sum: 2, Warm: 1}}, 1, ""},
		"idle, and it is not known":   {[]store.ScaleTarget{queue, cpu}, 1, 0, numbers{{}, {Sum: 2, Warm: 1}}, 1, "silent"},
		"busy machines":               {[]store.ScaleTarget{queue, cpu}, 2, 0, numbers{known(0), {Sum: 190, Warm: 2}}, 4, ""},
		"waking up":                   {[]store.ScaleTarget{queue, cpu}, 0, 0, numbers{known(250), {}}, 3, "silent"},
		"an average":                  {[]store.ScaleTarget{perOne}, 4, 0, numbers{average(100, 4, 0)}, 8, ""},
		"an average, some are coming": {[]store.ScaleTarget{perOne}, 8, 4, numbers{average(100, 4, 0)}, 8, ""},
		"an average that is low":      {[]store.ScaleTarget{perOne}, 4, 0, numbers{average(10, 4, 0)}, 1, ""},
		"an average of a few":         {[]store.ScaleTarget{perOne}, 4, 0, numbers{average(10, 2, 2)}, 4, "unknown silent"},
	} {
		s := spec(0, 100, test.targets...)
		got := scale.WishOf(s, test.size, scale.Load{OnTheWay: test.onWay, Metrics: test.metrics})
		flags := ""
		if got.Unknown {
			flags = "unknown "
		}
		if got.Silent {
			flags += "silent"
		}
		if got.Size != test.want || flags != test.flags {
			t.Errorf("%s: %+v, want %d %s", name, got, test.want, test.flags)
		}
	}
}

// How far the size goes towards a wish, and why no further.
//
// proves AUTO-2, AUTO-5
func TestStep(t *testing.T) {
	free := scale.State{Size: 10, Largest: 1, Risen: true, MayShrink: true}
	with := func(edit func(*scale.State)) scale.State {
		s := free
		edit(&s)
		return s
	}
	for name, test := range map[string]struct {
		wish  scale.Wish
		state scale.State
		size  int
		stays store.ScaleStays
	}{
		"as it is":      {scale.Wish{Size: 10}, free, 10, ""},
		"unknown":       {scale.Wish{Size: 10, Unknown: true}, free, 10, store.ScaleUnknown},
		"starting":      {scale.Wish{Size: 10, Unknown: true, Starting: true}, free, 10, store.ScaleStarting},
		"grows":         {scale.Wish{Size: 15}, free, 15, ""},
		"grows by step": {scale.Wish{Size: 25}, free, 20, store.ScaleRateUp},
		"grows to max":  {scale.Wish{Size: 35}, with(func(s *scale.State) { s.Size = 20 }), 30, store.ScaleAtMost},
		"is at max":     {scale.Wish{Size: 35}, with(func(s *scale.State) { s.Size = 30 }), 30, store.ScaleAtMost},
		"not risen":     {scale.Wish{Size: 15}, with(func(s *scale.State) { s.Risen = false }), 10, store.ScaleWindowUp},
		"has grown": {
			scale.Wish{Size: 25}, with(func(s *scale.State) { s.Size, s.From, s.Added = 20, 10, 10 }), 20, store.ScaleRateUp,
		},
		"has grown by less than a step": {
			scale.Wish{Size: 25}, with(func(s *scale.State) { s.Size, s.From, s.Added = 12, 10, 2 }), 20, store.ScaleRateUp,
		},
		"has grown by so little that all is allowed": {
			scale.Wish{Size: 19}, with(func(s *scale.State) { s.Size, s.From, s.Added = 12, 10, 2 }), 19, "",
		},
		"has grown, and shrunk since": {
			scale.Wish{Size: 25}, with(func(s *scale.State) { s.Size, s.From, s.Added = 6, 10, 2 }), 10, store.ScaleRateUp,
		},
		"grows in a storm": {
			scale.Wish{Size: 11}, with(func(s *scale.State) { s.Halted = store.ScaleStorm }), 11, "",
		},
		"grows though one is silent": {scale.Wish{Size: 11, Silent: true}, free, 11, ""},
		"shrinks":                    {scale.Wish{Size: 9}, free, 9, ""},
		"shrinks by step":            {scale.Wish{Size: 3}, free, 7, store.ScaleRateDown},
		"shrinks to min":             {scale.Wish{Size: 0}, with(func(s *scale.State) { s.Size = 3 }), 2, ""},
		"shrinks to the largest": {
			scale.Wish{Size: 3}, with(func(s *scale.State) { s.Largest = 8 }), 8, store.ScaleWindowDown,
		},
		"the largest is the size": {
			scale.Wish{Size: 3}, with(func(s *scale.State) { s.Largest = 10 }), 10, store.ScaleWindowDown,
		},
		"has changed": {
			scale.Wish{Size: 3}, with(func(s *scale.State) { s.MayShrink = false }), 10, store.ScaleRateDown,
		},
		"a storm": {
			scale.Wish{Size: 3}, with(func(s *scale.State) { s.Halted = store.ScaleStorm }), 10, store.ScaleStorm,
		},
		"silent":     {scale.Wish{Size: 3, Silent: true}, free, 10, store.ScaleSilent},
		"settling":   {scale.Wish{Size: 9, Settling: 10}, free, 10, store.ScaleSettling},
		"settled":    {scale.Wish{Size: 8, Settling: 9}, free, 9, store.ScaleSettling},
		"one of two": {scale.Wish{Size: 1}, with(func(s *scale.State) { s.Size = 3 }), 2, ""},
	} {
		size, stays := scale.Step(spec(2, 30, cpu), test.wish, test.state)
		if size != test.size || stays != test.stays {
			t.Errorf("%s: size %d, stays %q; want %d, %q", name, size, stays, test.size, test.stays)
		}
	}
}

// Whatever is known: no step leaves the bounds, none is larger than allowed, and none makes the
// group smaller without numbers of most instances, with a silent target, below a wish that counts,
// or where something holds the size.
//
// proves AUTO-1, AUTO-2, AUTO-5
func TestStepsAreSafe(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		least := rapid.IntRange(1, 20).Draw(r, "min")
		s := spec(least, rapid.IntRange(least, 40).Draw(r, "max"), cpu, memory)
		s.Up.Step = store.Amount(rapid.IntRange(-100, 20).Filter(func(n int) bool { return n != 0 }).Draw(r, "up"))
		s.Down.Step = store.Amount(rapid.IntRange(-100, 20).Filter(func(n int) bool { return n != 0 }).Draw(r, "down"))
		size := rapid.IntRange(least, s.Max).Draw(r, "size")
		load := scale.Load{OnTheWay: rapid.IntRange(0, size).Draw(r, "on the way")}
		for range s.Targets {
			n := scale.Numbers{Warm: rapid.IntRange(0, size).Draw(r, "warm")}
			n.Missing = rapid.IntRange(0, size).Draw(r, "missing")
			n.Sum = rapid.Float64Range(0, 100).Draw(r, "value") * float64(n.Warm)
			load.Metrics = append(load.Metrics, n)
		}
		wish := scale.WishOf(s, size, load)
		halts := append([]store.ScaleStays{""}, store.ScaleStorm, store.ScaleGrace)
		st := scale.State{
			Size: size, Largest: max(s.Within(wish.Size), rapid.IntRange(least, s.Max).Draw(r, "largest")),
			Risen: rapid.Bool().Draw(r, "risen"), Added: rapid.IntRange(0, 20).Draw(r, "added"),
			From:      rapid.IntRange(0, 40).Draw(r, "from"),
			MayShrink: rapid.Bool().Draw(r, "may shrink"), Halted: rapid.SampledFrom(halts).Draw(r, "halted"),
		}
		to, stays := scale.Step(s, wish, st)
		known := 2*load.Metrics[0].Warm > load.Metrics[0].Warm+load.Metrics[0].Missing
		switch {
		case to < least || to > s.Max:
			r.Fatalf("size %d, and bounds %d to %d", to, least, s.Max)
		case to > size && (st.Added+to-size > max(1, s.Up.Step.Up(size)) || !st.Risen):
			r.Fatalf("grows from %d to %d: %+v", size, to, st)
		case to < size && (size-to > max(1, s.Down.Step.Up(size)) || !st.MayShrink || to < st.Largest || st.Halted != ""):
			r.Fatalf("shrinks from %d to %d: %+v", size, to, st)
		case to < size && !known:
			r.Fatalf("shrinks from %d to %d though cpu tells nothing: %+v", size, to, load)
		case (to == s.Within(wish.Size) && wish.Size <= s.Max) != (stays == "") && !wish.Unknown:
			r.Fatalf("size %d, wish %d, and it stays since %q", to, wish.Size, stays)
		}
	})
}
