package gateway

import (
	"sync"

	"github.com/leasehold/leasehold/agent/protocol"
)

// The bounds of what is said to agents without their having asked.
const (
	// agents that are spoken to at the same time: one that does not read keeps a voice for as long
	// as unreadFor
	mostVoices = 256
	mostUnsaid = 16 // messages that wait to be said to one agent
)

// voices say what agents have not asked for: that there are other replicas, that something else is
// wanted of them, whom to believe. A stream has one goroutine, and that waits for what the agent
// says; so that there is not a second one for each stream, those who have something to say to many
// are few.
type voices struct {
	g *Gateway

	mu       sync.Mutex
	waiting  []*session
	speaking int
}

// matter is something of which the newest is said, whenever it is said.
type matter uint8

const (
	ofWanted      matter = 1 << iota // what is wanted may have changed
	ofTrust                          // whom to believe may have
	ofCertificate                    // the agent's certificate may have ended
)

// unsaid is what waits to be said to an agent.
type unsaid struct {
	mu       sync.Mutex
	messages []*protocol.GatewayMessage // in order
	matters  matter
	closing  error // why the session ends; nil: it does not
	waits    bool  // among those who wait for a voice
}

// ask has something said to the agent, if its stream keeps up. What is dropped is repeated by the
// next change or not needed.
func (s *session) ask(msg *protocol.GatewayMessage) {
	u := &s.unsaid
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.messages) < mostUnsaid {
		u.messages = append(u.messages, msg)
		u.wait(s)
	}
}

// speakOf has the agent told what is new in a matter, if anything is.
func (s *session) speakOf(m matter) {
	u := &s.unsaid
	u.mu.Lock()
	defer u.mu.Unlock()
	u.matters |= m
	u.wait(s)
}

// close has the session end from outside, once the agent has been told. The key is left alone:
// the goroutine that took over owns it.
func (s *session) close(why error) {
	u := &s.unsaid
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closing == nil {
		u.closing = why
		u.wait(s)
	}
}

// closing is why the gateway ends the session; nil: it does not.
func (s *session) closing() error {
	s.unsaid.mu.Lock()
	defer s.unsaid.mu.Unlock()
	return s.unsaid.closing
}

// wait has a voice come. The caller has the lock.
func (u *unsaid) wait(s *session) {
	if !u.waits {
		u.waits = true
		s.g.voices.send(s)
	}
}

func (u *unsaid) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.messages) > 0 || u.matters != 0 || u.closing != nil
}

func (u *unsaid) take() (messages []*protocol.GatewayMessage, matters matter) {
	u.mu.Lock()
	defer u.mu.Unlock()
	messages, matters = u.messages, u.matters
	u.messages, u.matters = nil, 0
	return messages, matters
}

// send sends a voice to a session.
func (v *voices) send(s *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting = append(v.waiting, s)
	if v.speaking < mostVoices && v.g.spawn(v.speak) {
		v.speaking++
	}
}

// speak sends what is pending until nothing waits.
func (v *voices) speak() {
	for s := v.next(); s != nil; s = v.next() {
		s.unsaid.mu.Lock()
		s.unsaid.waits = false
		s.unsaid.mu.Unlock()
		s.utter()
	}
}

// next takes the session that has waited longest. With none left the voice is counted no more.
func (v *voices) next() *session {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.waiting) == 0 {
		v.waiting = nil
		v.speaking--
		return nil
	}
	s := v.waiting[0]
	v.waiting[0] = nil
	v.waiting = v.waiting[1:]
	return s
}

// utter sends what is pending. It never waits for talk: its holder sends what is pending once
// it is done. What cannot be sent ends the stream.
func (s *session) utter() {
	for s.unsaid.any() && s.talk.TryLock() {
		hushed := s.hushed
		if !hushed {
			s.sayUnsaid()
		}
		s.talk.Unlock()
		if hushed {
			return
		}
	}
}

// sayUnsaid needs talk to be held.
func (s *session) sayUnsaid() {
	messages, matters := s.unsaid.take()
	if why := s.closing(); why != nil {
		s.hushed = true
		if last := s.farewell(why); last != nil {
			_ = s.stream.Send(last)
		}
		s.cancel(why)
		return
	}
	for _, msg := range messages {
		if err := s.stream.Send(msg); err != nil {
			s.unsayable(err)
			return
		}
	}
	for _, about := range []struct {
		matter matter
		say    func() error
	}{{ofWanted, s.sendWanted}, {ofCertificate, s.certificateEnded}, {ofTrust, s.trustChanged}} {
		if matters&about.matter == 0 {
			continue
		}
		if err := about.say(); err != nil {
			s.unsayable(err)
			return
		}
	}
}

// unsayable ends a stream on which nothing can be sent. The caller holds talk.
func (s *session) unsayable(err error) {
	s.hushed = true
	s.close(err)
	s.cancel(err)
}
