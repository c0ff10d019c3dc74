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
	streamWindow = 65535 // which every HTTP/2 stream has, if nothing is said
	connWindow   = 1 << 20
	mostMessage  = 256 << 10 // of a message that comes
	mostSent     = 16 << 10  // of one that is sent: a frame takes no more
	mostHeld     = 1 << 20   // of messages that wait for the connection's window
	keptBuffer   = 64 << 10  // of a connection, for the next write
)

// Why a stream or a connection is no more.
var (
	ErrClosed  = errors.New("the connection is closed")
	ErrSilent  = errors.New("the connection is silent")
	ErrLeaving = errors.New("the coordinator takes no more streams on this connection")
	errTooMany = errors.New("the coordinator takes no more streams on one connection at once: allow more, or use more connections")
)

// Config is what all connections have in common.
type Config struct {
	Path      string // of the method: "/package.Service/Method"
	Authority string // whom it is asked of
	ReadAhead int    // bytes that are read at once; 0: as they come, which is for a connection that reads ahead itself
	// Go runs a function in a goroutine that is waited for.
	Go func(func())
}

// Conn is a connection. It is safe for concurrent use.
type Conn struct {
	cfg   Config
	raw   net.Conn
	heard atomic.Int64  // when anything last came, in nanoseconds of the Unix time
	over  chan struct{} // closed with the connection

	// Of the goroutine that reads:
	reader     *http2.Framer
	unreturned int // bytes that came and do not count for the window yet

	mu      sync.Mutex
	out     outgoing // what is to be written
	spare   []byte
	writing bool
	writer  *http2.Framer // into out
	headers *hpack.Encoder
	block   bytes.Buffer // of headers
	message []byte       // as it is framed

	streams map[uint32]*Stream
	next    uint32 // the next stream's
	most    uint32 // streams at once
	window  int64  // what may be sent
	initial int64  // of a new stream's window
	held    []held
	holding int // bytes in held

	leaving bool // no new streams
	err     error
	pinged  time.Time     // a ping that is not answered; zero: none is awaited
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

// New greets the coordinator at the other end of a connection, and returns when it has greeted
// back. Until then the caller bounds the time, by closing the connection or by a deadline, which is
// lifted then. If it fails, the connection is the caller's to close.
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
		return nil, fmt.Errorf("no greeting: %w", err)
	}
	settings, is := first.(*http2.SettingsFrame)
	if !is || settings.IsAck() {
		return nil, fmt.Errorf("no greeting: the first frame is %s", first.Header())
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

// must takes note of a frame that could not be made. The caller has the lock.
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

// Streams is how many there are.
func (c *Conn) Streams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams)
}

// Close ends the connection with all of its streams, whose listeners are told why.
func (c *Conn) Close(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(why)
}

// Break ends the connection as a machine does that is gone: with a reset, and no word.
func (c *Conn) Break(why error) {
	if tcp, is := bare(c.raw).(*net.TCPConn); is {
		_ = tcp.SetLinger(0) // else it ends in order
	}
	c.Close(why)
}

// bare is a connection without what secures it.
func bare(c net.Conn) net.Conn {
	for {
		within, is := c.(interface{ NetConn() net.Conn })
		if !is {
			return c
		}
		c = within.NetConn()
	}
}

// end closes the connection, once. The goroutine that reads tells the listeners. The caller has the
// lock.
func (c *Conn) end(why error) {
	if c.err != nil {
		return
	}
	c.err = why
	close(c.over)
	_ = bare(c.raw).Close() // TLS's own goodbye could wait for ever for an end that does not read
}

// Tend keeps the connection, as gRPC does: when nothing has come for so long it asks for a sign of
// life, and closes the connection if there is none in the time after that. It is to be called about
// once a second.
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

// Freeze is what happens to the connection of a process that is stopped: nothing is read any more
// and nothing written, no call fails.
func (c *Conn) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen == nil {
		c.frozen = make(chan struct{})
	}
}

// Thaw lets it go on. What came meanwhile is heard now.
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

// kick has what is to be written written. The caller has the lock.
func (c *Conn) kick() {
	if len(c.out) > 0 && !c.writing && c.err == nil && c.frozen == nil {
		c.writing = true
		c.cfg.Go(c.write)
	}
}

// write writes until there is nothing left.
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
