package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leasehold/leasehold/tests/faults/history"
)

// silence: the lease of a machine that cannot be heard ends, since an accepted report renews it and
// nothing else does (DET-2).
//
// Tolerated: any other trouble meanwhile. An etcd that was restarted, or has another leader, gives
// every lease its whole time once more.
func (in *inquiry) silence() {
	for _, id := range slices.Sorted(maps.Keys(in.truth.fates)) {
		for _, h := range in.truth.fates[id].harms {
			due := h.from.Add(in.terms.Slack + in.terms.LeaseTTL + in.terms.recovery())
			if h.kind != history.Cut && h.kind != history.Frozen || h.to < due || due > in.end() ||
				in.otherTrouble(span{h.from, due}) {
				continue
			}
			was, had := in.worldAt(h.from.Add(in.terms.Slack)).raw[in.keys.Alive(id)]
			// The state of its stream may change; the lease is the same.
			if e, there := in.worldAt(due).raw[in.keys.Alive(id)]; there && had && e.Change.Lease == was.Change.Lease {
				in.violation("DET-2", due,
					fmt.Sprintf("%s is %s since %s, and its lease has not ended: it is renewed", id, h.kind,
						due.Sub(h.from)), append(in.past(id, due), e)...)
			}
		}
	}
}

// otherTrouble reports whether the cluster had a fault that began while no machine had one.
func (in *inquiry) otherTrouble(w span) bool {
	return slices.ContainsFunc(in.truth.troubles, func(tr trouble) bool {
		own := max(tr.from, w.from)-min(tr.from, w.from) < history.Time(in.terms.Slack)
		return !own && w.meets(span{tr.from, tr.to.Add(in.terms.recovery())})
	})
}

// end is the last moment of the history.
func (in *inquiry) end() history.Time {
	if len(in.events) == 0 {
		return 0
	}
	return in.events[len(in.events)-1].At
}
