package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
)

// A replica that accepts a connection and then is silent does not hold a caller indefinitely.
//
// proves WEB-4
func TestASilentReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Config{URL: "https://coord-a:7421"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		transport := c.http.Transport.(*http.Transport)
		transport.Proxy = nil
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }() // until the client gives up
			return ours, nil
		}
		if _, err := c.Shard(t.Context()); err == nil {
			t.Error("a silent replica answers")
		}
	})
}
