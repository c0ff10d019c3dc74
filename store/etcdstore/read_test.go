package etcdstore

import "testing"

// The empty prefix is every key, of everybody.
func TestPartsOfAllKeys(t *testing.T) {
	s := openStore(t, Config{Endpoints: []string{startEtcd(t, t.TempDir(), "127.0.0.1:0").Endpoint()}})
	for _, key := range []string{"/a", "/p/b", "0"} {
		put(t.Context(), t, s, key, "v")
	}
	for from, want := range map[string]struct {
		key    string
		behind int
	}{"": {"/a", 2}, "/p/": {"/p/b", 1}, "/p/b\x00": {"0", 0}} {
		part, err := s.ListPart(t.Context(), "", from, 1, 0)
		if err != nil || len(part.KVs) != 1 || part.KVs[0].Key != want.key || part.Behind != want.behind ||
			(part.Next == "") != (want.behind == 0) {
			t.Errorf("from %q: %+v, %v: want %+v", from, part, err, want)
		}
	}
}
