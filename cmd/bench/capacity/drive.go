package capacity

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/measure"
)

// op is the operation with number iteration; worker is the number of the goroutine.
type op func(ctx context.Context, worker, iteration int) error

// driven is the result of repeating an operation.
type driven struct {
	took  time.Duration
	times measure.Histogram
}

// until says when repeating ends: after a time, or after iterations if that is not 0.
type until struct {
	after      time.Duration
	iterations int
}

// flatOut lets workers repeat an operation as fast as they can, at least once. The first error ends
// it.
func flatOut(ctx context.Context, workers int, end until, do op) (driven, error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	times, errs := make([]measure.Histogram, workers), make([]error, workers)
	var next atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for w := range workers {
		all.Go(func() {
			for {
				iteration := int(next.Add(1)) - 1
				from := time.Now()
				ended := iteration >= end.iterations
				if end.iterations == 0 {
					ended = iteration > 0 && from.Sub(begun) >= end.after
				}
				if ended {
					return
				}
				if err := do(working, w, iteration); err != nil {
					errs[w] = err
					stop()
					return
				}
				times[w].Add(time.Since(from))
			}
		})
	}
	all.Wait()
	return sum(ctx, begun, times, errs)
}

// pending bounds how many operations may wait for a worker: a minute's worth, so that memory is
// bounded.
const pending = 1 << 16

// paced runs an operation at a fixed rate for a time, with enough workers that one that waits
// delays no other.
func paced(ctx context.Context, workers int, rate float64, length time.Duration, do op) (driven, error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	type iteration struct {
		number int
		due    time.Time
	}
	iterations := make(chan iteration, pending)
	times, errs := make([]measure.Histogram, workers), make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for t := range iterations {
				if working.Err() != nil {
					continue
				}
				if err := do(working, w, t.number); err != nil {
					errs[w] = err
					stop()
					continue
				}
				times[w].Add(time.Since(t.due))
			}
		})
	}
	begun := time.Now()
	clock := time.NewTicker(time.Millisecond)
	dueAt := func(n int) time.Time { return begun.Add(time.Duration(float64(n) / rate * float64(time.Second))) }
	for n, now := 0, begun; now.Sub(begun) < length && working.Err() == nil; {
		for due := dueAt(n); !due.After(now); due = dueAt(n) {
			select {
			case iterations <- iteration{n, due}:
			case <-working.Done():
			}
			n++
		}
		select {
		case <-clock.C:
		case <-working.Done():
		}
		now = time.Now()
	}
	clock.Stop()
	close(iterations)
	all.Wait()
	return sum(ctx, begun, times, errs)
}

// sum adds up the results of all workers. That other workers were stopped is not an error of
// theirs.
func sum(ctx context.Context, begun time.Time, times []measure.Histogram, errs []error) (driven, error) {
	d := driven{took: time.Since(begun)}
	for _, t := range times {
		d.times.Merge(t)
	}
	if err := ctx.Err(); err != nil {
		return d, err
	}
	var stopped error
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return d, err
		}
		stopped = errors.Join(stopped, err)
	}
	return d, stopped
}
