package libvirt

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"testing/iotest"
)

// packet is one of libvirt's.
func packet(kind, serial, status uint32, payload string) []byte {
	var b bytes.Buffer
	for _, n := range []uint32{uint32(frameHeader + len(payload)), 0x20008086, 1, 209, kind, serial, status} {
		_ = binary.Write(&b, binary.BigEndian, n)
	}
	b.WriteString(payload)
	return b.Bytes()
}

// fromBytes is a connection on which bytes come one by one.
type fromBytes struct {
	net.Conn
	io.Reader
}

func (f fromBytes) Read(b []byte) (int, error) { return f.Reader.Read(b) }

// What comes of a stream after its end is left out; other packets are passed on as they are.
func TestFrames(t *testing.T) {
	const reply, ok = 1, 0
	var want, sent []byte
	add := func(arrives bool, packets ...[]byte) {
		for _, p := range packets {
			sent = append(sent, p...)
			if arrives {
				want = append(want, p...)
			}
		}
	}
	add(true, packet(reply, 7, ok, "answer"), packet(typeStream, 7, statusMore, "data"), packet(typeStream, 8, statusMore, "of another"))
	add(true, packet(typeStream, 7, statusMore, ""))
	add(false, packet(typeStream, 7, statusMore, ""), packet(typeStream, 7, ok, ""))
	add(true, packet(typeStream, 8, ok, ""), packet(reply, 9, ok, ""))
	add(false, packet(typeStream, 8, statusMore, "late"))
	f := newFrames(fromBytes{Reader: iotest.OneByteReader(bytes.NewReader(sent))})
	got, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(got, want) || !f.ended.Load() {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestWhatIsNoPacketEndsTheConnection(t *testing.T) {
	good := packet(1, 7, 0, "answer")
	for what, sent := range map[string][]byte{
		"too short":  {0, 0, 0, 27},
		"zero":       {0, 0, 0, 0},
		"too long":   {0xff, 0xff, 0xff, 0xff},
		"cut off":    good[:len(good)-1],
		"after good": slices.Concat(good, []byte("HTTP/1.1 400 Bad Request")),
	} {
		f := newFrames(fromBytes{Reader: bytes.NewReader(sent)})
		if got, err := io.ReadAll(f); err == nil || !f.ended.Load() || len(got) != 0 && what != "after good" {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}
