package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// How reports are written down. A hundred thousand agents have 1,700 to be written each second
// though none has anything new (DET-16): etcd takes those many times more cheaply together.
const (
	notesAtOnce = store.MaxOps / 2       // reports in a transaction: each compares two keys
	noteBytes   = 512 << 10              // and so many bytes, or one report: etcd takes no more than 1.5 MiB
	noteWriters = 4                      // transactions at the same time
	noteLinger  = 100 * time.Millisecond // for how long a report with nothing new waits for others
	noteTries   = 5
)

// notes writes reports down, those of many agents in one transaction. A report with something new
// is written at once, together with what waits; while all writers are busy the newest of each agent
// waits, and no other. So however slow etcd is, no agent waits for it, and what is kept is bounded.
type notes struct {
	g *Gateway

	mu      sync.Mutex
	soon    []*session // with something new, in order
	some    []*session // without
	linger  bool       // a timer runs for some
	writers int
}

// note is what of one session's reports is to be written down. The lock of notes guards it.
type note struct {
	due     *store.Report // not written yet
	queue   noteQueue     // in which the session waits
	writing bool          // an earlier one is being written: one agent's are written in order
	tries   int           // of due, without success
	settled chan struct{} // if a caller waits: closed when nothing is due, nor being written
}

type noteQueue int

const (
	notQueued noteQueue = iota
	queuedSome
	queuedSoon
)

// entry is a report that is being written.
type entry struct {
	s     *session
	rec   *store.Report
	value []byte
	wrote store.Revision // of alive, as the session knew it
	tries int
}

// add has a report written, in the place of one that still waits.
func (n *notes) add(s *session, rec *store.Report, news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.note.due, s.note.tries = rec, 0
	if !s.note.writing { // else it is queued after that
		n.enqueue(s, news)
	} else if news {
		s.note.queue = queuedSoon
	}
}

// enqueue has a session's report taken by a writer. The caller has the lock.
func (n *notes) enqueue(s *session, news bool) {
	switch {
	case news && s.note.queue != queuedSoon:
		s.note.queue = queuedSoon // if it waits among some, too, it is left out there
		n.soon = append(n.soon, s)
	case !news && s.note.queue == notQueued:
		s.note.queue = queuedSome
		n.some = append(n.some, s)
	}
	if len(n.soon) > 0 || len(n.some) >= notesAtOnce {
		n.start()
		return
	}
	if !n.linger {
		n.linger = true
		time.AfterFunc(noteLinger, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.linger = false
			n.start()
		})
	}
}

// start starts another writer, if there may be one. The caller has the lock.
func (n *notes) start() {
	if n.writers < noteWriters && len(n.soon)+len(n.some) > 0 && n.g.spawn(n.write) {
		n.writers++
	}
}

// write writes until nothing is left.
func (n *notes) write() {
	for batch := n.take(); len(batch) > 0; batch = n.take() {
		for len(batch) > 0 {
			batch = batch[n.commit(batch):]
		}
	}
}

// take takes what is to be written next. With nothing left the writer is counted no more.
func (n *notes) take() []entry {
	n.mu.Lock()
	defer n.mu.Unlock()
	var batch []entry
	from := func(queue *[]*session, kind noteQueue) {
		taken := 0
		for _, s := range *queue {
			if len(batch) == notesAtOnce {
				break
			}
			taken++
			if s.note.queue == kind && !s.note.writing { // else it has been taken from the other queue
				batch = append(batch, entry{s: s, rec: s.note.due, wrote: s.wroteAt(), tries: s.note.tries + 1})
				s.note.due, s.note.queue, s.note.writing = nil, notQueued, true
			}
		}
		if *queue = (*queue)[taken:]; len(*queue) == 0 {
			*queue = nil
		}
	}
	from(&n.soon, queuedSoon)
	from(&n.some, queuedSome)
	if len(batch) == 0 {
		n.writers--
	}
	return batch
}

// commit writes the first of a batch, as many as fit into a transaction, and returns how many those
// were. Each as long as its alive is as its session wrote it: what a stream that was overtaken says
// late has nothing new. Those that may not be written keep no others from it.
func (n *notes) commit(batch []entry) int {
	size, fit := 0, 0
	for i := range batch {
		if batch[i].value == nil {
			batch[i].value = store.Encode(*batch[i].rec)
		}
		if size += len(batch[i].value); i > 0 && size > noteBytes {
			break
		}
		fit++
	}
	ctx, cancel := context.WithTimeout(n.g.life, callTimeout)
	defer cancel()
	keys := n.g.cfg.Keys
	parts := make([]*store.BatchPart, fit)
	for i, e := range batch[:fit] {
		id := e.s.instance
		parts[i] = &store.BatchPart{Txn: store.Txn{
			Conditions: []store.Condition{store.Exists(keys.Instance(id)), store.At(keys.Alive(id), e.wrote)},
			Writes:     []store.Write{store.Put(keys.Report(id), e.value)},
		}}
	}
	store.CommitBatch(ctx, n.g.deps.Store, parts)
	for i, e := range batch[:fit] {
		var conflict *store.ConflictError
		if errors.As(parts[i].Err, &conflict) {
			n.overtaken(e, slices.Contains(conflict.Keys, keys.Instance(e.s.instance)))
		} else {
			n.written(e, parts[i].Err)
		}
	}
	return fit
}

// overtaken sees to a report whose alive, or record, is not as it was.
func (n *notes) overtaken(e entry, gone bool) {
	if !gone && e.tries < noteTries && e.s.wroteAt() != e.wrote {
		n.done(e, true) // a write of ours came between
		return
	}
	// Nobody took alive over, else the stream would end: a write of ours that we gave up has
	// landed. The next report puts it right.
	e.s.doubtful.Store(true)
	n.written(e, store.ErrConflict)
}

// written notes what became of a report.
func (n *notes) written(e entry, err error) {
	if err != nil {
		n.g.deps.Logger.Debug("report not persisted", "instance", e.s.instance, "error", err)
		e.s.unwritten.Store(true) // or it was, and the answer was lost: the next one is written whatever it says
	} else {
		e.s.keepOutput(e.rec)
	}
	n.done(e, false)
}

// done has the session's next report written, or this one again if there is none.
func (n *notes) done(e entry, again bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := e.s
	soon := again || s.note.queue == queuedSoon
	s.note.writing, s.note.queue = false, notQueued
	if again && s.note.due == nil {
		s.note.due, s.note.tries = e.rec, e.tries
	}
	switch {
	case s.note.due != nil:
		n.enqueue(s, soon)
	case s.note.settled != nil:
		close(s.note.settled)
		s.note.settled = nil
	}
}

// settle waits until nothing of a session's is left to be written, or ctx ends.
func (n *notes) settle(ctx context.Context, s *session) {
	n.mu.Lock()
	if s.note.due == nil && !s.note.writing {
		n.mu.Unlock()
		return
	}
	if s.note.settled == nil {
		s.note.settled = make(chan struct{})
	}
	settled := s.note.settled
	if s.note.writing {
		s.note.queue = queuedSoon
	} else {
		n.enqueue(s, true)
	}
	n.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}

// busy reports whether anything is being written, or is to be at once.
func (n *notes) busy() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.writers > 0
}
