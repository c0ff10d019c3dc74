package crowd

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
)

const benchInterval = 10 * time.Second

// gate is the other end of a connection, which welcomes and acknowledges for next to nothing: what
// is measured is the crowd.
type gate struct {
	net.Conn
	acked   *atomic.Int64
	welcome []byte

	mu     sync.Mutex
	more   *sync.Cond
	in     []byte // what came and is no whole frame
	out    bytes.Buffer
	spoken map[uint32]uint64 // messages of each stream
	closed bool
}

func newGate(acked *atomic.Int64) *gate {
	g := &gate{acked: acked, spoken: map[uint32]uint64{}}
	g.more = sync.NewCond(&g.mu)
	welcome,
		err := proto.Marshal(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Welcome{Welcome: &protocol.Welcome{
		Replica: "a", Lease: 7, ReportInterval: durationpb.New(benchInterval),
		LeaseTtl: durationpb.New(3*benchInterval + 2*time.Second), Coordinators: []string{"a", "b"},
	}}})
	if err != nil {
		panic(err)
	}
	g.welcome = welcome
	must(http2.NewFramer(&g.out, nil).WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30}))
	must(http2.NewFramer(&g.out, nil).WriteWindowUpdate(0, 1<<30))
	return g
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (g *gate) Read(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.out.Len() == 0 && !g.closed {
		g.more.Wait()
	}
	if g.closed {
		return 0, io.EOF
	}
	return g.out.Read(p)
}

// Write answers each message: the first of a stream with a welcome, others with an acknowledgement.
func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in = append(g.in, p...)
	if bytes.HasPrefix(g.in, []byte(http2.ClientPreface)) {
		g.in = g.in[len(http2.ClientPreface):]
	}
	done := 0
	for len(g.in)-done >= 9 {
		head := g.in[done:]
		end := 9 + (int(head[0])<<16 | int(head[1])<<8 | int(head[2]))
		if len(head) < end {
			break
		}
		if http2.FrameType(head[3]) == http2.FrameData {
			g.answer(binary.BigEndian.Uint32(head[5:]))
		}
		done += end
	}
	g.in = append(g.in[:0], g.in[done:]...)
	g.more.Signal()
	return len(p), nil
}

func (g *gate) answer(stream uint32) {
	n := g.spoken[stream]
	g.spoken[stream] = n + 1
	if n == 0 {
		var block bytes.Buffer
		e := hpack.NewEncoder(&block)
		must(e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"}))
		must(e.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/grpc"}))
		must(http2.NewFramer(&g.out, nil).WriteHeaders(http2.HeadersFrameParam{
			StreamID:      stream,
			BlockFragment: block.Bytes(), EndHeaders: true,
		}))
		g.data(stream, g.welcome)
		return
	}
	// Field 3 is the acknowledgement: sequence and lease.
	ack := binary.AppendUvarint([]byte{0x08}, n)
	ack = append(ack, 0x10, 7)
	g.data(stream, append([]byte{0x1a, byte(len(ack))}, ack...))
}

func (g *gate) data(stream uint32, message []byte) {
	var head [14]byte
	head[2] = byte(5 + len(message)) // all are short
	binary.BigEndian.PutUint32(head[5:], stream)
	binary.BigEndian.PutUint32(head[10:], uint32(len(message)))
	g.out.Write(head[:])
	g.out.Write(message)
}

func (g *gate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.more.Broadcast()
	return nil
}

func (*gate) SetDeadline(time.Time) error { return nil }

// plaza is a crowd whose time is the benchmark's.
type plaza struct {
	c   *Crowd
	at  atomic.Int64
	end func()
}

func newPlaza(tb testing.TB, agents int) *plaza {
	tb.Helper()
	p := &plaza{}
	var acked atomic.Int64
	c, err := New(Config{ShardID: "s", Coordinators: []string{"a"}, Interval: benchInterval, Shared: 4}, Deps{
		Dial: func(context.Context, netip.Addr, string) (net.Conn, error) { return newGate(&acked), nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
	p.c = c
	c.now = func() time.Time { return c.started.Add(time.Duration(p.at.Load())) }
	ids := make([]string, agents)
	for i := range ids {
		ids[i] = fmt.Sprintf("group-%03d-%06d", i/1000, i)
	}
	if err := c.Add(ids); err != nil {
		tb.Fatal(err)
	}
	p.end = func() {
		c.cancel()
		for _, l := range c.loops {
			l.close()
		}
		c.work.Wait()
	}
	p.round()
	p.until(func(s *counts) uint64 { return uint64(s.registered) }, uint64(agents)/uint64(len(c.loops)))
	p.until(func(s *counts) uint64 { return s.acks }, uint64(agents)/uint64(len(c.loops)))
	return p
}

// round has everybody do what is due.
func (p *plaza) round() {
	for _, l := range p.c.loops {
		for l.someTurns() {
		}
	}
}

func (p *plaza) until(count func(*counts) uint64, each uint64) {
	for _, l := range p.c.loops {
		for {
			l.mu.Lock()
			n := count(&l.counts)
			l.mu.Unlock()
			if n >= each {
				break
			}
			runtime.Gosched()
		}
	}
}

// processor returns what the process has had of processors: others may want them too.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkReport is what a report costs a crowd, from the agent's turn to its acknowledgement,
// without the kernel's part; and what an agent takes of memory.
func BenchmarkReport(b *testing.B) {
	for _, agents := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("agents=%d", agents), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			p := newPlaza(b, agents)
			defer p.end()
			runtime.GC()
			runtime.ReadMemStats(&after)
			each := uint64(agents) / uint64(len(p.c.loops))
			rounds := uint64(1)
			b.ReportAllocs()
			done, used := 0, processor(b)
			for b.Loop() {
				if done--; done > 0 {
					continue
				}
				done = agents
				p.at.Add(int64(benchInterval))
				p.round()
				rounds++
				p.until(func(s *counts) uint64 { return s.acks }, rounds*each)
			}
			b.ReportMetric(float64(processor(b)-used)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/float64(agents),
				"B/agent")
			runtime.KeepAlive(p)
		})
	}
}

// BenchmarkEncode is what making a report costs.
func BenchmarkEncode(b *testing.B) {
	p := newPlaza(b, 4)
	defer p.end()
	l := p.c.loops[0]
	a := l.queue[0]
	b.ReportAllocs()
	n := 0
	for i := uint64(1); b.Loop(); i++ {
		n = len(l.report(a, i, p.c.started))
	}
	b.ReportMetric(float64(n), "B/report")
}
