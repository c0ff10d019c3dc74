package workload

import (
	"errors"
	"os"
	"sync"
	"time"
)

// recordAgain is how long after a failed write the next attempt begins. The disk may be full only
// for a while.
const recordAgain = 10 * time.Second

// recorder keeps a record on disk. The disk may hang, and neither a kill nor the report of an end
// waits for it: changes are written in the background, in order. Only the last change counts. A
// record that could not be written is tried again until it is, or until stop.
type recorder[R any] struct {
	path   string
	save   func(path string, r *R) error
	failed func(r *R, err error) // logs a failed write; nil: a failed removal
	pause  time.Duration         // before a failed write is tried again

	mu      sync.Mutex
	changed bool          // by this agent: then last is authoritative, not the disk
	last    *R            // nil: there must be no record
	due     bool          // last is neither written nor being written
	lost    bool          // the last attempt failed
	logged  bool          // that failure is logged
	stopped bool          // failed writes are not tried again
	idle    chan struct{} // closed when everything was tried; nil: nothing is under way
}

func newRecorder[R any](path string, failed func(r *R, err error)) *recorder[R] {
	return &recorder[R]{path: path, save: saveRecord[R], failed: failed, pause: recordAgain}
}

// saveRecord writes the record, or removes the file if there must be none.
func saveRecord[R any](path string, r *R) error {
	if r != nil {
		return writeRecord(path, r)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// put queues a change and does not wait for the disk. The caller must not modify the record
// afterwards.
func (c *recorder[R]) put(r *R) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed, c.last, c.logged = true, r, false
	c.begin()
}

// begin has the last change written. c.mu must be held.
func (c *recorder[R]) begin() {
	c.due = true
	if c.idle == nil {
		c.idle = make(chan struct{})
		go c.run()
	}
}

// again tries a failed write again. A failed removal is not: meanwhile another agent may have
// written a record of its own.
func (c *recorder[R]) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost && c.last != nil && c.idle == nil && !c.stopped {
		c.begin()
	}
}

// stop ends the attempts, since another agent takes over.
func (c *recorder[R]) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

// read returns what was put last, or else what an earlier agent left.
func (c *recorder[R]) read() (r R, known bool, err error) {
	c.mu.Lock()
	changed, last := c.changed, c.last
	c.mu.Unlock()
	switch {
	case !changed:
		known, err = readJSON(c.path, &r)
		return r, known, err
	case last == nil:
		return r, false, nil
	}
	return *last, true, nil
}

// written returns a channel that is closed when everything was tried; nil: it was.
func (c *recorder[R]) written() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle
}

// kept reports whether the last change is on disk.
func (c *recorder[R]) kept() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle == nil && !c.lost
}

// run writes until nothing is pending.
func (c *recorder[R]) run() {
	for {
		c.mu.Lock()
		if !c.due {
			if c.lost && !c.stopped {
				time.AfterFunc(c.pause, c.again)
			}
			close(c.idle)
			c.idle = nil
			c.mu.Unlock()
			return
		}
		r, logged := c.last, c.logged
		c.due, c.logged = false, true
		c.mu.Unlock()
		err := c.save(c.path, r)
		if err != nil && !logged {
			c.failed(r, err)
		}
		c.mu.Lock()
		c.lost = err != nil
		c.mu.Unlock()
	}
}
