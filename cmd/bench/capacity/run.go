package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/store"
)

// Config says what is measured. All fields are required.
type Config struct {
	Prefix  string        // prefix of everything that is written
	Each    time.Duration // duration of each measurement that has no count of its own
	Agents  int           // how many agents are registered and then renewed
	Pace    int           // renewals per second in the measurement at a fixed rate
	News    int           // puts per second while a watch is open
	Records int           // how many records are listed
	Size    int           // size of a record in bytes
	TTL     time.Duration // of the leases
}

// Deps are what is measured, and the collaborators.
type Deps struct {
	Store store.Store
	// Watcher is another connection, for the watch.
	Watcher store.Store
	// Usage tells what the store and this process have used; nil if unknown.
	Usage func() (theirs, ours measure.Usage, err error)
	// Progress receives what is being measured; nil: not reported.
	Progress func(what string, step, of int)
}

// Measured is the result of one measurement.
type Measured struct {
	Name      string  `json:"name"` // identifier in JSON
	What      string  `json:"what"` // name in the table
	AtOnce    int     `json:"at_once"`
	Count     uint64  `json:"count"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"` // counts single operations: a batch counts as its content
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
	Most      float64 `json:"max_ms"`
	// CPU is the store's processor time per operation, in microseconds; 0: unknown.
	CPU float64 `json:"store_cpu_us,omitempty"`
	// OwnCPU is this side's.
	OwnCPU float64 `json:"own_cpu_us,omitempty"`
}

// Result holds all measurements.
type Result struct {
	Measured []Measured `json:"measured"`
	Records  int        `json:"records"`     // records listed
	Agents   int        `json:"agents"`      // agents registered and renewed
	Pace     int        `json:"pace"`        // renewals per second requested
	Memory   uint64     `json:"store_bytes"` // resident memory of the store at the end; 0: unknown
}

// Get returns the measurement of this name, or the zero value.
func (r *Result) Get(name string) Measured {
	for _, m := range r.Measured {
		if m.Name == name {
			return m
		}
	}
	return Measured{}
}

// cleanLimit is how long removing what was written may take.
const cleanLimit = time.Minute

// Run makes one measurement after the other. When it returns, nothing that it wrote is left, unless
// the error says so.
func Run(ctx context.Context, cfg Config, deps Deps) (res *Result, err error) {
	w := &work{cfg: cfg, deps: deps, value: record(cfg.Size)}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
		defer cancel()
		if left := w.clean(clean); left != nil {
			err = errors.Join(err, fmt.Errorf("remove what the bench wrote below %s: %w", cfg.Prefix, left))
		}
	}()
	res = &Result{Records: cfg.Records, Agents: cfg.Agents, Pace: cfg.Pace}
	all := w.all()
	for i, m := range all {
		if deps.Progress != nil {
			deps.Progress(m.what, i+1, len(all))
		}
		one, err := w.measure(ctx, m)
		if err != nil {
			return nil, fmt.Errorf("measure %s: %w", m.what, err)
		}
		res.Measured = append(res.Measured, one)
	}
	if deps.Usage != nil {
		theirs, _, err := deps.Usage()
		if err != nil {
			return nil, err
		}
		res.Memory = theirs.Memory
	}
	return res, nil
}

// measure makes one measurement, with its cost.
func (w *work) measure(ctx context.Context, m measurement) (Measured, error) {
	theirs, ours, err := w.used()
	if err != nil {
		return Measured{}, err
	}
	d, err := m.run(ctx)
	if err != nil {
		return Measured{}, err
	}
	theirsAfter, oursAfter, err := w.used()
	if err != nil {
		return Measured{}, err
	}
	out := Measured{
		Name: m.name, What: m.what, AtOnce: m.atOnce, Count: d.times.N * m.holds(), Seconds: rounded(d.took.Seconds()),
		P50: inMs(d.times.Quantile(0.5)), P99: inMs(d.times.Quantile(0.99)), Most: inMs(d.times.Most),
	}
	if out.Count > 0 {
		out.PerSecond = math.Round(float64(out.Count) / d.took.Seconds())
		each := func(before, after measure.Usage) float64 {
			return rounded(float64(after.CPU-before.CPU) / float64(time.Microsecond) / float64(out.Count))
		}
		out.CPU, out.OwnCPU = each(theirs, theirsAfter), each(ours, oursAfter)
	}
	return out, nil
}

func (w *work) used() (theirs, ours measure.Usage, err error) {
	if w.deps.Usage == nil {
		return theirs, ours, nil
	}
	return w.deps.Usage()
}

func inMs(d time.Duration) float64 { return rounded(float64(d) / float64(time.Millisecond)) }

func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }
