package etcdstore

import (
	"errors"
	"testing"

	"github.com/leasehold/leasehold/store"
)

func TestFirstKey(t *testing.T) {
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	s := openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	for _, key := range []string{"/a", "/p/b", "/p/c/1", "/p/c/2", "/p/d", "/q"} {
		put(t.Context(), t, s, key, "v")
	}
	for from, want := range map[string]string{"": "/p/b", "/p/": "/p/b", "/p/b\x00": "/p/c/1", "/p/c/1": "/p/c/1", "/p/c0": "/p/d", "/p/e": "", "/q": "", "/z": ""} {
		got, err := s.FirstKey(t.Context(), "/p/", from)
		if got != want || errors.Is(err, store.ErrNotFound) != (want == "") {
			t.Errorf("from %q: %q, %v: want %q", from, got, err, want)
		}
	}
	if got, err := s.FirstKey(t.Context(), "", ""); got != "/a" {
		t.Errorf("of all: %q, %v", got, err)
	}
}
