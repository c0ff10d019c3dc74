package embedetcd

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// limit bounds what must not hang. Nothing here takes that long unless it is broken.
const limit = 60 * time.Second

func start(t *testing.T, dir, listen string) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, err := Start(ctx, Config{DataDir: dir, Listen: listen, NoSync: true})
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

func client(t *testing.T, s *Server) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRestartOnTheSameDataAndAnotherPort(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	first := start(t, dir, "127.0.0.1:0")
	c := client(t, first)
	put, err := c.Put(ctx, "key", "value")
	if err != nil {
		t.Fatal(err)
	}
	// A watch that is still open must not hold up Close.
	c.Watch(ctx, "key")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := start(t, dir, "127.0.0.1:0")
	got, err := client(t, second).Get(ctx, "key")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "value" {
		t.Fatalf("after the restart: %v", got.Kvs)
	}
	if got.Header.ClusterId != put.Header.ClusterId || got.Header.MemberId != put.Header.MemberId {
		t.Error("the restarted member is another one")
	}
	members, err := client(t, second).MemberList(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if urls := members.Members[0].ClientURLs; len(urls) != 1 || urls[0] != "http://"+second.Endpoint() {
		t.Errorf("advertises %v, serves %s", urls, second.Endpoint())
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()

	inUse := t.TempDir()
	start(t, inUse, "127.0.0.1:0")

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		cfg  Config
		says []string
	}{
		"port taken": {
			Config{DataDir: t.TempDir(), Listen: occupied.Addr().String()},
			[]string{occupied.Addr().String(), "taken", "give another address"},
		},
		"dir in use": {
			Config{DataDir: inUse, Listen: "127.0.0.1:0"},
			[]string{inUse, "in use by process", "give another directory"},
		},
		"file in way": {
			Config{DataDir: filepath.Join(file, "data"), Listen: "127.0.0.1:0"},
			[]string{"a file is in the way"},
		},
		"no dir":     {Config{Listen: "127.0.0.1:0"}, []string{"no data directory"}},
		"no listen":  {Config{DataDir: t.TempDir()}, []string{"host:port"}},
		"host name":  {Config{DataDir: t.TempDir(), Listen: "example.com:1"}, []string{"IP address"}},
		"foreign IP": {Config{DataDir: t.TempDir(), Listen: "192.0.2.1:1"}, []string{"does not have the address"}},
		"read-only tree": {
			Config{DataDir: "/proc/leasehold", Listen: "127.0.0.1:0"},
			[]string{"/proc/leasehold", "give another directory"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			s, err := Start(ctx, c.cfg)
			if err == nil {
				s.Close()
				t.Fatal("it started")
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than one line", err)
			}
		})
	}
}

func TestDatabaseLockedByAForeignEtcd(t *testing.T) {
	dir := t.TempDir()
	if err := start(t, dir, "127.0.0.1:0").Close(); err != nil {
		t.Fatal(err)
	}
	db, err := os.OpenFile(dbPath(dir), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := syscall.Flock(int(db.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Config{DataDir: dir, Listen: "127.0.0.1:0"})
	if err == nil || !strings.Contains(err.Error(), "in use by another etcd") {
		t.Fatalf("got %v", err)
	}
	// A start that failed leaves the directory free.
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	start(t, dir, "127.0.0.1:0")
}
