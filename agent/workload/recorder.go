package workload

import (
	"errors"
	"os"
	"sync"
)

// recorder keeps a record on disk. The disk may hang, and neither a kill nor the report of an end
// waits for it: changes are written in the background, in order. Only the last change counts.
type recorder[R any] struct {
	path   string
	save   func(path string, r *R) error
	failed func(r *R, err error) // logs a failed write; nil: a failed removal

	mu      sync.Mutex
	changed bool          // by this agent: then last is authoritative, not the disk
	last    *R            // nil: there must be no record
	due     bool          // last is neither written nor being written
	lost    bool          // the last attempt failed
	idle    chan struct{} // closed when everything was tried; nil: nothing is under way
}

func newRecorder[R any](path string, failed func(r *R, err error)) *recorder[R] {
	return &recorder[R]{path: path, save: saveRecord[R], failed: failed}
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
	c.changed, c.last, c.due = true, r, true
	if c.idle == nil {
		c.idle = make(chan struct{})
		go c.run()
	}
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
			close(c.idle)
			c.idle = nil
			c.mu.Unlock()
			return
		}
		r := c.last
		c.due = false
		c.mu.Unlock()
		err := c.save(c.path, r)
		if err != nil {
			c.failed(r, err)
		}
		c.mu.Lock()
		c.lost = err != nil
		c.mu.Unlock()
	}
}
