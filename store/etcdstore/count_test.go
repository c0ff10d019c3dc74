package etcdstore

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

func TestCount(t *testing.T) {
	st := openStore(t, Config{Endpoints: []string{startEtcd(t, t.TempDir(), "127.0.0.1:0").Endpoint()}})
	if _, err := st.Commit(t.Context(), store.Txn{Writes: []store.Write{store.Put("/a/1", nil), store.Put("/a/2", nil), store.Put("/b", nil)}}); err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]int{"": 3, "/a/": 2, "/c": 0} {
		if got, err := st.Count(t.Context(), prefix); err != nil || got != want {
			t.Errorf("below %q: %d, %v; want %d", prefix, got, err, want)
		}
	}
}
