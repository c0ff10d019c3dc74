package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
)

func newAhead(from io.Reader, size int) io.Reader { return bufio.NewReaderSize(from, size) }

// read reads frames until the connection ends, and gives the remaining streams the reason.
func (c *Conn) read() {
	for {
		frame, err := c.reader.ReadFrame()
		if err == nil && c.thawed() {
			c.hears()
			err = c.hear(frame)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = ErrClosed
			}
			c.Close(err)
			break
		}
	}
	c.mu.Lock()
	err, rest := c.err, c.streams
	c.streams, c.held, c.out, c.spare = map[uint32]*Stream{}, nil, nil, nil
	for _, s := range rest {
		s.closed = true
	}
	c.mu.Unlock()
	for _, s := range rest {
		s.listener.Ended(err)
	}
}

// thawed waits while the connection is frozen, and reports whether it is still open.
func (c *Conn) thawed() bool {
	for {
		c.mu.Lock()
		frozen, over := c.frozen, c.err != nil
		c.mu.Unlock()
		if over || frozen == nil {
			return !over
		}
		select {
		case <-frozen:
		case <-c.over:
		}
	}
}

// hear handles a frame. An error ends the connection.
func (c *Conn) hear(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.DataFrame:
		return c.hearData(f)
	case *http2.MetaHeadersFrame:
		c.hearHeaders(f)
		return nil
	case *http2.RSTStreamFrame:
		c.finish(f.StreamID, fmt.Errorf("%s: the stream was reset: %s", word(codes.Unavailable), f.ErrCode))
		return nil
	case *http2.GoAwayFrame:
		c.hearGoAway(f)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			if err := c.settle(f); err != nil {
				return err
			}
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			c.must(c.writer.WritePing(true, f.Data))
		}
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.window += int64(f.Increment)
			c.release()
		} else if s := c.streams[f.StreamID]; s != nil {
			s.window += int64(f.Increment)
		}
	}
	c.kick()
	return nil
}

// settle applies the other end's settings. c.mu must be held.
func (c *Conn) settle(f *http2.SettingsFrame) error {
	err := f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			c.most = s.Val
		case http2.SettingInitialWindowSize:
			for _, stream := range c.streams {
				stream.window += int64(s.Val) - c.initial
			}
			c.initial = int64(s.Val)
		case http2.SettingHeaderTableSize:
			c.headers.SetMaxDynamicTableSizeLimit(s.Val)
		default: // irrelevant for so few bytes sent
		}
		return s.Valid()
	})
	if err == nil {
		c.must(c.writer.WriteSettingsAck())
	}
	return err
}

// hearData returns the flow-control windows, and cuts messages out of the data.
func (c *Conn) hearData(f *http2.DataFrame) error {
	n := int(f.Length)
	c.mu.Lock()
	s := c.streams[f.StreamID]
	if c.unreturned += n; c.unreturned >= connWindow/2 {
		c.must(c.writer.WriteWindowUpdate(0, uint32(c.unreturned)))
		c.unreturned = 0
	}
	if s != nil {
		if s.unreturned += n; s.unreturned >= streamWindow/2 {
			c.must(c.writer.WriteWindowUpdate(s.id, uint32(s.unreturned)))
			s.unreturned = 0
		}
	}
	c.kick()
	c.mu.Unlock()
	if s == nil {
		return nil // the stream was cancelled
	}
	data := f.Data()
	if len(s.partial) > 0 {
		data = append(s.partial, data...)
		s.partial = nil
	}
	for len(data) >= prefix {
		length := binary.BigEndian.Uint32(data[1:])
		if data[0] != 0 || length > maxMessage {
			return fmt.Errorf("a message of %d bytes, compressed as %d", length, data[0])
		}
		end := prefix + int(length)
		if len(data) < end {
			break
		}
		s.listener.Said(data[prefix:end])
		data = data[end:]
	}
	if len(data) > 0 {
		s.partial = append([]byte(nil), data...) // the frame's memory is reused
	}
	if f.StreamEnded() {
		c.finish(f.StreamID, fmt.Errorf("%s: the stream ended without a status", word(codes.Internal)))
	}
	return nil
}

// hearHeaders handles headers and trailers.
func (c *Conn) hearHeaders(f *http2.MetaHeadersFrame) {
	if !f.StreamEnded() {
		if status := f.PseudoValue("status"); status != "200" && status != "" {
			c.finish(f.StreamID, fmt.Errorf("%s: HTTP status %s", word(codes.Unavailable), status))
		}
		return
	}
	code, message := "", ""
	for _, h := range f.RegularFields() {
		switch h.Name {
		case "grpc-status":
			code = h.Value
		case "grpc-message":
			message = h.Value
		}
	}
	if code == "0" {
		c.finish(f.StreamID, nil)
		return
	}
	n, err := strconv.ParseUint(code, 10, 8)
	if err != nil {
		n = uint64(codes.Unknown)
	}
	if plain, err := url.PathUnescape(message); err == nil {
		message = plain
	}
	c.finish(f.StreamID, fmt.Errorf("%s: %s", word(codes.Code(n)), message))
}

func word(c codes.Code) string { return strings.ToLower(c.String()) }

// hearGoAway ends the streams that the other end no longer serves.
func (c *Conn) hearGoAway(f *http2.GoAwayFrame) {
	c.mu.Lock()
	c.leaving = true
	var unserved []uint32
	for id := range c.streams {
		if id > f.LastStreamID {
			unserved = append(unserved, id)
		}
	}
	c.mu.Unlock()
	for _, id := range unserved {
		c.finish(id, ErrLeaving)
	}
}

// finish ends a stream, if it is still open.
func (c *Conn) finish(id uint32, err error) {
	c.mu.Lock()
	s := c.streams[id]
	delete(c.streams, id)
	if s != nil {
		s.closed = true
	}
	c.mu.Unlock()
	if s != nil {
		s.listener.Ended(err)
	}
}
