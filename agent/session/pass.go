package session

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// pass does what is due by now.
func (c *Session) pass(now time.Time) []Order {
	var orders []Order
	if l := c.trying; l != nil && !now.Before(l.due) {
		c.trying = nil
		c.lost(now, l)
		orders = append(orders, Close{Stream: l.stream},
			Note{Warn: true, Text: "replica does not answer", Replica: l.address, Why: "not reached, or no welcome, in time"})
	}
	if l := c.serving; l != nil && !l.overdue.IsZero() {
		switch {
		case now.Sub(l.heard) >= max(c.ttl, c.cfg.ReportInterval):
			// Nothing was received for as long as a lease lasts, so there is no reason to stay.
			c.serving, c.restless = nil, false
			c.lost(now, l)
			orders = append(orders, Close{Stream: l.stream, Goodbye: protocol.Goodbye_MOVING, Why: "no answer"},
				Note{Warn: true, Text: "stream given up", Replica: l.address, Why: "no answer for a whole lease"})
		case !now.Before(l.overdue):
			orders = append(orders, c.grow(now, "report is not acknowledged", "no answer for one interval")...)
		}
	}
	if l := c.serving; l != nil && !now.Before(c.reportAt) {
		orders = append(orders, c.report(now, l))
	}
	if (c.serving == nil || c.restless) && c.trying == nil && !now.Before(c.tryAt) {
		orders = append(orders, c.try(now)...)
	}
	return orders
}

func (c *Session) report(now time.Time, l *line) Order {
	l.sequence++
	if len(l.unacked) < maxUnacked {
		l.unacked = append(l.unacked, sent{sequence: l.sequence, at: now})
	}
	if l.overdue.IsZero() {
		l.overdue = now.Add(c.cfg.ReportInterval)
	}
	c.reportAt = now.Add(c.cfg.ReportInterval)
	return Report{Stream: l.stream, Sequence: l.sequence}
}

func (c *Session) try(now time.Time) []Order {
	avoid := ""
	if c.serving != nil {
		avoid = c.serving.address
	}
	address, ok := c.replicas.after(avoid, c.wide())
	if !ok {
		// No other replica is known. A new list or the end of this stream changes that; until then
		// look rarely.
		c.tryAt = now.Add(c.cfg.ReconnectMax)
		return nil
	}
	c.replicas.last = address
	c.memory.Epoch++
	c.streams++
	c.trying = &line{stream: c.streams, address: address, opened: now, due: now.Add(c.cfg.AnswerTimeout)}
	return []Order{
		c.remember(),
		Open{Stream: c.streams, Address: address, Epoch: c.memory.Epoch, Lease: c.memory.Lease},
	}
}

// round returns the number of replicas in the rotation.
func (c *Session) round() int {
	n := len(c.replicas.known)
	switch {
	case c.serving != nil:
		n-- // the replica in use is not among them
	case c.wide():
		n += len(c.replicas.extras)
	}
	return max(1, n)
}

// wide reports whether to ask the bootstrap document's replicas too: when all replicas of the last
// list failed.
func (c *Session) wide() bool { return c.serving == nil && c.failures > len(c.replicas.known) }

// grow makes the agent look for another replica while it stays with the present one.
func (c *Session) grow(now time.Time, text, why string) []Order {
	if c.restless {
		return nil
	}
	c.restless = true
	// A replica that welcomes and then renews nothing counts as a failure, so that the agent does
	// not cycle through such replicas at full speed.
	c.lost(now, c.serving)
	return []Order{Note{Warn: true, Text: text, Replica: c.serving.address, Why: why}}
}

// lost sets when to try again after this stream: at once if it was good, else with growing delays
// (DET-14).
func (c *Session) lost(now time.Time, l *line) {
	if l.proved {
		c.failures = 0
	}
	c.failed(now)
}

// failed sets when to try again. The first failure after an acknowledgement may concern this one
// replica, so the next is asked at once. The same applies to a round through all replicas: those
// that are up must not wait for others that are gone. Between rounds the wait has full jitter under
// a ceiling that doubles (DET-14), so an agent returns to a replica that comes back within the
// longest wait and one round. That is the time a leader gives it before it counts as lost (SAFE-1).
func (c *Session) failed(now time.Time) {
	c.failures++
	round := c.round()
	if c.failures == 1 || c.failures%round != 0 {
		c.tryAt = now
		return
	}
	rounds := c.failures / round
	if round == 1 {
		rounds-- // the first was asked again at once
	}
	ceiling := c.cfg.ReconnectMin
	for range rounds - 1 {
		if ceiling >= c.cfg.ReconnectMax {
			break
		}
		ceiling *= 2
	}
	c.tryAt = now.Add(time.Duration(c.cfg.Rand() * float64(min(ceiling, c.cfg.ReconnectMax))))
}

// book records when a replica without room may be asked again. All others are asked first, then
// this one at that time or a little later: it has given each agent a different time. No wait is
// longer than usual, so that a leader knows by when agents are back (SAFE-1). book reports whether
// no other replica has room sooner.
func (c *Session) book(now time.Time, l *line, after time.Duration) (soonest bool) {
	if at := now.Add(c.waitFor(after)); c.booking.at.IsZero() || at.Before(c.booking.at) {
		c.booking, soonest = booking{l.address, at}, true
	}
	if c.failures%c.round() != 0 {
		return soonest
	}
	c.replicas.last = before(c.replicas, c.booking.address)
	c.tryAt, c.booking = c.booking.at, booking{}
	c.failures = min(c.failures, len(c.replicas.known)) // replicas that answer are up, so others need not be looked for
	return soonest
}

// waitFor returns how long to wait for a replica that asked us to return after some time. It adds
// little jitter, since the replica gave each agent another time.
func (c *Session) waitFor(after time.Duration) time.Duration {
	most := c.cfg.ReconnectMax
	if after > most {
		return most/2 + time.Duration(c.cfg.Rand()*float64(most/2))
	}
	return after + time.Duration(c.cfg.Rand()*float64(min(after/8, most-after)))
}

// unknownRound is how often an agent without a record asks the replica that it is connected to
// before it asks all replicas again. All replicas read the same etcd, and if all records are lost,
// handshakes with each replica at each attempt would cost more than everything else that the
// replicas do.
const unknownRound = 8

// unrecorded sets when to ask again after a replica has said that the instance has no record. At
// first it asks all replicas, then mostly this one, at about the longest wait, for as long as it
// takes (SAFE-14). It reports whether to keep the connection.
func (c *Session) unrecorded(now time.Time, l *line, after time.Duration) (keep bool) {
	c.unknown++
	keep = after > 0 // otherwise the replica is of an earlier release, and ends the connection
	if !keep {
		after = 2 * c.cfg.ReconnectMax // waitFor turns that into a wait with jitter
	}
	round := c.round()
	if c.unknown < round || c.unknown%unknownRound < round {
		if c.unknown%unknownRound == 0 {
			c.failures = 0 // so that the round begins here
		}
		c.lost(now, l)
		return c.book(now, l, after) && keep
	}
	c.booking = booking{}
	c.replicas.last = before(c.replicas, l.address)
	c.failures = 0 // the replica and etcd are up
	c.tryAt = now.Add(c.waitFor(after))
	return keep
}

// rest waits for about the agent's longest wait.
func (c *Session) rest(now time.Time) {
	half := c.cfg.ReconnectMax / 2
	c.failures++
	c.tryAt = now.Add(half + time.Duration(c.cfg.Rand()*float64(half)))
}

func (c *Session) remember() Order {
	m := c.memory
	m.Replicas = slices.Clone(m.Replicas)
	return Remember{Memory: m}
}

// next returns the earliest time at which pass would do something.
func (c *Session) next() time.Time {
	var at time.Time
	consider := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if c.trying != nil {
		consider(c.trying.due)
	}
	if l := c.serving; l != nil {
		consider(c.reportAt)
		if !l.overdue.IsZero() {
			consider(l.heard.Add(max(c.ttl, c.cfg.ReportInterval)))
			if !c.restless {
				consider(l.overdue)
			}
		}
	}
	if (c.serving == nil || c.restless) && c.trying == nil {
		consider(c.tryAt)
	}
	return at
}

// before returns the replica after which the address comes in the rotation.
func before(r rotation, address string) string {
	all := slices.Concat(r.known, r.extras)
	i := slices.Index(all, address)
	if i < 0 {
		return r.last
	}
	return all[(i+len(all)-1)%len(all)]
}
