package plan

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A restart names the boot that is to end as the provider listed it, but not as it listed it before
// the agent was heard: that may be the boot before, and a provider asked to end that one would
// leave the machine as it is.
//
// proves SAFE-8
func TestRestartNamesThePresentBoot(t *testing.T) {
	for _, c := range []struct {
		name   string
		listed time.Duration // after the agent was heard
		want   string
	}{
		{"listed since", time.Second, "boot"},
		{"listed before", -time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			w.edit(func(g *store.Group) { g.Size = 1 })
			w.place("a", 0, store.Running)
			w.see("a", func(in *Instance) {
				in.Sighting.Listed, in.Sighting.BootID = true, "boot"
				in.Sighting.Begun = in.StreamSince.Add(c.listed)
			})
			w.put(w.keys.Request("r"), store.Request{
				Schema: store.Schema, ID: "r", Kind: store.RequestRestart,
				Instance: "a", By: "bob", At: w.now,
			})
			w.step()
			if r := w.instance("a").Record.Restart; r == nil || r.Listed != c.want {
				t.Errorf("it ends %+v, want boot %q", r, c.want)
			}
		})
	}
}
