package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// How reports are written. A hundred thousand agents without news cause 1,700 writes a second
// (DET-16): batches are many times cheaper for etcd.
const (
	reportsPerTxn = store.MaxOps / 2       // reports in a transaction: each compares two keys
	reportBytes   = 512 << 10              // and this many bytes, or one report: etcd takes at most 1.5 MiB
	reportWriters = 4                      // transactions at the same time
	reportLinger  = 100 * time.Millisecond // how long a report without news waits for others
	reportTries   = 5
)

// reportWriter writes reports of many agents in one transaction. A report with news is written at
// once, together with the reports that wait; while all writers are busy, only the newest report of
// each agent waits. So no agent waits for a slow etcd, and memory is bounded.
type reportWriter struct {
	g *Gateway

	mu      sync.Mutex
	soon    []*session // with news, in order
	some    []*session // without news
	linger  bool       // a timer runs for some
	writers int
}

// pendingReport is the pending report of one session. The lock of reportWriter guards it.
type pendingReport struct {
	due     *store.Report // not written yet
	queue   reportQueue   // the queue in which the session waits
	writing bool          // an earlier one is being written: the reports of one agent are written in order
	tries   int           // failed attempts to write due
	settled chan struct{} // set if a caller waits: closed when nothing is due or being written
}

type reportQueue int

const (
	notQueued reportQueue = iota
	queuedSome
	queuedSoon
)

// entry is a report that is being written.
type entry struct {
	s     *session
	rec   *store.Report
	value []byte
	wrote store.Revision // revision of alive, as the session knew it
	tries int
}

// add queues a report, in place of one that still waits.
func (w *reportWriter) add(s *session, rec *store.Report, news bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.unwrittenReport.due, s.unwrittenReport.tries = rec, 0
	if !s.unwrittenReport.writing { // else it is queued after that
		w.enqueue(s, news)
	} else if news {
		s.unwrittenReport.queue = queuedSoon
	}
}

// enqueue queues a session's report for a writer. The caller has the lock.
func (w *reportWriter) enqueue(s *session, news bool) {
	switch {
	case news && s.unwrittenReport.queue != queuedSoon:
		s.unwrittenReport.queue = queuedSoon // if it also waits in some, it is skipped there
		w.soon = append(w.soon, s)
	case !news && s.unwrittenReport.queue == notQueued:
		s.unwrittenReport.queue = queuedSome
		w.some = append(w.some, s)
	}
	if len(w.soon) > 0 || len(w.some) >= reportsPerTxn {
		w.start()
		return
	}
	if !w.linger {
		w.linger = true
		time.AfterFunc(reportLinger, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.linger = false
			w.start()
		})
	}
}

// start starts another writer, if there may be one. The caller has the lock.
func (w *reportWriter) start() {
	if w.writers < reportWriters && len(w.soon)+len(w.some) > 0 && w.g.spawn(w.write) {
		w.writers++
	}
}

// write writes until nothing is left.
func (w *reportWriter) write() {
	for batch := w.take(); len(batch) > 0; batch = w.take() {
		for len(batch) > 0 {
			batch = batch[w.commit(batch):]
		}
	}
}

// take returns what to write next. If there is nothing, it takes the writer off the count.
func (w *reportWriter) take() []entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	var batch []entry
	from := func(queue *[]*session, kind reportQueue) {
		taken := 0
		for _, s := range *queue {
			if len(batch) == reportsPerTxn {
				break
			}
			taken++
			if s.unwrittenReport.queue == kind && !s.unwrittenReport.writing { // else it has been taken from the other queue
				batch = append(batch, entry{s: s, rec: s.unwrittenReport.due, wrote: s.wroteAt(), tries: s.unwrittenReport.tries +
					1})
				s.unwrittenReport.due, s.unwrittenReport.queue, s.unwrittenReport.writing = nil, notQueued, true
			}
		}
		if *queue = (*queue)[taken:]; len(*queue) == 0 {
			*queue = nil
		}
	}
	from(&w.soon, queuedSoon)
	from(&w.some, queuedSome)
	if len(batch) == 0 {
		w.writers--
	}
	return batch
}

// commit writes as many reports from the front of a batch as fit into a transaction, and returns
// their number. Each is written only if its alive is as its session wrote it: a late report of a
// replaced stream is discarded. A report that may not be written does not prevent others.
func (w *reportWriter) commit(batch []entry) int {
	size, fit := 0, 0
	for i := range batch {
		if batch[i].value == nil {
			batch[i].value = store.Encode(*batch[i].rec)
		}
		if size += len(batch[i].value); i > 0 && size > reportBytes {
			break
		}
		fit++
	}
	ctx, cancel := context.WithTimeout(w.g.life, callTimeout)
	defer cancel()
	keys := w.g.cfg.Keys
	parts := make([]*store.BatchPart, fit)
	for i, e := range batch[:fit] {
		id := e.s.instance
		parts[i] = &store.BatchPart{Txn: store.Txn{
			Conditions: []store.Condition{store.Exists(keys.Instance(id)), store.At(keys.Alive(id), e.wrote)},
			Writes:     []store.Write{store.Put(keys.Report(id), e.value)},
		}}
	}
	store.CommitBatch(ctx, w.g.deps.Store, parts)
	for i, e := range batch[:fit] {
		var conflict *store.ConflictError
		if errors.As(parts[i].Err, &conflict) {
			w.overtaken(e, slices.Contains(conflict.Keys, keys.Instance(e.s.instance)))
		} else {
			w.written(e, parts[i].Err)
		}
	}
	return fit
}

// overtaken handles a report whose alive or record has changed.
func (w *reportWriter) overtaken(e entry, gone bool) {
	if !gone && e.tries < reportTries && e.s.wroteAt() != e.wrote {
		w.done(e, true) // another of our writes came first
		return
	}
	// No other session took over alive, else the stream would end: an abandoned write of ours has
	// taken effect. The next report corrects that.
	e.s.doubtful.Store(true)
	w.written(e, store.ErrConflict)
}

// written records the outcome of a report's write.
func (w *reportWriter) written(e entry, err error) {
	if err != nil {
		w.g.deps.Logger.Debug("report not persisted", "instance", e.s.instance, "error", err)
		e.s.unwritten.Store(true) // or it was, and the answer was lost: the next one is written in any case
	} else {
		e.s.keepOutput(e.rec)
	}
	w.done(e, false)
}

// done queues the session's next report, or this one again if there is none.
func (w *reportWriter) done(e entry, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := e.s
	soon := again || s.unwrittenReport.queue == queuedSoon
	s.unwrittenReport.writing, s.unwrittenReport.queue = false, notQueued
	if again && s.unwrittenReport.due == nil {
		s.unwrittenReport.due, s.unwrittenReport.tries = e.rec, e.tries
	}
	switch {
	case s.unwrittenReport.due != nil:
		w.enqueue(s, soon)
	case s.unwrittenReport.settled != nil:
		close(s.unwrittenReport.settled)
		s.unwrittenReport.settled = nil
	}
}

// settle waits until a session has nothing left to write, or ctx ends.
func (w *reportWriter) settle(ctx context.Context, s *session) {
	w.mu.Lock()
	if s.unwrittenReport.due == nil && !s.unwrittenReport.writing {
		w.mu.Unlock()
		return
	}
	if s.unwrittenReport.settled == nil {
		s.unwrittenReport.settled = make(chan struct{})
	}
	settled := s.unwrittenReport.settled
	if s.unwrittenReport.writing {
		s.unwrittenReport.queue = queuedSoon
	} else {
		w.enqueue(s, true)
	}
	w.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}

// busy reports whether anything is being written or must be written at once.
func (w *reportWriter) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writers > 0
}
