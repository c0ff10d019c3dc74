// Package proof is shared by the suites of the project's contracts: the outcome of a promise, and
// the findings of its case. Package provider/suite plays the contract of providers,
// provider/balancer/suite the contract of load balancers.
//
// A promise is proved, has failed, or is not proved: because the subject does not have the
// capability, or because the harness cannot cause the situation. A promise that is proved in part
// counts as not proved.
package proof

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Outcome is a suite's result for one promise.
type Outcome string

// The outcomes.
const (
	Proved    Outcome = "proved"
	Failed    Outcome = "failed"
	NotProved Outcome = "not proved" // in whole or in part: never counted as proved (PROV-1)
)

// Result is an outcome with its reasons.
type Result struct {
	Promise string
	Outcome Outcome
	Why     []string // why it failed or is not proved
	Took    time.Duration
}

// Cases are the promises of a suite, in order, each with the case that plays it on a subject.
type Cases[Subject any] = []struct {
	Promise string
	Play    func(Subject)
}

// Promises returns the names of a suite's promises, in order.
func Promises[Subject any](suite Cases[Subject]) []string {
	names := make([]string, len(suite))
	for i, c := range suite {
		names[i] = c.Promise
	}
	return names
}

// Check plays one promise of a suite. play makes a subject, plays a case on it and returns what was
// found.
func Check[Subject any](
	ctx context.Context, suite Cases[Subject], promise string, play func(func(Subject)) *Findings,
) Result {
	for _, c := range suite {
		if c.Promise == promise {
			begun := time.Now()
			return play(c.Play).result(ctx, promise, begun)
		}
	}
	return Result{Promise: promise, Outcome: NotProved, Why: []string{"there is no such promise"}}
}

// Word returns a word that no other case uses, for its IDs.
func Word() string { return strings.ToLower(rand.Text()[:10]) }

// Findings are the findings of a case. The zero value is ready.
type Findings struct {
	mu       sync.Mutex
	failures []string
	gaps     []string // what is not proved, and why
}

// Errorf records a failure and goes on.
func (f *Findings) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

// Fatalf records a failure and ends the case.
func (f *Findings) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// Unproved records that something cannot be proved here.
func (f *Findings) Unproved(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gaps = append(f.gaps, why)
}

// Without ends a case that cannot be played.
func (f *Findings) Without(why string) {
	f.Unproved(why)
	runtime.Goexit()
}

// Play plays a case in its own goroutine, which Fatalf and Without end.
func (f *Findings) Play(test func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		test()
	}()
	<-done
}

// Await repeats a look until it is done, or fails the case with the last observation: when its
// patience ends, or the suite is interrupted.
func (f *Findings) Await(ctx context.Context, every, patience time.Duration, look func() (done bool, saw string)) {
	deadline := time.After(patience)
	for {
		done, saw := look()
		if done {
			return
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			f.Fatalf("interrupted: %s", saw)
		case <-deadline:
			f.Fatalf("not seen: %s", saw)
		}
	}
}

// result returns the result for a promise. An interrupted suite proves nothing.
func (f *Findings) result(ctx context.Context, promise string, begun time.Time) Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := Result{Promise: promise, Outcome: Proved, Took: time.Since(begun)}
	switch {
	case len(f.failures) > 0:
		r.Outcome, r.Why = Failed, f.failures
	case ctx.Err() != nil:
		r.Outcome, r.Why = NotProved, []string{"interrupted"}
	case len(f.gaps) > 0:
		r.Outcome, r.Why = NotProved, f.gaps
	}
	return r
}
