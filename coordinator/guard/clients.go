package guard

import (
	"sync"
	"time"
)

// How clients are treated that violate the protocol or say hello too often.
const (
	helloInterval  = time.Second // the sustained rate of hellos of one instance: one per interval
	helloBurst     = 10          // how many may come at once; an agent that has lost its stream backs off
	maxDenied      = 20          // hellos beyond that, without a pause, before they count as a violation
	firstCutOff    = 10 * time.Second
	maxCutOff      = 5 * time.Minute
	violationReset = 10 * time.Minute // how long after a cut-off its violation no longer counts
	tidyClients    = 1000             // client states in memory before idle ones are deleted
)

// Clients holds the client state of every instance that has proved its name.
type Clients struct {
	mu     sync.Mutex
	states map[string]*clientState
	tidyAt int // number of states at which idle ones are deleted next
}

type clientState struct {
	nextHello   time.Time // when the next hello is due at the sustained rate
	denied      int       // hellos denied since the last pause
	violations  int       // recent ones
	cutOffUntil time.Time
}

// NewClients returns an empty Clients.
func NewClients() *Clients { return &Clients{states: map[string]*clientState{}, tidyAt: tidyClients} }

// HelloDecision is what happens to a hello.
type HelloDecision int

// The decisions about a hello.
const (
	HelloAllowed  HelloDecision = iota
	HelloDenied                 // it came too soon
	HelloCutOff                 // the instance is cut off for a violation
	HelloViolates               // it came too soon too often: the instance is cut off from now on
)

// Hello counts a hello. With HelloCutOff and HelloViolates it returns for how long the instance is
// cut off.
func (c *Clients) Hello(instance string, now time.Time) (HelloDecision, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state(instance, now)
	if now.Before(s.cutOffUntil) {
		return HelloCutOff, s.cutOffUntil.Sub(now)
	}
	if !s.nextHello.After(now) {
		s.nextHello, s.denied = now, 0
	}
	if s.nextHello.Sub(now) > (helloBurst-1)*helloInterval {
		if s.denied++; s.denied > maxDenied {
			s.denied = 0
			return HelloViolates, s.cutOff(now)
		}
		return HelloDenied, 0
	}
	s.nextHello = s.nextHello.Add(helloInterval)
	return HelloAllowed, 0
}

// CutOff records a violation and returns for how long the instance is cut off.
func (c *Clients) CutOff(instance string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state(instance, now).cutOff(now)
}

// cutOff doubles the time with each recent violation.
func (s *clientState) cutOff(now time.Time) time.Duration {
	if now.Sub(s.cutOffUntil) >= violationReset {
		s.violations = 0
	}
	d := firstCutOff
	for range s.violations {
		if d *= 2; d >= maxCutOff {
			d = maxCutOff
			break
		}
	}
	s.violations++
	s.cutOffUntil = now.Add(d)
	return d
}

// state returns the state of an instance. When there are many states, it first deletes those that
// no longer matter.
func (c *Clients) state(instance string, now time.Time) *clientState {
	s := c.states[instance]
	if s != nil {
		return s
	}
	if len(c.states) >= c.tidyAt {
		for name, s := range c.states {
			if !s.nextHello.After(now) && now.Sub(s.cutOffUntil) >= violationReset {
				delete(c.states, name)
			}
		}
		c.tidyAt = max(tidyClients, 2*len(c.states))
	}
	s = &clientState{}
	c.states[instance] = s
	return s
}
