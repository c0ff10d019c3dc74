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
	typeStream  = 3
	statusMore  = 2 // of a packet of a stream: there is more, if it has a payload
)

// frames is a connection of which go-libvirt gets whole packets alone, and none that it could not take:
//
//   - A length that no packet has would make it break down.
//   - A packet of a stream that has ended makes it wait for good, whatever becomes of the connection:
//     nobody receives it. libvirtd tells the end of a stream twice now and then.
//
// It knows whether the connection has ended, because something always reads from it.
type frames struct {
	net.Conn
	ended  atomic.Bool
	buffer []byte          // of a packet, what has not been read yet
	over   map[uint32]bool // streams that have ended, by the number of their call
}

func newFrames(conn net.Conn) *frames { return &frames{Conn: conn, over: map[uint32]bool{}} }

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
	kind, serial, status := binary.BigEndian.Uint32(packet[16:]), binary.BigEndian.Uint32(packet[20:]), binary.BigEndian.Uint32(packet[24:])
	if kind == typeStream {
		if f.over[serial] {
			return nil
		}
		if status != statusMore || n == frameHeader {
			f.over[serial] = true
		}
	}
	f.buffer = packet
	return nil
}
