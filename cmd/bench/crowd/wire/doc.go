// Package wire is the client side of gRPC streams, for a hundred thousand of them in one process.
//
//	conn.go    a connection: writing, and its end
//	read.go    reading
//	stream.go  one stream of a connection
//
// The client of google.golang.org/grpc needs two goroutines and 10 KiB for each stream, five
// goroutines for each connection, and six times the processor time for a message
// (BenchmarkStreams). A bench that shares its processors with what it measures cannot afford that.
// A gateway receives the same from both: both send the frames of golang.org/x/net/http2, and this
// package is tested against gRPC's own server.
//
// # Invariants
//
//   - A connection has one goroutine that reads, and one that writes while it has something to
//     write. A stream has none.
//   - A [Listener] is called by the goroutine that reads, never with a lock held, and for the last
//     time by Ended. After Cancel it may be called once more, where it was being called.
//   - Flow control is respected: what does not fit into a stream's window is not sent, and Send
//     reports that.
//
// # What it does not do
//
// It neither dials nor adds TLS: the caller passes an open connection. It calls one bidirectional
// streaming method, and compresses nothing.
package wire
