package plan

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Where a machine is may be known only after its agent has registered, may change with a boot, and
// is not known of a machine that was adopted: the provider's Lists tell.
//
// proves DET-12
func TestWhereAMachineIsIsFollowed(t *testing.T) {
	for _, c := range []struct {
		name, had, listed, want string
		down, told              bool
	}{
		{name: "not known yet", listed: "10.0.0.1", want: "10.0.0.1"},
		{name: "known", had: "10.0.0.1", listed: "10.0.0.1"},
		{name: "another one", had: "10.0.0.1", listed: "10.0.0.2", want: "10.0.0.2", told: true},
		{name: "not said", had: "10.0.0.1"},
		{name: "down", had: "10.0.0.1", listed: "10.0.0.2", down: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 1 })
			w.place("a", 0, store.Running, func(r *store.Instance) { r.Address = c.had })
			w.knows["a"] = append(w.knows["a"], func(in *Instance) {
				in.Sighting = Sighting{Begun: w.now, Listed: true, Address: c.listed, Down: c.down, Times: 1, Since: w.now}
			})
			found := ""
			for _, a := range Compute(w.snapshot(), w.now).Actions {
				if a.Instance != "a" || a.Rule != "DET-12" {
					continue
				}
				v, err := store.Decode[store.Instance](store.KV{Key: a.Writes[0].Key, Value: a.Writes[0].Value})
				if err != nil {
					t.Fatal(err)
				}
				if found = v.Record.Address; a.NoJournal == c.told || v.Record.Phase != store.Running {
					t.Errorf("in the journal: %t; %+v", !a.NoJournal, v.Record)
				}
			}
			if found != c.want {
				t.Errorf("recorded at %q, want %q", found, c.want)
			}
		})
	}
}
