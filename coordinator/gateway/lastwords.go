package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// outputEvery keeps a workload in a crash loop from filling the journal.
const outputEvery = 10 * time.Second

// keepOutput puts the end of a failed workload into the journal, where it outlives the instance
// (DET-19). Only the session's report writer calls it.
func (s *session) keepOutput(rec *store.Report) {
	w, before := rec.Workload, s.workload
	s.workload = w
	if w == nil || w.Code == 0 && w.Signal == "" || before != nil && before.At.Equal(w.At) ||
		time.Since(s.outputKept) < outputEvery {
		return
	}
	s.outputKept = time.Now()
	end := fmt.Sprintf("exit code %d", w.Code)
	if w.Signal != "" {
		end = "signal " + w.Signal
	}
	group := ""
	s.g.deps.Cache.View(func(c *cache.Content) { group = c.Instances[s.instance].Record.Group })
	entry := store.JournalEntry{
		Rule: "DET-19", What: "workload ended", Why: end, Group: group, Instance: s.instance, Workload: w,
		Facts: []store.Fact{{Kind: store.FactBoot, Name: rec.BootID}, {Kind: store.FactReplica, Name: s.g.cfg.Replica}},
	}
	s.g.goDo(func(ctx context.Context) { s.g.deps.Journal(ctx, entry) })
}
