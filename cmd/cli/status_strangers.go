package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// readStrangers reads them, without those that have got a record since they were noticed.
func (inv *Invocation) readStrangers(ctx context.Context, keys store.Keys, at store.Revision) (all story.Strangers,
	err error,
) {
	strays, err := readKind[store.Stray](ctx, inv, keys, store.KindStrays, at)
	if err != nil {
		return all, err
	}
	extras, err := readKind[store.Extra](ctx, inv, keys, store.KindExtras, at)
	if err != nil || len(strays)+len(extras) == 0 {
		return all, err
	}
	recorded, err := inv.namesOf(ctx, keys.Of(store.KindInstances), at)
	if err != nil {
		return all, err
	}
	for id, stray := range strays {
		if !recorded[id] {
			stray.Instance = id
			all.Strays = append(all.Strays, stray)
		}
	}
	for id, x := range extras {
		if _, heard := strays[id]; !heard && !recorded[id] {
			x.Instance = id
			all.AddExtra(x)
		}
	}
	slices.SortFunc(all.Strays, func(a, b store.Stray) int { return strings.Compare(a.Instance, b.Instance) })
	for _, extras := range [][]store.Extra{all.Extras, all.Foreign} {
		slices.SortFunc(extras, func(a, b store.Extra) int { return strings.Compare(a.Instance, b.Instance) })
	}
	return all, nil
}

// namesOf returns the names of all keys below a prefix, whether or not they can be read.
func (inv *Invocation) namesOf(ctx context.Context, prefix string, at store.Revision) (map[string]bool, error) {
	l, err := inv.list(ctx, prefix, at)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, kv := range l.KVs {
		names[kv.Key[len(prefix):]] = true
	}
	return names, nil
}
