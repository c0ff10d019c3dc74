package autoscale

import (
	"math"
	"time"
)

// tick is how often the load is divided, as in the simulator.
const tick = 5 * time.Second

// fleet is the machines of a model.
type fleet struct {
	curve   *Curve
	clock   time.Duration
	started []time.Duration // when each machine was requested; the oldest first
	history []float64       // load of each serving machine, at each tick
	size    int
}

func (f *fleet) serving() (n int) {
	for _, at := range f.started {
		if f.clock >= at+f.curve.boot() {
			n++
		}
	}
	return n
}

// set takes machines away, the newest first, or requests more.
func (f *fleet) set(size int) {
	f.size = max(least, min(most, size))
	for len(f.started) < f.size {
		f.started = append(f.started, f.clock)
	}
	f.started = f.started[:f.size]
}

// mean returns the load of each serving machine over a time that ended some time ago, in percent.
func (f *fleet) mean(span, ago time.Duration) (percent float64, known bool) {
	end := len(f.history) - int(ago/tick)
	begin := max(0, end-int(span/tick))
	if end <= begin {
		return 0, false
	}
	for _, v := range f.history[begin:end] {
		if math.IsNaN(v) {
			return 0, false
		}
		percent += v / float64(end-begin)
	}
	return percent, true
}

// rival decides a size at each tick.
type rival interface{ decide(f *fleet) }

// tracking is AWS's target tracking: a high alarm at three periods of a minute above the target, a
// low one at fifteen below nine tenths of it. The size becomes what the mean asks for. Instances
// that warm up count as capacity and not in the metric; while there are any, nothing shrinks.
type tracking struct{ high, low int }

func (t *tracking) decide(f *fleet) {
	if f.clock%time.Minute != 0 {
		return
	}
	percent, known := f.mean(time.Minute, 0)
	warm, warming := 0, 0
	for _, at := range f.started {
		if f.clock >= at+f.curve.boot()+warmup {
			warm++
		} else {
			warming++
		}
	}
	if warm == 0 {
		warming = 0 // at the beginning
	}
	switch {
	case !known: // missing data keeps an alarm's state
		t.high, t.low = 0, 0
	case percent > target:
		t.high, t.low = t.high+1, 0
	case percent < 0.9*target:
		t.high, t.low = 0, t.low+1
	default:
		t.high, t.low = 0, 0
	}
	if t.high >= 3 {
		f.set(max(f.size, int(math.Ceil(float64(f.serving())*percent/target-1e-6))))
	}
	if t.low >= 15 && warming == 0 {
		f.set(min(f.size, int(math.Ceil(float64(f.size)*percent/target-1e-6))))
	}
}

// horizontal is Kubernetes' HorizontalPodAutoscaler with its defaults: a decision every 15 s on
// means of 30 s, a tolerance of a tenth, pods that are not ready taken for idle when it grows, at
// most four more or twice as many every 15 s, and the largest wish of five minutes when it shrinks.
type horizontal struct{ wishes []wish }

type wish struct {
	at   time.Duration
	size int
}

func (h *horizontal) decide(f *fleet) {
	if f.clock%(15*time.Second) != 0 {
		return
	}
	percent, known := f.mean(30*time.Second, 0)
	ready := f.serving()
	if !known || ready == 0 {
		return // it leaves the size alone
	}
	desired := f.size
	ratio := percent / target
	if waiting := f.size - ready; waiting > 0 && ratio > 1 { // they are taken for idle
		if ratio = percent * float64(ready) / float64(f.size) / target; ratio < 1 {
			ratio = 1
		}
	}
	if math.Abs(ratio-1) > 0.1 {
		desired = int(math.Ceil(ratio*float64(f.size) - 1e-6))
		if ratio < 1 {
			desired = int(math.Ceil(ratio*float64(ready) - 1e-6))
		}
	}
	h.wishes = append(h.wishes, wish{f.clock, desired})
	for len(h.wishes) > 0 && h.wishes[0].at <= f.clock-5*time.Minute {
		h.wishes = h.wishes[1:]
	}
	largest := 0
	for _, w := range h.wishes {
		largest = max(largest, w.size)
	}
	switch {
	case desired > f.size:
		f.set(min(desired, max(f.size+4, 2*f.size)))
	case largest < f.size:
		f.set(largest)
	}
}

// play has a model follow a curve.
func play(c *Curve, r rival) Outcome {
	f := &fleet{curve: c, size: least}
	f.set(int(math.Ceil(c.at(0) / target)))
	var o Outcome
	last, direction := f.size, 0
	for ; f.clock < c.Length; f.clock += tick {
		serving, load := f.serving(), c.at(f.clock)
		each := math.NaN()
		if serving > 0 && !c.silent(f.clock) {
			each = min(100, load/float64(serving))
		}
		f.history = append(f.history, each)
		o.Machines += tick * time.Duration(len(f.started))
		if load > float64(serving)*target*1.1 {
			o.Below += tick
		}
		r.decide(f)
		if f.size != last {
			o.Changes++
			d := 1
			if f.size < last {
				d = -1
			}
			if direction == -d {
				o.Turns++
			}
			last, direction = f.size, d
		}
	}
	return o
}
