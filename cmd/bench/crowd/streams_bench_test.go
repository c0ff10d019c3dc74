package crowd

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/cmd/bench/crowd/wire"
)

func (*gate) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (*gate) RemoteAddr() net.Addr { return &net.TCPAddr{} }

func (*gate) SetReadDeadline(time.Time) error  { return nil }
func (*gate) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkStreams is what package wire buys: streams on few connections or on one each, by it and
// by gRPC's own client at its cheapest (no protobuf, static windows, one goroutine for each
// stream), to the same other end. One operation is a message of a stream and its answer.
func BenchmarkStreams(b *testing.B) {
	message := make([]byte, 300)
	for _, size := range []struct{ streams, connections int }{{10_000, 40}, {50_000, 40}, {5_000, 5_000}} {
		for _, kind := range []struct {
			name string
			open func(b *testing.B, connections, streams int, said *atomic.Int64) (send []func([]byte), end func())
		}{{"wire", openWire}, {"grpc", openGRPC}} {
			b.Run(fmt.Sprintf("streams=%d/connections=%d/%s", size.streams, size.connections, kind.name),
				func(b *testing.B) {
					var before, after runtime.MemStats
					runtime.GC()
					runtime.ReadMemStats(&before)
					goroutines := runtime.NumGoroutine()
					var said atomic.Int64
					send, end := kind.open(b, size.connections, size.streams, &said)
					defer end()
					sent := int64(0)
					round := func() {
						for _, s := range send {
							s(message)
						}
						for sent += int64(size.streams); said.Load() < sent; {
							runtime.Gosched()
						}
					}
					round() // the welcome
					runtime.GC()
					runtime.ReadMemStats(&after)
					goroutines = runtime.NumGoroutine() - goroutines
					b.ReportAllocs()
					used, done := processor(b), 0
					for b.Loop() {
						if done--; done <= 0 {
							round()
							done = size.streams
						}
					}
					b.ReportMetric(float64(processor(b)-used)/float64(b.N), "cpu-ns/op")
					b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/float64(size.streams),
						"B/stream")
					b.ReportMetric(float64(goroutines)/float64(size.streams), "goroutines/stream")
				})
		}
	}
}

// heard counts what is said on streams.
type heard struct{ said *atomic.Int64 }

func (h heard) Said([]byte) { h.said.Add(1) }
func (heard) Ended(error)   {}

func openWire(b *testing.B, connections, streams int, said *atomic.Int64) (send []func([]byte), end func()) {
	b.Helper()
	var work sync.WaitGroup
	var all []*wire.Conn
	ahead := sharedReadAhead
	if streams == connections {
		ahead = 0 // such a connection reads through TLS
	}
	for range connections {
		conn, err := wire.New(newGate(new(atomic.Int64)), wire.Config{
			Path: protocol.Gateway_Session_FullMethodName, Authority: "a", ReadAhead: ahead, Go: work.Go,
		})
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, conn)
	}
	for i := range streams {
		s, err := all[i%connections].Open(heard{said})
		if err != nil {
			b.Fatal(err)
		}
		send = append(send, func(message []byte) {
			if !s.Send(message) {
				b.Error("a message was not taken")
			}
		})
	}
	return send, func() {
		for _, c := range all {
			c.Close(wire.ErrClosed)
		}
		work.Wait()
	}
}

// raw passes messages on as they are.
type raw struct{}

func (raw) Name() string { return "raw" }

func (raw) Marshal(message any) (mem.BufferSlice, error) {
	bytes, _ := message.([]byte)
	return mem.BufferSlice{mem.SliceBuffer(bytes)}, nil
}

func (raw) Unmarshal(mem.BufferSlice, any) error { return nil }

func openGRPC(b *testing.B, connections, streams int, said *atomic.Int64) (send []func([]byte), end func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var work sync.WaitGroup
	var all []*grpc.ClientConn
	for range connections {
		conn, err := grpc.NewClient("passthrough:///a", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
				return newGate(new(atomic.Int64)), nil
			}),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})), grpc.WithStaticStreamWindowSize(1<<16),
			grpc.WithStaticConnWindowSize(1<<20))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, conn)
	}
	for i := range streams {
		s, err := all[i%connections].NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
			protocol.Gateway_Session_FullMethodName)
		if err != nil {
			b.Fatal(err)
		}
		work.Go(func() {
			for s.RecvMsg(nil) == nil {
				said.Add(1)
			}
		})
		send = append(send, func(message []byte) {
			if err := s.SendMsg(message); err != nil {
				b.Error(err)
			}
		})
	}
	return send, func() {
		cancel()
		for _, c := range all {
			_ = c.Close() // the streams are over
		}
		work.Wait()
	}
}
