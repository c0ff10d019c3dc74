package witness

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/faults/history"
)

// Config says what is watched.
type Config struct {
	Endpoints []string    // host:port of each member; some may be dead or frozen
	TLS       *tls.Config // nil: not encrypted
	Prefix    string      // below which keys are watched
	Log       *history.Log
	Logger    *slog.Logger // nil: silent
}

// The times of a watcher.
const (
	patience = 3 * time.Second        // with a member that does not answer
	pause    = 200 * time.Millisecond // after one that failed, before the next is tried
	prompt   = time.Second            // between questions for progress
	hurry    = 50 * time.Millisecond  // the same, while a caller waits
)

// errAsked ends a session because a caller asked for etcd's present state.
var errAsked = errors.New("asked to look again")

// Watcher writes every change into a log, for as long as it runs.
type Watcher struct {
	cfg Config

	mu       sync.Mutex
	moved    chan struct{} // closed with every step
	line     int           // 0: nothing was seen yet
	cluster  uint64
	term     uint64
	revision store.Revision // everything up to it is in the log
	keys     keys
	waiting  int                     // how many wait for a step
	asked    int                     // how often a caller asked for all changes up to then
	settled  int                     // up to which of these it has been
	look     context.CancelCauseFunc // ends the present session; nil: there is none
}

// New makes a watcher. Nothing is seen before it runs.
func New(cfg Config) (*Watcher, error) {
	switch {
	case len(cfg.Endpoints) == 0:
		return nil, errors.New("watch etcd: no endpoint given")
	case cfg.Prefix == "":
		return nil, errors.New("watch etcd: no prefix given")
	case cfg.Log == nil:
		return nil, errors.New("watch etcd: no log given")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Endpoints = slices.Clone(cfg.Endpoints)
	return &Watcher{cfg: cfg, moved: make(chan struct{}), keys: keys{}}, nil
}

// Run watches until its context ends. It goes from member to member, for as long as none answers.
func (w *Watcher) Run(ctx context.Context) {
	for at := 0; ctx.Err() == nil; {
		err := w.attempt(ctx, w.cfg.Endpoints[at])
		if errors.Is(err, errAsked) || errors.Is(err, errLookAgain) {
			continue
		}
		if ctx.Err() == nil {
			w.cfg.Logger.Info("watch beside the cluster goes on elsewhere", "member", w.cfg.Endpoints[at], "error", err)
		}
		at = (at + 1) % len(w.cfg.Endpoints)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// attempt is one session with one member.
func (w *Watcher) attempt(ctx context.Context, member string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.mu.Lock()
	w.look = cancel
	s := &session{w: w, asked: w.asked, cancel: cancel}
	w.mu.Unlock()
	err := s.run(ctx, member)
	w.mu.Lock()
	w.look = nil
	w.mu.Unlock()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// Now is what was seen so far.
func (w *Watcher) Now() Cache {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Cache{Line: w.line, Revision: w.revision, KVs: w.keys.sorted()}
}

// UpTo returns when everything up to a revision of the present line is in the log.
func (w *Watcher) UpTo(ctx context.Context, revision store.Revision) error {
	return w.await(ctx, func() bool { return w.line > 0 && w.revision >= revision })
}

// Settle returns when everything is in the log that had happened when it was called, in whatever
// line etcd is by then. It connects again, so it is not to be called all the time.
func (w *Watcher) Settle(ctx context.Context) error {
	w.mu.Lock()
	w.asked++
	mine := w.asked
	if w.look != nil {
		w.look(errAsked)
	}
	w.mu.Unlock()
	return w.await(ctx, func() bool { return w.settled >= mine })
}

// await returns when something is so. It is looked at under the lock.
func (w *Watcher) await(ctx context.Context, so func() bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting++
	defer func() { w.waiting-- }()
	for !so() {
		moved := w.moved
		w.mu.Unlock()
		var err error
		select {
		case <-moved:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		w.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// step tells all who wait that something has changed. The lock is held.
func (w *Watcher) step() {
	close(w.moved)
	w.moved = make(chan struct{})
}

func (w *Watcher) hurried() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting > 0
}
