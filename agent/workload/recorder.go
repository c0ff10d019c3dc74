package workload

import (
	"errors"
	"log/slog"
	"os"
	"sync"
)

// recorder keeps the record on disk. The disk may hang, and neither a kill nor the report of an
// exit waits for it: what is to be there is written apart, in order. Only the last change counts.
type recorder struct {
	path string
	log  *slog.Logger
	save func(path string, r *record) error

	mu      sync.Mutex
	changed bool          // by this agent: then last is true, whatever the disk has
	last    *record       // nil: there is to be none
	due     bool          // last is not written, nor being written
	idle    chan struct{} // closed when all was tried; nil: nothing is under way
}

func newRecorder(path string, log *slog.Logger) *recorder {
	return &recorder{path: path, log: log, save: saveRecord}
}

// saveRecord removes the file if there is to be none.
func saveRecord(path string, r *record) error {
	if r != nil {
		return r.write(path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// put does not wait for the disk.
func (c *recorder) put(r *record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed, c.last, c.due = true, r, true
	if c.idle == nil {
		c.idle = make(chan struct{})
		go c.run()
	}
}

// read returns what was put last, else what an earlier agent left.
func (c *recorder) read() (record, bool, error) {
	c.mu.Lock()
	changed, last := c.changed, c.last
	c.mu.Unlock()
	switch {
	case !changed:
		return readRecord(c.path)
	case last == nil:
		return record{}, false, nil
	}
	return *last, true, nil
}

// written is closed when all was tried; nil: it was.
func (c *recorder) written() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle
}

// run writes until nothing is due.
func (c *recorder) run() {
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
		switch {
		case err == nil:
		case r == nil:
			c.log.Warn("workload record was not removed", "error", err)
		case r.Exit != nil:
			c.log.Warn("end of the workload is not recorded", "error", err)
		default:
			c.log.Warn("workload is not recorded: a restarted agent would start a second one", "error", err)
		}
	}
}
