package gateway

import (
	"sync"

	"github.com/leasehold/leasehold/agent/protocol"
)

// Bounds of unsolicited messages to agents.
const (
	// goroutines that send at the same time: an agent that does not read occupies one for unreadFor
	maxSenders = 256
	maxPending = 16 // messages that wait for one agent
)

// senders send what is not an answer to an agent's message: other replicas, a changed
// configuration, other authorities. A stream has one goroutine, which waits for the agent's
// messages. A few shared goroutines send the rest, so that no stream needs a second one.
type senders struct {
	g *Gateway

	mu      sync.Mutex
	waiting []*session
	running int
}

// topic is a subject that may have changed. Its state is read when it is sent, so several changes
// are sent as one.
type topic uint8

const (
	topicWanted      topic = 1 << iota // what the record wants of the agent
	topicTrust                         // the authorities to trust
	topicCertificate                   // the agent's certificate may have expired
	topicFiles                         // which files are wanted, or their content
)

// outbox holds what waits to be sent to an agent.
type outbox struct {
	mu       sync.Mutex
	messages []*protocol.GatewayMessage // in order
	topics   topic
	closing  error // why the session ends; nil: it does not
	waits    bool  // it is queued for a sender
}

// enqueue schedules a message, or drops it if the agent does not keep up: the next change repeats
// it, or it is not needed.
func (s *session) enqueue(msg *protocol.GatewayMessage) {
	u := &s.outbox
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.messages) < maxPending {
		u.messages = append(u.messages, msg)
		u.wait(s)
	}
}

// notify schedules an update of a topic, which is sent if it has changed.
func (s *session) notify(m topic) {
	u := &s.outbox
	u.mu.Lock()
	defer u.mu.Unlock()
	u.topics |= m
	u.wait(s)
}

// close ends the session once the agent has been notified. It does not write the alive key: the
// goroutine that took over owns it.
func (s *session) close(why error) {
	u := &s.outbox
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closing == nil {
		u.closing = why
		u.wait(s)
	}
}

// closing returns why the gateway ends the session; nil if it does not.
func (s *session) closing() error {
	s.outbox.mu.Lock()
	defer s.outbox.mu.Unlock()
	return s.outbox.closing
}

// wait queues the session for a sender. u.mu must be held.
func (u *outbox) wait(s *session) {
	if !u.waits {
		u.waits = true
		s.g.senders.send(s)
	}
}

func (u *outbox) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.messages) > 0 || u.topics != 0 || u.closing != nil
}

func (u *outbox) take() (messages []*protocol.GatewayMessage, topics topic) {
	u.mu.Lock()
	defer u.mu.Unlock()
	messages, topics = u.messages, u.topics
	u.messages, u.topics = nil, 0
	return messages, topics
}

// send queues a session, and starts a sender unless there are enough.
func (p *senders) send(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, s)
	if p.running < maxSenders && p.g.spawn(p.run) {
		p.running++
	}
}

// run sends what is pending until nothing waits.
func (p *senders) run() {
	for s := p.next(); s != nil; s = p.next() {
		s.outbox.mu.Lock()
		s.outbox.waits = false
		s.outbox.mu.Unlock()
		s.flush()
	}
}

// next returns the session that has waited longest. If there is none, it takes the sender off the
// count.
func (p *senders) next() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.waiting = nil
		p.running--
		return nil
	}
	s := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	return s
}

// flush sends what is pending. It never waits for s.mu: the goroutine that holds it flushes when it
// is done. A failed send ends the stream.
func (s *session) flush() {
	for s.outbox.any() && s.mu.TryLock() {
		muted := s.muted
		if !muted {
			s.sendPending()
		}
		s.mu.Unlock()
		if muted {
			return
		}
	}
}

// sendPending sends everything in the outbox. s.mu must be held.
func (s *session) sendPending() {
	messages, topics := s.outbox.take()
	if why := s.closing(); why != nil {
		s.muted = true
		if last := s.farewell(why); last != nil {
			_ = s.stream.Send(refusedMessage(last))
		}
		s.cancel(why)
		return
	}
	for _, msg := range messages {
		if err := s.stream.Send(msg); err != nil {
			s.sendFailed(err)
			return
		}
	}
	for _, update := range []struct {
		topic topic
		send  func() error
	}{{topicFiles, s.sendFiles}, {topicWanted, s.sendWanted}, {topicCertificate, s.certificateEnded}, {
		topicTrust,
		s.trustChanged,
	}} {
		if topics&update.topic == 0 {
			continue
		}
		if err := update.send(); err != nil {
			s.sendFailed(err)
			return
		}
	}
}

// sendFailed ends a stream after a failed send. s.mu must be held.
func (s *session) sendFailed(err error) {
	s.muted = true
	s.close(err)
	s.cancel(err)
}
