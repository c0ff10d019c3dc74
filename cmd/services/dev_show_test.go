package services

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// A demo group of before gets this program if its own is gone, and nothing else changes. Groups of
// people are left alone.
func TestTheDemoGroupFollowsTheProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(t.TempDir(), "leasehold")
	for name, test := range map[string]struct {
		run  []string
		want string
	}{
		"gone":     {[]string{gone, "demo-web", "--port", "${port}"}, self},
		"there":    {[]string{"/bin/sh", "demo-web", "--port", "${port}"}, "/bin/sh"},
		"people's": {[]string{gone, "serve"}, gone},
	} {
		db := memstore.New(memstore.Config{})
		defer db.Close()
		w := &devWorld{store: db.Connect(), keys: store.KeysOf("default")}
		g, err := demoGroup()
		if err != nil {
			t.Fatal(err)
		}
		g.Size, g.Workload.Run = 5, test.run
		if err := w.begin(t.Context(), false, []store.Group{g}); err != nil {
			t.Fatal(err)
		}
		if err := w.begin(t.Context(), false, nil); err != nil {
			t.Fatal(err)
		}
		kv, err := w.store.Get(t.Context(), w.keys.Group(demoName))
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.Decode[store.Group](kv)
		if err != nil || got.Record.Size != 5 || got.Record.Workload.Run[0] != test.want {
			t.Errorf("%s: %v, %+v", name, err, got.Record.Workload.Run)
		}
	}
}
