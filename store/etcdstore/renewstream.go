package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/leasehold/leasehold/store"
)

var (
	// errStalled closes a stream that owes an answer for too long.
	errStalled = errors.New("etcd does not answer renewals")
	// errMoved closes a stream because another member leads now.
	errMoved = errors.New("etcd's leader moved")
)

// renewStream keeps one keepalive stream open, from the first renewal on, and passes each answer to
// the caller that waits for it.
//
// A renewal is first queued, then sent, then answered. Its waiter may leave at any point: while
// queued it is taken out, once sent it stays until the answer or the end of the stream, so that the
// next answer for the same lease is not taken for its own. What is sent is bounded by the stream's
// flow control and its stall limit, what is queued by the number of callers.
type renewStream struct {
	ends   *leaseEnds
	leader *leaderConn
	stall  time.Duration
	logger *slog.Logger

	wake chan struct{} // something was queued; holds one

	mu     sync.Mutex
	closed bool
	queued waiterList
	sent   waiterList                    // in the order of sending
	owed   map[store.LeaseID]*leaseChain // the same by lease
	broken func(error)                   // ends the current session; nil between sessions
	heard  bool                          // the current session, or the last one, got an answer
}

func newRenewStream(ends *leaseEnds, leader *leaderConn, stall time.Duration, logger *slog.Logger) *renewStream {
	return &renewStream{
		ends: ends, leader: leader, stall: stall, logger: logger,
		wake: make(chan struct{}, 1),
		owed: make(map[store.LeaseID]*leaseChain),
	}
}

// renew waits for the answer to one renewal, for as long as ctx lasts.
func (s *renewStream) renew(ctx context.Context, id store.LeaseID) (store.Lease, error) {
	w := &waiter{id: id, since: time.Now(), done: make(chan renewal, 1)}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return store.Lease{}, errClosed
	}
	s.queued.push(w)
	s.mu.Unlock()
	s.signal()

	select {
	case r := <-w.done:
		return r.lease, r.err
	case <-ctx.Done():
	}
	s.leave(w)
	select {
	case r := <-w.done: // it came at the same moment
		return r.lease, r.err
	default:
		return store.Lease{}, fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
}

func (s *renewStream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *renewStream) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.left = true
	if w.in == &s.queued {
		s.queued.remove(w)
	}
}

// run keeps a stream open until ctx ends, then fails all renewals that still wait.
func (s *renewStream) run(ctx context.Context) {
	var watchdog sync.WaitGroup
	watchdog.Go(func() { s.watchStalls(ctx) })
	defer watchdog.Wait()

	pause := minRenewPause
	for s.awaitDemand(ctx) {
		to := s.leader.current()
		began := time.Now()
		err := s.serveOnce(ctx, to)
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, errMoved) {
			s.requeue()
			continue
		}
		if loginEnded(err) && s.hasHeard() {
			// Logins end by themselves, and whenever a password changes: that is no outage. The
			// next session logs in again.
			s.logger.Debug("the login of a renewal stream has ended, logging in again", "endpoint", to.endpoint, "error",
				err)
			s.requeue()
			continue
		}
		level := slog.LevelWarn
		if pause > minRenewPause && time.Since(began) < renewSteady {
			level = slog.LevelDebug // an outage is worth one line
		}
		s.logger.Log(ctx, level, "renewal stream ended, opening it again", "endpoint", to.endpoint, "error", err)
		s.failSent(fmt.Errorf("%w: %s: %s", store.ErrUnavailable, to.endpoint, reason(err)))
		s.leader.recheck()
		if time.Since(began) > renewSteady {
			pause = minRenewPause
		}
		select {
		case <-ctx.Done():
		case <-to.moved:
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, maxRenewPause)
	}
	s.shut()
}

const (
	// How long run waits before it opens a broken stream again.
	minRenewPause = 20 * time.Millisecond
	maxRenewPause = 500 * time.Millisecond
	// renewSteady is how long a stream must have lasted for its end to count as the first of an
	// outage.
	renewSteady = 10 * time.Second
	// renewOpen is how long opening a stream may take: connecting, and with a password a login that
	// etcd makes slow on purpose. It is not cut short by a stall, or a slow etcd would be asked for
	// one login after the other.
	renewOpen = 5 * time.Second
)

// awaitDemand waits until a renewal is queued. It reports false if ctx ends first.
func (s *renewStream) awaitDemand(ctx context.Context) bool {
	for ctx.Err() == nil {
		s.mu.Lock()
		some := s.queued.head != nil
		s.mu.Unlock()
		if some {
			return true
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
	return false
}

// serveOnce opens a stream to a member, serves it until it ends, and returns why it ended.
func (s *renewStream) serveOnce(parent context.Context, to *pin) error {
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)

	opening := time.AfterFunc(renewOpen, func() { end(fmt.Errorf("the stream did not open within %s", renewOpen)) })
	stream, err := pb.NewLeaseClient(to.conn).LeaseKeepAlive(ctx)
	opening.Stop()
	if err != nil {
		return firstOf(context.Cause(ctx), err)
	}
	s.begin(end)
	defer s.setBroken(nil)

	var running sync.WaitGroup
	defer running.Wait()
	defer end(nil)
	running.Go(func() { // an unused stream must move, too
		select {
		case <-to.moved:
			end(errMoved)
		case <-ctx.Done():
		}
	})
	running.Go(func() { s.send(ctx, stream) })

	var resp pb.LeaseKeepAliveResponse
	for {
		if err := stream.RecvMsg(&resp); err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("etcd ended the stream")
			}
			return firstOf(context.Cause(ctx), err)
		}
		s.answer(store.LeaseID(resp.ID), time.Duration(resp.TTL)*time.Second)
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// begin notes that a session is open.
func (s *renewStream) begin(end func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.heard = end, false
}

func (s *renewStream) hasHeard() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

func (s *renewStream) setBroken(end func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = end
}

// send sends what is queued until ctx ends or the stream breaks; the receiver notices a break as
// well.
func (s *renewStream) send(ctx context.Context, stream pb.Lease_LeaseKeepAliveClient) {
	var req pb.LeaseKeepAliveRequest
	for {
		w := s.take(time.Now())
		if w == nil {
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
			}
			continue
		}
		if ctx.Err() != nil {
			return // w counts as sent: it fails with the rest, or is sent again after a move
		}
		req.ID = int64(w.id)
		if err := stream.Send(&req); err != nil {
			return
		}
	}
}

// take moves the next renewal from queued to sent and notes when: the lease's new time counts from
// now. One whose lease has ended while it was queued is answered here and never sent.
func (s *renewStream) take(now time.Time) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := s.queued.head; w != nil; w = s.queued.head {
		s.queued.remove(w)
		if end, known := s.ends.of(w.id); known && !now.Before(end) {
			w.done <- renewal{err: store.ErrLeaseGone}
			continue
		}
		w.from = now
		s.sent.push(w)
		chain := s.owed[w.id]
		if chain == nil {
			chain = &leaseChain{}
			s.owed[w.id] = chain
		}
		chain.push(w)
		return w
	}
	return nil
}

// answer delivers an answer to the first caller that waits for this lease. An answer that no caller
// waits for is ignored.
func (s *renewStream) answer(id store.LeaseID, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = true
	chain := s.owed[id]
	if chain == nil {
		return
	}
	w := chain.pop()
	if chain.head == nil {
		delete(s.owed, id)
	}
	s.sent.remove(w)
	if ttl <= 0 {
		s.ends.ended(id, time.Now())
		w.done <- renewal{err: store.ErrLeaseGone}
		return
	}
	lease := store.Lease{ID: id, TTL: ttl, From: w.from}
	s.ends.learn(id, lease.Ends())
	w.done <- renewal{lease: lease}
}

// failSent fails what was sent on a stream that ended.
func (s *renewStream) failSent(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.owed)
	for w := s.sent.head; w != nil; w = s.sent.head {
		s.sent.remove(w)
		w.done <- renewal{err: err}
	}
}

// requeue puts what was sent and not answered before what is queued: renewing twice does no harm.
func (s *renewStream) requeue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.owed)
	for w := s.sent.tail; w != nil; w = s.sent.tail {
		s.sent.remove(w)
		if !w.left {
			w.nextOfLease = nil
			s.queued.pushFront(w)
		}
	}
	s.signal()
}

// shut fails all renewals that wait, and all later ones.
func (s *renewStream) shut() {
	s.failSent(errClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for w := s.queued.head; w != nil; w = s.queued.head {
		s.queued.remove(w)
		w.done <- renewal{err: errClosed}
	}
}

// watchStalls looks for stalls until ctx ends.
func (s *renewStream) watchStalls(ctx context.Context) {
	tick := time.NewTicker(s.stall / 8)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.checkStall(now)
		}
	}
}

// checkStall ends a stream that owes its oldest answer for too long, and fails what has been queued
// as long: no stream could be opened to send it on, or the open one takes nothing more.
func (s *renewStream) checkStall(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := s.sent.head
	stalled := oldest != nil && now.Sub(oldest.from) > s.stall
	for w := s.queued.head; w != nil && now.Sub(w.since) > s.stall; w = s.queued.head {
		s.queued.remove(w)
		w.done <- renewal{err: fmt.Errorf("%w: %w for %s", store.ErrUnavailable, errStalled, s.stall)}
		stalled = true
	}
	if stalled && s.broken != nil {
		s.broken(fmt.Errorf("%w for %s", errStalled, s.stall))
		s.broken = nil
	}
}
