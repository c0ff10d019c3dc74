package gateway

import (
	"sync"
	"time"
)

// How agents are treated that do what no agent does (SEC-5).
const (
	helloEvery = time.Second // one hello of an instance in so much time …
	helloBurst = 10          // … and so many at once: an agent that has lost its stream waits longer and longer
	mostDenied = 20          // hellos beyond that, without a pause, before it counts as an offence
	firstCool  = 10 * time.Second
	mostCool   = 5 * time.Minute
	forgetting = 10 * time.Minute // after an offence's end, until it counts no more
	deniedWait = time.Second      // before a hello is refused that comes too often: so the next one comes later
)

const (
	offenceHellos   = offence("it says hello too often")
	offenceTwice    = offence("it says hello twice")
	offenceBackward = offence("its reports are not numbered upwards")
	offenceFlood    = offence("it sends more than an agent can, and goes on")
	offenceHasty    = offence("it asks for certificates without pause")
	offenceReport   = offence("a report has more of something than an agent has")
)

// conduct remembers who misbehaved, and how often instances say hello. It knows only those whose name is proved.
type conduct struct {
	mu    sync.Mutex
	known map[string]*manners
	tidy  int // how many may be known before those are forgotten of whom there is nothing to be known
}

// manners are one instance's.
type manners struct {
	next     time.Time // when a hello comes in time, if all before had come in time
	denied   int       // hellos, since the last pause
	offences int       // of late
	until    time.Time // it is cut off
}

func newConduct() *conduct { return &conduct{known: map[string]*manners{}, tidy: 1000} }

// hello takes note of a hello. It returns how long the instance is cut off for, and whether it comes too often; and the offence, if that has just
// become one.
func (c *conduct) hello(instance string, now time.Time) (cool time.Duration, often bool, bad error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.of(instance, now)
	if now.Before(m.until) {
		return m.until.Sub(now), false, nil
	}
	if !m.next.After(now) {
		m.next, m.denied = now, 0
	}
	if m.next.Sub(now) > (helloBurst-1)*helloEvery {
		if m.denied++; m.denied > mostDenied {
			m.denied = 0
			return m.offend(now), false, offenceHellos
		}
		return 0, true, nil
	}
	m.next = m.next.Add(helloEvery)
	return 0, false, nil
}

// offend takes note of an offence, and returns for how long the instance is cut off.
func (c *conduct) offend(instance string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of(instance, now).offend(now)
}

func (m *manners) offend(now time.Time) time.Duration {
	if now.Sub(m.until) >= forgetting {
		m.offences = 0
	}
	cool := firstCool
	for range m.offences {
		if cool *= 2; cool >= mostCool {
			cool = mostCool
			break
		}
	}
	m.offences++
	m.until = now.Add(cool)
	return cool
}

// of is what is known of an instance. Now and then those are forgotten of whom nothing has to be known.
func (c *conduct) of(instance string, now time.Time) *manners {
	m := c.known[instance]
	if m != nil {
		return m
	}
	if len(c.known) >= c.tidy {
		for name, m := range c.known {
			if !m.next.After(now) && now.Sub(m.until) >= forgetting {
				delete(c.known, name)
			}
		}
		c.tidy = max(1000, 2*len(c.known))
	}
	m = &manners{}
	c.known[instance] = m
	return m
}
