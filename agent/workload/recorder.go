package workload

import (
	"errors"
	"os"
	"sync"
)

// recorder keeps a record on disk. The disk may hang, and neither a kill nor the report of an end
// waits for it: what is to be there is written apart, in order. Only the last change counts.
type recorder[R any] struct {
	path   string
	save   func(path string, r *R) error
	failed func(r *R, err error) // logs what was not written; nil: what was not removed

	mu      sync.Mutex
	changed bool          // by this agent: then last is true, whatever the disk has
	last    *R            // nil: there is to be none
	due     bool          // last is not written, nor being written
	lost    bool          // what was tried last is not written
	idle    chan struct{} // closed when all was tried; nil: nothing is under way
}

func newRecorder[R any](path string, failed func(r *R, err error)) *recorder[R] {
	return &recorder[R]{path: path, save: saveRecord[R], failed: failed}
}

// saveRecord removes the file if there is to be none.
func saveRecord[R any](path string, r *R) error {
	if r != nil {
		return writeRecord(path, r)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// put does not wait for the disk. What it was given must not be changed any more.
func (c *recorder[R]) put(r *R) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed, c.last, c.due = true, r, true
	if c.idle == nil {
		c.idle = make(chan struct{})
		go c.run()
	}
}

// read returns what was put last, else what an earlier agent left.
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

// written is closed when all was tried; nil: it was.
func (c *recorder[R]) written() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle
}

// kept reports whether the disk has the last change.
func (c *recorder[R]) kept() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle == nil && !c.lost
}

// run writes until nothing is due.
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
