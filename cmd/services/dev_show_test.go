package services

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// An earlier demo group gets this program if its own is gone, and nothing else changes. Groups of
// users are left alone.
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

// Dev stops only the machines on its own host. Of all others it says that they keep running, and
// how to remove them.
func TestDevSaysWhichMachinesGoOn(t *testing.T) {
	db := memstore.New(memstore.Config{})
	defer db.Close()
	w := &devWorld{store: db.Connect(), keys: store.KeysOf("default")}
	if said := w.goOn(t.Context()); said != "" {
		t.Errorf("without machines it says %q", said)
	}
	for id, of := range map[string][2]string{
		"demo-0-a": {"demo", "process"}, "web-0-b": {"web", "acme"}, "web-1-c": {"web", "acme"},
		"rack-0-d": {"rack", store.ProviderNone},
	} {
		rec := store.Instance{Schema: store.Schema, ID: id, Group: of[0], Phase: store.Running}
		rec.Spec.Provider = of[1]
		if _, err := w.store.Commit(t.Context(), store.Txn{
			Writes: []store.Write{store.Put(w.keys.Instance(id), store.Encode(rec))},
		}); err != nil {
			t.Fatal(err)
		}
	}
	const want = `machines of provider acme go on, with their workloads: 2. To remove them, start dev again with the same --providers, then:
    leasehold group delete web --confirm web --wait
machines that were set up by hand go on, with their workloads: 1. To remove them, start dev again, then for each:
    leasehold instance delete ID --confirm ID    # leasehold instance list rack shows them
`
	if said := w.goOn(t.Context()); said != want {
		t.Errorf("it says\n%s\nwant\n%s", said, want)
	}
}

// A group counts as complete by what its agents have said since this start: the status of the last
// run is of machines that are down.
func TestAGroupIsCompleteByWhatAgentsSayNow(t *testing.T) {
	db := memstore.New(memstore.Config{})
	defer db.Close()
	w := &devWorld{store: db.Connect(), keys: store.KeysOf("default")}
	put := func(key string, record any) {
		t.Helper()
		txn := store.Txn{Writes: []store.Write{store.Put(key, store.Encode(record))}}
		if _, err := w.store.Commit(t.Context(), txn); err != nil {
			t.Fatal(err)
		}
	}
	reports := func(id, boot string, healthy bool) {
		put(w.keys.Report(id), store.Report{Schema: store.Schema, Instance: id, BootID: boot, Healthy: healthy})
		put(w.keys.Alive(id), store.Alive{Schema: store.Schema, Instance: id, BootID: boot, State: store.StreamOpen})
	}
	g, err := demoGroup()
	if err != nil {
		t.Fatal(err)
	}
	g.Size = 2
	put(w.keys.Status("demo"), store.Status{Schema: store.Schema, Group: "demo", Accepted: &g, OK: true})
	for _, id := range []string{"demo-0-a", "demo-1-b"} {
		put(w.keys.Instance(id), store.Instance{
			Schema: store.Schema, ID: id, Group: "demo", Phase: store.Running, Managed: true,
		})
		reports(id, "before", true)
	}
	is := func(when string, want ...string) {
		t.Helper()
		if got := w.complete(t.Context()); !slices.Equal(got, want) {
			t.Errorf("%s: complete are %q", when, got)
		}
	}
	is("in the run before", "demo")
	v, err := w.store.Vitals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.since = v.Revision
	is("at the next start")
	reports("demo-0-a", "now", true)
	reports("demo-1-b", "now", false)
	is("with one that is not healthy yet")
	reports("demo-1-b", "now", true)
	is("with both", "demo")
}
