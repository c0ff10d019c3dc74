package cli

import (
	"context"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// reportsOf reads the part of the reports that lists show, from one instance name to another, by
// instance.
func (inv *Invocation) reportsOf(ctx context.Context, keys store.Keys, first, last string, most int,
	at store.Revision,
) (map[string]*story.LastReport, error) {
	byID := map[string]*story.LastReport{}
	err := inv.parts(ctx, keys.Of(store.KindReports), keys.Report(first), most, at, func(part store.Part) bool {
		for _, kv := range part.KVs {
			if kv.Key > keys.Report(last) {
				return false
			}
			// an unreadable report hides no instance
			if v, err := store.Decode[story.LastReport](kv); err == nil {
				_, id, _ := keys.Split(kv.Key)
				byID[id] = &v.Record
			}
		}
		return true
	})
	return byID, err
}
