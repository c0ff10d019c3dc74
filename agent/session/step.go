package session

import (
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// Step takes an event and returns the orders for it and for the time that has passed.
func (c *Session) Step(now time.Time, ev Event) []Order {
	if c.left {
		return nil
	}
	var orders []Order
	if c.overslept(now) {
		c.thaw(now)
		orders = append(orders, Note{Warn: true, Text: "agent did not run for a while"})
	}
	switch ev := ev.(type) {
	case Heard:
		orders = append(orders, c.heard(now, ev)...)
	case Ended:
		orders = append(orders, c.ended(now, ev)...)
	case Changed:
		c.reportAt = now
	}
	orders = append(orders, c.pass(now)...)
	c.wake = c.next()
	return orders
}

// overslept: the caller came much later than it should have, so the process was frozen or starved.
func (c *Session) overslept(now time.Time) bool {
	return !c.wake.IsZero() && now.Sub(c.wake) > max(c.cfg.ReportInterval/2, thawGrace)
}

// thaw gives open streams a new, short deadline, and makes waits end now.
func (c *Session) thaw(now time.Time) {
	if c.serving != nil {
		c.serving.heard = now
		c.reportAt = now
		if !c.serving.overdue.IsZero() {
			c.serving.overdue = now.Add(min(c.cfg.ReportInterval, thawGrace))
		}
	}
	if c.trying != nil && now.After(c.trying.due) {
		c.trying.due = now.Add(thawGrace)
	}
}

func (c *Session) heard(now time.Time, ev Heard) []Order {
	switch {
	case c.trying != nil && c.trying.stream == ev.Stream:
		switch kind := ev.Message.GetKind().(type) {
		case *protocol.GatewayMessage_Welcome:
			return c.welcomed(now, kind.Welcome)
		case *protocol.GatewayMessage_Refused:
			l := c.trying
			c.trying = nil
			return c.refused(now, l, kind.Refused)
		case *protocol.GatewayMessage_Waiting:
			return c.waits(now, kind.Waiting.GetMost().AsDuration())
		case *protocol.GatewayMessage_Move:
			l := c.trying
			c.trying = nil
			c.failed(now)
			return []Order{
				Close{Stream: l.stream},
				Note{Text: "replica sends agents away", Replica: l.address, Why: kind.Move.GetReason()},
			}
		}
	case c.serving != nil && c.serving.stream == ev.Stream:
		l := c.serving
		l.heard = now
		switch kind := ev.Message.GetKind().(type) {
		case *protocol.GatewayMessage_Ack:
			return c.acked(kind.Ack)
		case *protocol.GatewayMessage_Nack:
			l.answered(kind.Nack.GetSequence(), c.cfg.ReportInterval)
			return c.grow(now, "report was received but renewed nothing", kind.Nack.GetMessage())
		case *protocol.GatewayMessage_Move:
			l.moving = true
			return c.grow(now, "replica sends agents away", kind.Move.GetReason())
		case *protocol.GatewayMessage_Coordinators:
			if c.learn(now, kind.Coordinators.GetAddresses()) {
				return []Order{c.remember(), c.warm()}
			}
		case *protocol.GatewayMessage_Wanted:
			return []Order{Wanted{Wanted: kind.Wanted}}
		case *protocol.GatewayMessage_Refused:
			c.serving, c.restless = nil, false
			return c.refused(now, l, kind.Refused)
		}
	}
	return nil
}

func (c *Session) welcomed(now time.Time, w *protocol.Welcome) []Order {
	var orders []Order
	l := c.trying
	l.heard = now
	if c.serving != nil {
		orders = append(orders, Close{
			Stream: c.serving.stream, Goodbye: protocol.Goodbye_MOVING,
			Why: "welcomed by another replica",
		})
	}
	c.serving, c.trying, c.restless, c.stale = l, nil, false, false
	c.booking, c.unknown = booking{}, 0
	set := func(to *time.Duration, from time.Duration) {
		if from > 0 {
			*to = from
		}
	}
	set(&c.cfg.ReportInterval, w.GetReportInterval().AsDuration())
	set(&c.cfg.ReconnectMin, w.GetReconnectMin().AsDuration())
	set(&c.cfg.ReconnectMax, w.GetReconnectMax().AsDuration())
	c.ttl = 3*c.cfg.ReportInterval + 2*time.Second
	set(&c.ttl, w.GetLeaseTtl().AsDuration())
	if w.GetLease() == 0 || w.GetLease() != c.memory.Lease || l.opened.After(c.renewed) {
		c.renewed = l.opened // otherwise the previous stream has renewed the same lease later
	}
	c.reportAt = now

	orders = append(orders, Note{Text: "welcomed", Replica: l.address})
	revived := c.memory.Condemned.Holds()
	c.memory.Condemned, c.memory.Lease = Condemnation{}, w.GetLease()
	c.learn(now, w.GetCoordinators())
	orders = append(orders, c.remember())
	if revived {
		orders = append(orders, Workload{Run: true, Why: "welcomed again"})
	}
	return append(orders, c.warm())
}

// waits grants a replica that asked us to wait for our turn the requested time, once, and no more
// than the usual longest wait.
func (c *Session) waits(now time.Time, most time.Duration) []Order {
	l := c.trying
	if l.waiting || most <= 0 {
		return nil
	}
	l.waiting = true
	if due := now.Add(min(most, c.cfg.ReconnectMax)); due.After(l.due) {
		l.due = due
	}
	return []Order{Note{Text: "replica has many agents to admit, and this one waits", Replica: l.address}}
}

// warm keeps a connection ready to the replica that is next.
func (c *Session) warm() Order {
	next, _ := c.replicas.after(c.serving.address, false)
	return Warm{Address: next, After: time.Duration(c.cfg.Rand() * float64(c.cfg.ReconnectMax))}
}

func (c *Session) acked(ack *protocol.Ack) []Order {
	l := c.serving
	if at, ok := l.answered(ack.GetSequence(), c.cfg.ReportInterval); ok {
		c.renewed = at
	}
	l.proved = true
	c.failures = 0
	if !l.moving {
		c.restless = false
	}
	if lease := ack.GetLease(); lease != 0 && lease != c.memory.Lease {
		c.memory.Lease = lease
		return []Order{c.remember()}
	}
	return nil
}

// answered forgets the reports up to this one and returns when it was sent, or the latest known
// before it.
func (l *line) answered(sequence uint64, interval time.Duration) (at time.Time, ok bool) {
	for len(l.unacked) > 0 && l.unacked[0].sequence <= sequence {
		at, ok = l.unacked[0].at, true
		l.unacked = l.unacked[1:]
	}
	if !ok {
		return at, false
	}
	l.overdue = time.Time{}
	if len(l.unacked) > 0 {
		l.overdue = l.unacked[0].at.Add(interval)
	}
	return at, true
}

// refused handles a stream that a replica has ended; it is no longer among the lines.
func (c *Session) refused(now time.Time, l *line, r *protocol.Refused) []Order {
	note := Note{Warn: true, Text: "refused: " + r.GetReason().String(), Replica: l.address, Why: r.GetMessage()}
	reason, condemned := r.GetReason(), Condemnation{Revision: r.GetRevision(), Phase: r.GetPhase()}
	if reason == protocol.Refused_RETIRED && !condemned.Holds() {
		reason = protocol.Refused_UNKNOWN // nothing shows that a record ended the instance (SAFE-14)
	}
	end := Close{Stream: l.stream}
	switch reason {
	case protocol.Refused_RETIRED:
		return append([]Order{end}, c.retired(now, condemned, note)...)

	case protocol.Refused_UNKNOWN:
		end.Keep = c.unrecorded(now, l, r.GetAfter().AsDuration())
		if c.unknown > 1 {
			return []Order{end} // it is logged already
		}
		note.Text = "no coordinator has a record of this instance: its workload runs on"

	case protocol.Refused_STALE_EPOCH:
		c.memory.Epoch = max(c.memory.Epoch, r.GetStoredEpoch())
		if !c.stale {
			c.stale = true
			c.replicas.last = before(c.replicas, l.address)
			c.tryAt = now
			return []Order{end}
		}
		c.lost(now, l)

	case protocol.Refused_SUPERSEDED:
		text := c.superseded(now, l)
		if text == "" {
			return []Order{end}
		}
		note.Text = text

	case protocol.Refused_BOOT_CONFLICT, protocol.Refused_WRONG_SHARD, protocol.Refused_MALFORMED:
		c.rest(now)

	default: // UNAVAILABLE, or a reason that only a newer replica knows: another replica may accept us
		c.lost(now, l)
		if after := r.GetAfter().AsDuration(); after > 0 {
			end.Keep = c.book(now, l, after)
		}
	}
	return []Order{end, note}
}

// retired closes all streams and stops the workload, because the record says that the instance has
// ended. A replica's answer counts as etcd's: it compares the record in a transaction. So the
// answer holds for all streams.
func (c *Session) retired(now time.Time, condemned Condemnation, note Note) []Order {
	var orders []Order
	for _, other := range []*line{c.serving, c.trying} {
		if other != nil {
			orders = append(orders, Close{Stream: other.stream})
		}
	}
	c.serving, c.trying, c.restless = nil, nil, false
	c.rest(now)
	known := c.memory.Condemned
	if known.Holds() && condemned.Revision <= known.Revision {
		return orders
	}
	c.memory.Condemned = condemned
	if known.Holds() {
		return append(orders, c.remember()) // the record was written again; the workload is stopped already
	}
	return append(orders, note, c.remember(), Workload{Why: "retired: " + note.Why})
}

// superseded handles a stream that a later one has replaced, and returns what to log. Our own next
// stream replaces the previous one, which is not logged; anything else is a second agent for this
// instance.
func (c *Session) superseded(now time.Time, l *line) (text string) {
	switch {
	case c.trying != nil:
		return ""
	case c.serving != nil:
		c.failed(now)
		return ""
	case c.streams > l.stream:
		// It is one of our own abandoned streams, which came through late. A long wait would cost
		// us our lease.
		c.lost(now, l)
		return "an abandoned stream has been accepted, and has ended this one"
	default:
		c.rest(now)
		return "another agent connects as this instance: look for a second copy of this machine"
	}
}

func (c *Session) ended(now time.Time, ev Ended) []Order {
	var l *line
	text := "stream ended"
	switch {
	case c.trying != nil && c.trying.stream == ev.Stream:
		l, c.trying = c.trying, nil
		text = "replica does not answer"
	case c.serving != nil && c.serving.stream == ev.Stream:
		l, c.serving, c.restless = c.serving, nil, false
	default:
		return nil
	}
	why := "closed by the replica"
	if ev.Err != nil {
		why = ev.Err.Error()
	}
	c.lost(now, l)
	if ev.Logged {
		return nil
	}
	return []Order{Note{Warn: true, Text: text, Replica: l.address, Why: why}}
}

// learn takes a list of replicas and reports whether anything changed. It ignores an empty list.
func (c *Session) learn(now time.Time, list []string) bool {
	list = shuffled(list, nil, c.cfg.Rand)
	if len(list) == 0 || c.replicas.same(list) && len(c.memory.Replicas) > 0 {
		return false
	}
	last := c.replicas.last
	c.replicas = newRotation(list, c.cfg.Bootstrap, c.cfg.Rand)
	c.replicas.last = last
	c.memory.Replicas = list
	if c.restless {
		c.tryAt = now
	}
	return true
}
