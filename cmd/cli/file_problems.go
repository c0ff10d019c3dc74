package cli

import (
	"context"
	"strings"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// fileReport is the part of a stored report about files.
type fileReport struct {
	Files []store.FileReport `json:"files"`
}

// lackingFiles returns which instances of the groups with files lack one, by group and cause.
func (inv *Invocation) lackingFiles(ctx context.Context, keys store.Keys, groups []group,
	at store.Revision,
) (map[string]map[string][]string, error) {
	lacking := map[string]map[string][]string{}
	for _, g := range groups {
		if len(g.Spec.Files) == 0 {
			continue
		}
		found := map[string][]string{}
		lacking[g.Name] = found
		err := eachReport(ctx, inv, keys, g.Name, at, func(id string, r fileReport) bool {
			story.Lacks(found, id, r.Files)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return lacking, nil
}

// eachReport reads the reports of a group's instances until f has enough. It leaves out unreadable
// ones, which status reports.
func eachReport[T any](ctx context.Context, inv *Invocation, keys store.Keys, group string, at store.Revision,
	f func(id string, r T) (more bool),
) error {
	return inv.parts(ctx, keys.Of(store.KindReports), keys.Report(group+"-"), 1000, at, func(part store.Part) bool {
		for _, kv := range part.KVs {
			_, id, _ := keys.Split(kv.Key)
			if !strings.HasPrefix(id, group+"-") {
				return false
			}
			if of, _, _, known := store.PlaceOf(id); !known || of != group {
				continue
			}
			if v, err := store.Decode[T](kv); err == nil && !f(id, v.Record) {
				return false
			}
		}
		return true
	})
}
