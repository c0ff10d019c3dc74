package gateway_test

import (
	"testing"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// An agent's statement that its workload has stopped is recorded for the record that it names, and
// only if no provider reports on the machine.
//
// proves PROV-9
func TestAnAgentConfirmsThatItHasStopped(t *testing.T) {
	for name, c := range map[string]struct {
		provider string
		off      int64 // what it says, less the record's revision
		silent   bool  // it says nothing
		want     bool
	}{
		"set up by hand":     {provider: store.ProviderNone, want: true},
		"of an older":        {provider: store.ProviderNone, off: -1},
		"of a later one":     {provider: store.ProviderNone, off: 1},
		"not yet":            {provider: store.ProviderNone, silent: true},
		"kept by a provider": {provider: "mem"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				old := store.Report{Schema: store.Schema, Instance: "web-0", Config: "known", Healthy: true}
				w.put(w.keys.Report("web-0"), store.Encode(old))
				rev := w.put(w.keys.Instance("web-0"), store.Encode(store.Instance{
					Schema: store.Schema, ID: "web-0", Group: "web", Phase: store.Deleting,
					Spec: store.InstanceSpec{Provider: c.provider},
				}))
				h := hello("web-0", "boot1", 1)
				if !c.silent {
					h.Stopped = int64(rev) + c.off
				}
				refusal := r.refused(h, protocol.Refused_RETIRED)
				if refusal.GetRevision() != int64(rev) {
					t.Errorf("refused for revision %d, want %d", refusal.GetRevision(), rev)
				}
				got := w.report("web-0").Record
				switch {
				case got.Config != "known":
					t.Errorf("the last report is gone: %+v", got)
				case c.want && (got.Stopped != rev || got.Healthy || got.BootID != "boot1"):
					t.Errorf("report %+v, want it stopped for %d", got, rev)
				case !c.want && (got.Stopped != 0 || !got.Healthy):
					t.Errorf("report %+v, want it as it was", got)
				}
			})
		})
	}
}

// A last report that cannot be read does not keep the record of a stopped machine: the agent sends
// no other report, so the statement is written in its place.
//
// proves PROV-9, SAFE-16
func TestAnAgentWithAnUnreadableReportConfirmsThatItHasStopped(t *testing.T) {
	for name, spoiled := range map[string]string{
		"no JSON":        "garbage",
		"cut short":      `{"schema":1,"config":"known","healthy":tr`,
		"a newer schema": `{"schema":2,"config":"known"}`,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r := w.serve("one")
				defer r.stop()
				w.put(w.keys.Report("web-0"), []byte(spoiled))
				rev := w.put(w.keys.Instance("web-0"), store.Encode(store.Instance{
					Schema: store.Schema, ID: "web-0", Group: "web", Phase: store.Deleting,
					Spec: store.InstanceSpec{Provider: store.ProviderNone},
				}))
				h := hello("web-0", "boot1", 1)
				h.Stopped = int64(rev)
				r.refused(h, protocol.Refused_RETIRED)
				if got := w.report("web-0").Record; got.Stopped != rev || got.Config != "" || got.BootID != "boot1" {
					t.Errorf("report %+v, want it stopped for %d", got, rev)
				}
			})
		})
	}
}
