package judge

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// sessions: what a session says of an agent is changed by its holder only (DET-18). The holder of
// an older one is late.
//
// Tolerated: a transaction that cannot be attributed counts against no replica; two sessions at one
// replica cannot be told apart.
func (in *inquiry) sessions() {
	who := whose(in.transactions())
	in.walk(in.steps, func(w *world, s *step) {
		if s.found {
			return
		}
		for i, e := range s.changes {
			kind, id, ok := in.keys.Split(e.Change.Key)
			before, after := w.alive[id], as[store.Alive](s.records[i])
			if !ok || kind != store.KindAlive || before == nil || after == nil {
				continue
			}
			if after.BootID == before.BootID && after.Epoch < before.Epoch {
				in.violation("DET-18", s.at,
					fmt.Sprintf("the session of %s with epoch %d was overwritten by an older one, %d, of replica %s",
						id, before.Epoch, after.Epoch, after.Replica),
					w.raw[e.Change.Key], e)
				continue
			}
			by := who.wrote(s)
			if by == nil || after.Epoch != before.Epoch || after.BootID != before.BootID ||
				after.Replica != before.Replica || by.commit().Replica == after.Replica {
				continue
			}
			in.violation("DET-18", s.at,
				fmt.Sprintf("replica %s wrote that the stream of %s is %s, which replica %s holds%s",
					by.commit().Replica, id, after.State, after.Replica,
					strings.TrimSuffix(": "+after.Why, ": ")), w.raw[e.Change.Key], e, by.begun)
		}
	})
}
