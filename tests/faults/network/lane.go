package network

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"time"
)

const (
	pieceSize = 16 << 10
	// maxUnderWay is how many bytes of a lane may be under way at once, beside those in the
	// kernel's buffers.
	maxUnderWay = 256 << 10
)

// lane is one direction of a link. One goroutine does all of it: where no rule holds it reads and
// writes.
type lane struct {
	link     *link
	from, to string
	src, dst net.Conn
	other    *lane         // the other direction
	done     chan struct{} // closed when nothing more is handed to dst

	rules *book // that terms are of
	terms terms

	under []parcel  // under way, in order
	size  int       // bytes in them
	sent  time.Time // when src has put all of it on the way; later than now where that is slow
	timed bool      // src has a deadline
	ended bool      // src says nothing more
}

// parcel is what was said at once, or that nothing more will be said.
type parcel struct {
	due  time.Time
	data []byte
	end  error // io.EOF, or why src failed
}

// carry brings what src says to dst, until there is nothing more, or no link. That dst is gone src
// hears from there: behind what dst has said before, and not through silence.
func (l *lane) carry() {
	err := l.bring()
	close(l.done)
	if err == nil {
		return
	}
	select {
	case <-l.other.done:
	case <-l.link.ctx.Done():
	}
	if l.link.audible(l.to, l.from) {
		l.link.reset()
	}
}

// bring ends when src says nothing more, when the link has ended, or with an error because dst is
// gone.
func (l *lane) bring() error {
	room := make([]byte, pieceSize)
	for !l.ended || len(l.under) > 0 {
		wait := time.Duration(0)
		if len(l.under) > 0 {
			wait = time.Until(l.under[0].due)
		}
		switch {
		case len(l.under) > 0 && wait <= 0:
			p := l.under[0]
			l.under = l.under[1:]
			l.size -= len(p.data)
			if more, err := l.hand(p); !more {
				return err
			}
		case l.ended || l.size >= maxUnderWay:
			if !l.link.pause(wait) {
				return nil
			}
		case time.Now().Before(l.sent): // then there is something under way
			if !l.link.pause(min(wait, time.Until(l.sent))) {
				return nil
			}
		default:
			if more, err := l.hear(room); !more {
				return err
			}
		}
	}
	return nil
}

// hear reads what src says next, but waits no longer than until something is due. It says whether
// there is more to do, and if not whether dst is gone.
func (l *lane) hear(room []byte) (more bool, err error) {
	if len(l.under) > 0 {
		_ = l.src.SetReadDeadline(l.under[0].due)
		l.timed = true
	} else if l.timed {
		_ = l.src.SetReadDeadline(time.Time{})
		l.timed = false
	}
	l.look()
	n, end := l.src.Read(room[:l.terms.piece()])
	l.look()
	if n > 0 {
		if more, err := l.send(parcel{data: room[:n]}); !more {
			return false, err
		}
	}
	if end == nil || errors.Is(end, os.ErrDeadlineExceeded) {
		return true, nil
	}
	l.ended = true
	return l.send(parcel{end: end})
}

// look takes over rules that have changed.
func (l *lane) look() {
	if rules := l.link.n.book.Load(); rules != l.rules {
		l.rules, l.terms = rules, rules.terms(l.from, l.to)
	}
}

// send puts a parcel on its way. One that takes no time is handed over at once, if nothing is
// before it.
func (l *lane) send(p parcel) (more bool, err error) {
	trip := l.terms.trip()
	if trip == 0 && l.terms.slow == 0 && len(l.under) == 0 {
		return l.hand(p)
	}
	now := time.Now()
	if l.sent.Before(now) {
		l.sent = now
	}
	// What was read before the rule came takes no longer than one piece: else it would be under way
	// long after the rule.
	l.sent = l.sent.Add(l.terms.sending(min(len(p.data), l.terms.piece())))
	p.due = l.sent.Add(trip) // or when what is before it is there: TCP delivers in order
	p.data = slices.Clone(p.data)
	l.under = append(l.under, p)
	l.size += len(p.data)
	return true, nil
}

// hand gives a parcel to dst once there is no silence.
func (l *lane) hand(p parcel) (more bool, err error) {
	if l.look(); l.terms.silent && !l.link.audible(l.from, l.to) {
		return false, nil
	}
	switch {
	case p.end == nil:
		_, err = l.dst.Write(p.data)
	case errors.Is(p.end, io.EOF):
		if half, ok := l.dst.(*net.TCPConn); ok {
			err = half.CloseWrite()
		}
	default:
		l.link.reset()
		return false, nil
	}
	return err == nil, err
}
