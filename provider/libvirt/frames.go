package libvirt

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync/atomic"
)

// libvirt's packets: a length, which counts itself, a header of six numbers, and a payload.
const (
	frameHeader = 28
	maxFrame    = 64 << 20 // libvirt's own bound is 32 MiB
	typeReply   = 1
	typeStream  = 3
	statusOK    = 0
	statusMore  = 2       // of a packet of a stream: there is more, if it has a payload
	maxEarly    = 4 << 20 // bytes of a stream before the reply to its call
)

// frames is a connection from which go-libvirt gets whole packets only, and none that it cannot
// handle:
//
//   - A length that no packet has would make it break down.
//   - A packet of a stream that has ended makes it wait forever, even if the connection ends,
//     because nothing receives it. libvirtd sometimes reports the end of a stream twice.
//   - A packet of a stream before the reply to its call is taken for the reply, and the reply for
//     the end of the stream: the rest of the stream then comes too late. libvirtd's threads send
//     both, in either order. So the early ones wait for the reply.
//
// One call at a time uses a connection, and the numbers of calls grow. It knows whether the
// connection has ended, because something always reads from it.
type frames struct {
	net.Conn
	ended   atomic.Bool
	buffer  []byte // of packets, what has not been read yet
	replied uint32 // number of the call that was replied to last
	over    bool   // its stream has ended, or it has none
	early   []byte // of the stream of the next call: whole packets, one after the other
}

func newFrames(conn net.Conn) *frames { return &frames{Conn: conn, over: true} }

func (f *frames) Read(b []byte) (int, error) {
	for len(f.buffer) == 0 {
		if err := f.next(); err != nil {
			f.ended.Store(true)
			return 0, err
		}
	}
	n := copy(b, f.buffer)
	f.buffer = f.buffer[n:]
	return n, nil
}

// next reads a packet into the buffer, or none if it is one to be left out.
func (f *frames) next() error {
	var length [4]byte
	if _, err := io.ReadFull(f.Conn, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n < frameHeader || n > maxFrame {
		return fmt.Errorf("a packet of %d bytes: this is not libvirt's protocol", n)
	}
	packet := make([]byte, n)
	copy(packet, length[:])
	if _, err := io.ReadFull(f.Conn, packet[len(length):]); err != nil {
		return err
	}
	kind, serial := binary.BigEndian.Uint32(packet[16:]), binary.BigEndian.Uint32(packet[20:])
	status := binary.BigEndian.Uint32(packet[24:])
	switch {
	case kind == typeReply:
		f.buffer, f.replied, f.over = packet, serial, status != statusOK
		early := f.early
		for f.early = nil; len(early) > 0; {
			n := binary.BigEndian.Uint32(early)
			f.pass(early[:n:n])
			early = early[n:]
		}
	case kind != typeStream:
		f.buffer = packet
	case serial > f.replied && len(f.early)+len(packet) > maxEarly:
		return fmt.Errorf("%d bytes of a stream, and no reply to its call", len(f.early)+len(packet))
	case serial > f.replied:
		f.early = append(f.early, packet...)
	default:
		f.pass(packet)
	}
	return nil
}

// pass hands on a packet of a stream whose call has been replied to, unless nothing waits for it.
func (f *frames) pass(packet []byte) {
	serial, status := binary.BigEndian.Uint32(packet[20:]), binary.BigEndian.Uint32(packet[24:])
	if serial != f.replied || f.over {
		return
	}
	f.over = status != statusMore || len(packet) == frameHeader
	f.buffer = append(f.buffer, packet...)
}
