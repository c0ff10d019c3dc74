package wire

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// prefix precedes every message: a flag for compression, and the length.
const prefix = 5

// Listener receives what arrives on a stream.
type Listener interface {
	// Said is called with a message. Its bytes are valid until Said returns.
	Said(message []byte)
	// Ended is called when the stream is over; err is nil if the other end closed it in order.
	Ended(err error)
}

// Stream is one stream of a connection.
type Stream struct {
	conn     *Conn
	id       uint32
	listener Listener

	// Guarded by the connection's lock:
	window int64 // bytes that may be sent
	closed bool  // no more may be sent

	// Used by the reading goroutine alone:
	unreturned int    // bytes received that were not yet returned to the window
	partial    []byte // an incomplete message
}

// Open opens a stream. Its listener may be called before Open returns.
func (c *Conn) Open(listener Listener) (*Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return nil, c.err
	case c.leaving || c.next > 1<<31-3:
		return nil, ErrLeaving
	case len(c.streams) >= int(c.most):
		return nil, fmt.Errorf("%w (%d)", errTooMany, c.most)
	}
	s := &Stream{conn: c, id: c.next, listener: listener, window: c.initial}
	c.block.Reset()
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: c.cfg.Path},
		{Name: ":authority", Value: c.cfg.Authority},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "user-agent", Value: "leasehold-bench"},
		{Name: "te", Value: "trailers"},
	} {
		c.must(c.headers.WriteField(f))
	}
	c.must(c.writer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: s.id, BlockFragment: c.block.Bytes(),
		EndHeaders: true,
	}))
	if c.err != nil {
		return nil, c.err
	}
	c.next += 2
	c.streams[s.id] = s
	c.kick()
	return s, nil
}

// Send sends a message and does not keep it. It returns false, and sends nothing, if the other end
// does not read or the stream is over.
func (s *Stream) Send(message []byte) bool { return s.send(message, false) }

// SendLast sends a message and closes the sending side.
func (s *Stream) SendLast(message []byte) bool { return s.send(message, true) }

func (s *Stream) send(message []byte, last bool) bool {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int64(prefix + len(message))
	if c.err != nil || s.closed || n > maxSent || n > s.window || c.holding+int(n) > maxHeld {
		return false
	}
	s.window -= n
	s.closed = last
	c.message = append(c.message[:0], 0)
	c.message = binary.BigEndian.AppendUint32(c.message, uint32(len(message)))
	c.message = append(c.message, message...)
	if len(c.held) > 0 || n > c.window {
		c.held = append(c.held, held{stream: s, data: append([]byte(nil), c.message...), last: last})
		c.holding += int(n)
		return true
	}
	c.window -= n
	c.must(c.writer.WriteData(s.id, last, c.message))
	c.kick()
	return true
}

// release sends messages that fit into the connection's window again. c.mu must be held.
func (c *Conn) release() {
	for len(c.held) > 0 {
		h := c.held[0]
		if c.streams[h.stream.id] == h.stream { // otherwise it was cancelled
			if int64(len(h.data)) > c.window {
				return
			}
			c.window -= int64(len(h.data))
			c.must(c.writer.WriteData(h.stream.id, h.last, h.data))
		}
		c.holding -= len(h.data)
		c.held[0] = held{}
		c.held = c.held[1:]
	}
	c.held = nil
}

// Cancel ends the stream at once. Its listener is not called any more.
func (s *Stream) Cancel() {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s.closed = true
	if c.streams[s.id] != s {
		return
	}
	delete(c.streams, s.id)
	if c.err == nil {
		c.must(c.writer.WriteRSTStream(s.id, http2.ErrCodeCancel))
		c.kick()
	}
}
