package coordinator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/store"
)

type keyring struct{ ring encryption.Ring }

func (k keyring) Ring() encryption.Ring              { return k.ring }
func (keyring) Follow(ctx context.Context, _ func()) { <-ctx.Done() }

// What a workload printed of its secrets before its machine died does not reach the journal,
// whether it got them in its environment or in a file.
//
// proves SEC-6, DET-19
func TestConsoleShowsNoSecrets(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		keys := keyring{encryption.Ring{}.With(encryption.NewKey())}
		w.start("one", func(_ *coordinator.Config, deps *coordinator.Deps) { deps.Secrets = keys })
		id := w.shard().ID
		for name, value := range map[string]string{"db": "hunter2hunter2", "key": "swordfish99"} {
			s, err := keys.ring.Seal(id, store.Secret{Name: name, Version: 1}, []byte(value))
			if err != nil {
				t.Fatal(err)
			}
			w.put(w.keys.Secret(name), store.Encode(s))
		}
		g := w.group("web", 1)
		g.Workload.Run, g.Secrets = []string{"serve"}, map[string]string{"DB": "db"}
		f := store.File{Path: "/etc/key", Secret: "key", Mode: "0600"}
		g.Files = []store.File{f}
		w.apply(g)
		ids := w.up(1)
		w.provider.Print(ids[0], "panic: db=hunter2hunter2 key=swordfish99")
		w.provider.Crash(ids[0], "exit 1")
		w.until(2*time.Minute, "it is replaced", func() bool { return w.settled(1) && !slices.Contains(w.ids(), ids[0]) })
		if kept := w.consoles(); len(kept) != 1 || kept[0].Console != "panic: db=[secret db] key=[secret key]" {
			t.Errorf("kept are %+v", kept)
		}
	})
}
