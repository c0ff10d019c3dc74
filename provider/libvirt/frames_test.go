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

// A stream arrives after the reply to its call, whichever libvirtd sent first, and nothing arrives
// of a stream that has ended, or whose call failed. Other packets are passed on as they are.
func TestFrames(t *testing.T) {
	const ok, failed, event = 0, 1, 2
	reply := func(serial, status uint32) []byte { return packet(typeReply, serial, status, "answer") }
	data := func(serial uint32, text string) []byte { return packet(typeStream, serial, statusMore, text) }
	end := func(serial uint32) []byte { return packet(typeStream, serial, statusMore, "") }
	ended := func(serial uint32) []byte { return packet(typeStream, serial, ok, "") }
	news := packet(event, 0, ok, "something happened")
	for name, c := range map[string]struct{ sent, want [][]byte }{
		"in order": {[][]byte{reply(7, ok), data(7, "a"), news, data(7, "b"), end(7)}, [][]byte{
			reply(7, ok), data(7, "a"),
			news, data(7, "b"), end(7),
		}},
		"end twice": {
			[][]byte{reply(7, ok), data(7, "a"), end(7), end(7), ended(7), data(7, "c")},
			[][]byte{reply(7, ok), data(7, "a"), end(7)},
		},
		"data before the reply": {
			[][]byte{reply(6, ok), data(7, "a"), news, data(7, "b"), reply(7, ok), data(7, "c"), ended(7), end(7)},
			[][]byte{reply(6, ok), news, reply(7, ok), data(7, "a"), data(7, "b"), data(7, "c"), ended(7)},
		},
		"all before the reply": {
			[][]byte{data(7, "a"), end(7), end(7), reply(7, ok), reply(8, ok)},
			[][]byte{reply(7, ok), data(7, "a"), end(7), reply(8, ok)},
		},
		"the call failed": {
			[][]byte{data(7, "a"), reply(7, failed), end(7), reply(8, ok)},
			[][]byte{reply(7, failed), reply(8, ok)},
		},
		"of an earlier call": {
			[][]byte{reply(7, ok), reply(8, ok), data(7, "late"), end(7), data(8, "a")},
			[][]byte{reply(7, ok), reply(8, ok), data(8, "a")},
		},
	} {
		f := newFrames(fromBytes{Reader: iotest.OneByteReader(bytes.NewReader(slices.Concat(c.sent...)))})
		got, err := io.ReadAll(f)
		if want := slices.Concat(c.want...); err != nil || !bytes.Equal(got, want) || !f.ended.Load() {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	flood := slices.Repeat(data(7, string(make([]byte, 1<<20))), 5)
	f := newFrames(fromBytes{Reader: bytes.NewReader(flood)})
	if got, err := io.ReadAll(f); err == nil || len(got) > 0 {
		t.Errorf("a stream without a reply: %d bytes, %v", len(got), err)
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
