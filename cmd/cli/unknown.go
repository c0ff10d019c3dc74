package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/store"
)

// knownGroup fails with NotFound if nothing in these shards has the group's name: no spec, no
// status, no instance. An empty answer to a misspelt name would look as if nothing were wrong.
func (inv *Invocation) knownGroup(ctx context.Context, shards []string, name string) error {
	if !isName(name) {
		return inv.noGroup(ctx, name)
	}
	for _, shard := range shards {
		keys := store.KeysOf(shard)
		for _, key := range []string{keys.Group(name), keys.Static(name), keys.Status(name)} {
			if kv, err := inv.find(ctx, key); err != nil || kv.Modified != 0 {
				return err
			}
		}
		listing, err := inv.list(ctx, keys.Of(store.KindInstances)+name+"-", 0)
		if err != nil {
			return err
		}
		all, err := decodeInstances(listing)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(v store.Versioned[store.Instance]) bool { return v.Record.Group == name }) {
			return nil
		}
	}
	return inv.noGroup(ctx, name)
}

// knownInstance fails with NotFound if there is no such instance. Recent entries about it may still
// be in the journal, further back than the lookup went.
func (inv *Invocation) knownInstance(ctx context.Context, id string, looked time.Duration) error {
	if !isName(id) {
		return inv.noInstance(ctx, id)
	}
	if kv, err := inv.find(ctx, inv.keys().Instance(id)); err != nil || kv.Modified != 0 {
		return err
	}
	next := "leasehold events -i " + id + farBackFlag
	if looked >= farBack {
		next = "leasehold instance list"
	}
	return failure(NotFound, next, "no instance %q, and nothing about it in the journal of the last %s", id,
		output.Span(looked))
}

// noGroup reports that there is no such group, and which one was probably meant.
func (inv *Invocation) noGroup(ctx context.Context, name string) error {
	return failure(NotFound, "leasehold group list", "no group %q%s", name,
		meant(suggest.Nearest(name, inv.names(ctx, store.KindGroups, store.KindStatic, store.KindStatus))))
}

// noInstance reports that there is no such instance, and which one was probably meant. If there was
// one, the journal says what happened to it.
func (inv *Invocation) noInstance(ctx context.Context, id string) error {
	instances := inv.names(ctx, store.KindInstances)
	near := startedBy(id, instances)
	if near == "" {
		near = suggest.Nearest(id, instances)
	}
	next := "leasehold instance list"
	if isName(id) && strings.Count(id, "-") >= 2 { // group, slot and ending: it may have existed
		next = "leasehold events -i " + id + farBackFlag
	}
	return failure(NotFound, next, "no instance %q%s", id, meant(near))
}

// names returns the last elements of the keys of these kinds. It completes an error, so another
// error on the way only makes the list shorter.
func (inv *Invocation) names(ctx context.Context, kinds ...string) (known []string) {
	for _, kind := range kinds {
		l, err := inv.list(ctx, inv.keys().Of(kind), 0)
		if err != nil {
			return known
		}
		for _, kv := range l.KVs {
			_, name, _ := inv.keys().Split(kv.Key)
			known = append(known, name)
		}
	}
	return known
}

// startedBy returns the first instance whose ID begins with the word, as where the end of the ID
// was left out, or else one of the same slot; "" if there is none.
func startedBy(id string, instances []string) string {
	slot := id
	if i := strings.LastIndexByte(id, '-'); i > 0 {
		slot = id[:i]
	}
	for _, begin := range []string{id + "-", slot + "-"} {
		for _, k := range instances {
			if strings.HasPrefix(k, begin) && strings.LastIndexByte(k, '-') == len(begin)-1 {
				return k
			}
		}
	}
	return ""
}

// meant ends a message with the name that was probably meant.
func meant(name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + name + "?"
}
