package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Sizes, in bytes.
const (
	streamWindow = 65535 // HTTP/2's default
	connWindow   = 1 << 20
	maxMessage   = 256 << 10 // the largest message that is accepted
	maxSent      = 16 << 10  // the largest message that is sent: it must fit into one frame
	maxHeld      = 1 << 20   // the total of messages that wait for the connection's window
	keptBuffer   = 64 << 10  // the write buffer that a connection keeps
)

// Reasons why a stream or a connection has ended.
var (
	ErrClosed  = errors.New("the connection is closed")
	ErrSilent  = errors.New("the connection is silent")
	ErrLeaving = errors.New("the coordinator takes no more streams on this connection")
	errTooMany = errors.New("the coordinator takes no more streams on one connection at once: " +
		"allow more, or use more connections")
)

// Config is the same for all connections.
type Config struct {
	Path      string // the method: "/package.Service/Method"
	Authority string // the :authority header
	ReadAhead int    // size of the read buffer; 0: none, for a connection that has its own
	// Go runs a function in a goroutine that the caller waits for.
	Go func(func())
}

// Conn is a connection. It is safe for concurrent use.
type Conn struct {
	cfg   Config
	raw   net.Conn
	heard atomic.Int64  // when the last data arrived, in nanoseconds of the Unix time
	over  chan struct{} // closed with the connection

	// Used by the reading goroutine alone:
	reader     *http2.Framer
	unreturned int // bytes received that were not yet returned to the window

	mu      sync.Mutex
	out     outgoing // to be written
	spare   []byte
	writing bool
	writer  *http2.Framer // frames into out
	headers *hpack.Encoder
	block   bytes.Buffer // encoded headers
	message []byte       // buffer for a framed message

	streams map[uint32]*Stream
	next    uint32 // ID of the next stream
	most    uint32 // streams at once
	window  int64  // bytes that may be sent
	initial int64  // initial window of a new stream
	held    []held
	holding int // bytes in held

	leaving bool // the connection accepts no new streams
	err     error
	pinged  time.Time     // when an unanswered ping was sent; zero: there is none
	frozen  chan struct{} // closed by Thaw; nil: it is not frozen
}

// held is a message that waits for the connection's window.
type held struct {
	stream *Stream
	data   []byte
	last   bool
}

// outgoing is what a framer writes into.
type outgoing []byte

func (o *outgoing) Write(p []byte) (int, error) {
	*o = append(*o, p...)
	return len(p), nil
}

// New exchanges the HTTP/2 preface and settings. The caller bounds its time by closing the
// connection or by a deadline, which New clears when it succeeds. After an error the caller closes
// the connection.
func New(raw net.Conn, cfg Config) (*Conn, error) {
	var from io.Reader = raw
	if cfg.ReadAhead > 0 {
		from = newAhead(raw, cfg.ReadAhead)
	}
	c := &Conn{
		cfg: cfg, raw: raw, reader: http2.NewFramer(nil, from), over: make(chan struct{}),
		streams: map[uint32]*Stream{}, next: 1, most: 1<<31 - 1, window: streamWindow, initial: streamWindow,
	}
	c.reader.SetReuseFrames()
	c.reader.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.writer = http2.NewFramer(&c.out, nil)
	c.headers = hpack.NewEncoder(&c.block)
	c.out.Write([]byte(http2.ClientPreface)) //nolint:errcheck // memory takes everything, here and below
	c.must(c.writer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}))
	c.must(c.writer.WriteWindowUpdate(0, connWindow-streamWindow))
	greeting := c.out
	c.out = nil
	if _, err := raw.Write(greeting); err != nil {
		return nil, fmt.Errorf("greet: %w", err)
	}
	first, err := c.reader.ReadFrame()
	if err != nil {
		return nil, fmt.Errorf("HTTP/2 settings: %w", err)
	}
	settings, ok := first.(*http2.SettingsFrame)
	if !ok || settings.IsAck() {
		return nil, fmt.Errorf("HTTP/2 settings: the first frame is %s", first.Header())
	}
	c.mu.Lock()
	err = c.settle(settings)
	c.mu.Unlock()
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, fmt.Errorf("greeting: %w", err)
	}
	c.hears()
	cfg.Go(c.read)
	c.mu.Lock()
	c.kick() // the settings' acknowledgement
	c.mu.Unlock()
	return c, nil
}

// must records a framing error. c.mu must be held.
func (c *Conn) must(err error) {
	if err != nil && c.err == nil {
		c.end(fmt.Errorf("write frame: %w", err))
	}
}

// Ready reports whether streams can be opened.
func (c *Conn) Ready() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.leaving
}

// Streams returns the number of open streams.
func (c *Conn) Streams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams)
}

// Close closes the connection. The listeners of its streams get the reason.
func (c *Conn) Close(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(why)
}

// Break resets the connection without a goodbye, as a machine that vanishes does.
func (c *Conn) Break(why error) {
	if tcp, ok := bare(c.raw).(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // otherwise the kernel would close it in order
	}
	c.Close(why)
}

// bare returns the connection below TLS.
func bare(c net.Conn) net.Conn {
	for {
		within, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = within.NetConn()
	}
}

// end closes the connection once. The reading goroutine informs the listeners. c.mu must be held.
func (c *Conn) end(why error) {
	if c.err != nil {
		return
	}
	c.err = why
	close(c.over)
	_ = bare(c.raw).Close() // TLS's close_notify could block for ever if the other end does not read
}

// Tend sends keepalives as gRPC does: after so much silence it sends a ping, and closes the
// connection if no answer arrives in time. It must be called about once a second.
func (c *Conn) Tend(now time.Time, quiet, patience time.Duration) {
	heard := time.Unix(0, c.heard.Load())
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil || c.frozen != nil:
	case !c.pinged.IsZero() && !heard.Before(c.pinged):
		c.pinged = time.Time{}
	case c.pinged.IsZero() && now.Sub(heard) >= quiet:
		c.pinged = now
		c.must(c.writer.WritePing(false, [8]byte{'a', 'l', 'i', 'v', 'e', '?'}))
		c.kick()
	case !c.pinged.IsZero() && now.Sub(c.pinged) >= patience:
		c.end(ErrSilent)
	}
}

// Freeze does to the connection what stopping the process would: nothing is read or written any
// more, and no call fails.
func (c *Conn) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen == nil {
		c.frozen = make(chan struct{})
	}
}

// Thaw resumes a frozen connection. What arrived meanwhile is read now.
func (c *Conn) Thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen == nil {
		return
	}
	close(c.frozen)
	c.frozen = nil
	c.pinged = time.Time{}
	c.hears()
	c.kick()
}

func (c *Conn) hears() { c.heard.Store(time.Now().UnixNano()) }

// kick starts the writing goroutine if something waits. c.mu must be held.
func (c *Conn) kick() {
	if len(c.out) > 0 && !c.writing && c.err == nil && c.frozen == nil {
		c.writing = true
		c.cfg.Go(c.write)
	}
}

// write writes until nothing is left.
func (c *Conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) > 0 && c.err == nil && c.frozen == nil {
		batch := []byte(c.out)
		c.out, c.spare = c.spare[:0], nil
		c.mu.Unlock()
		_, err := c.raw.Write(batch)
		c.mu.Lock()
		if err != nil {
			c.end(err)
		}
		if cap(batch) <= keptBuffer && cap(batch) > cap(c.spare) {
			c.spare = batch
		}
	}
	c.writing = false
}
