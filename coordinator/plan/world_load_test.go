package plan

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// tellLoad has an agent measure its share of the group's load, each half minute.
func (w *world) tellLoad(id string, a *agent) {
	if w.load == nil || w.now.Sub(a.loadAt) < 30*time.Second {
		return
	}
	a.loadAt = w.now
	if a.host = (store.HostReport{}); a.loadless {
		return
	}
	serving := 0
	for other, o := range w.agents {
		if rec := w.instance(other); rec.Present() && rec.Record.Group == w.instance(id).Record.Group && o.registered &&
			o.silentFrom.IsZero() && o.healthy && rec.Record.Phase == store.Running {
			serving++
		}
	}
	if serving == 0 || w.instance(id).Record.Phase != store.Running {
		serving = 1 << 20 // it carries nothing
	}
	a.host.Windows = []store.HostWindow{{
		Span: store.Duration(time.Minute), Covered: store.Duration(time.Minute),
		CPUPercent: min(100, w.load["cpu"]/float64(serving)), MemoryPercent: w.load["memory"],
		NetworkSent: uint64(w.load["network"] * 60e6 / float64(serving)),
	}}
}
