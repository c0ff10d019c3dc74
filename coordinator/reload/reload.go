// Package reload follows files: their content is read again when they change, without a restart.
//
// # Invariants
//
//   - Files that cannot be parsed, while half of a new pair is written for example, change nothing:
//     their earlier content stays in force, and the problem is reported once.
//   - Files are polled. They may be links into a directory that is exchanged as a whole, as
//     Kubernetes does it, or on a network file system: neither reports changes reliably.
package reload

import (
	"context"
	"sync"
	"time"
)

// Every is how often files are read.
const Every = time.Second

// Config says which files are followed.
type Config[R comparable, T any] struct {
	// Read reads the files.
	Read func() (R, error)
	// Parse returns their parsed content. It is called when they have changed, with the earlier one.
	Parse func(raw R, before T) (T, error)
	// Settle is for how long changed files must have been unchanged before they count: they may be
	// copied to a host one after the other.
	Settle time.Duration
	// Failed is called with each new problem.
	Failed func(error)
}

// Files is the parsed content of some files.
type Files[R comparable, T any] struct {
	cfg Config[R, T]

	looking sync.Mutex // held while they are read
	raw     R          // in force
	pending R          // other files, that do not count yet
	since   time.Time  // when they were first seen
	problem string     // what is wrong with the files as they are now

	mu     sync.Mutex
	value  T
	looked time.Time
}

// Open reads the files for the first time, which must succeed.
func Open[R comparable, T any](cfg Config[R, T]) (*Files[R, T], error) {
	f := &Files[R, T]{cfg: cfg, looked: time.Now()}
	var err error
	if f.raw, err = cfg.Read(); err != nil {
		return nil, err
	}
	f.pending = f.raw
	if f.value, err = cfg.Parse(f.raw, f.value); err != nil {
		return nil, err
	}
	return f, nil
}

// Latest is the content when the files were last read.
func (f *Files[R, T]) Latest() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.value
}

// Now is the content as of a second ago at most. It is for callers that do not call Run.
func (f *Files[R, T]) Now() T {
	f.mu.Lock()
	due := time.Since(f.looked) >= Every
	f.mu.Unlock()
	if due {
		f.Look()
	}
	return f.Latest()
}

// Run reads the files every second until ctx ends, and calls changed when their content is another.
func (f *Files[R, T]) Run(ctx context.Context, changed func()) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if f.Look() {
			changed()
		}
	}
}

// Look reads the files now, and reports whether their content is another.
func (f *Files[R, T]) Look() (changed bool) {
	f.looking.Lock()
	defer f.looking.Unlock()
	value, changed, err := f.look(time.Now())
	if err != nil && f.problem != err.Error() {
		f.problem = err.Error()
		f.cfg.Failed(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked = time.Now()
	if changed {
		f.value = value
	}
	return changed
}

func (f *Files[R, T]) look(now time.Time) (value T, changed bool, err error) {
	raw, err := f.cfg.Read()
	switch {
	case err != nil:
		return value, false, err
	case raw == f.raw:
		f.pending, f.problem = raw, ""
		return value, false, nil
	case raw != f.pending:
		f.pending, f.since = raw, now
	}
	if now.Sub(f.since) < f.cfg.Settle {
		return value, false, nil
	}
	if value, err = f.cfg.Parse(raw, f.Latest()); err != nil {
		return value, false, err
	}
	f.raw, f.problem = raw, ""
	return value, true, nil
}
