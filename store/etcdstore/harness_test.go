package etcdstore

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/store/embedetcd"
)

// limit bounds what must not hang. Nothing here takes that long unless it is broken.
const limit = 4 * time.Minute

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Started once for each process by packages that an embedded etcd links.
		goleak.IgnoreAnyFunction("gopkg.in/natefinch/lumberjack%2ev2.(*Logger).millRun"),
		// Members of an etcd cluster leave idle HTTP/1 connections to each other open. The store
		// speaks no HTTP/1.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
		goleak.IgnoreAnyFunction("net/http.(*connReader).backgroundRead"),
	)
}

// startEtcd starts a member on a data directory, at an address; port 0 takes a free one.
func startEtcd(t testing.TB, dir, listen string) *embedetcd.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	server, err := embedetcd.Start(ctx, embedetcd.Config{DataDir: dir, Listen: listen, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// openStore opens a store that the end of the test closes.
func openStore(t testing.TB, cfg Config) *Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s, err := Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// eventually polls until it is so, or fails.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	deadline := time.After(limit)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !so() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("not so after %s: %s", limit, what)
		}
	}
}
