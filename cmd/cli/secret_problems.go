package cli

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/leasehold/leasehold/store"
)

// secretsAt reads the secrets, without their values; nil if the operator may not.
func (inv *Invocation) secretsAt(ctx context.Context, keys store.Keys, at store.Revision) (
	map[string]store.Secret, error,
) {
	var l store.Listing
	denied := false
	err := inv.ask(ctx, "list "+keys.Of(store.KindSecrets), inv.reading(keys.Of(store.KindSecrets)),
		func(ctx context.Context, st store.Store) (err error) {
			l, err = st.List(ctx, keys.Of(store.KindSecrets), at)
			if denied = errors.Is(err, store.ErrDenied); denied {
				err = nil
			}
			return err
		})
	if err != nil || denied {
		return nil, err
	}
	all := map[string]store.Secret{}
	for _, kv := range l.KVs {
		_, name, _ := keys.Split(kv.Key)
		v, err := store.Decode[store.Secret](kv)
		if err != nil {
			v.Record = store.Secret{}
		}
		all[name] = v.Record
	}
	return all, nil
}

// warnOfSecrets prints which secrets the groups wait for. They may be set afterwards.
func (inv *Invocation) warnOfSecrets(ctx context.Context, changes []groupChange) error {
	if !slices.ContainsFunc(changes, func(c groupChange) bool { return len(c.after.Secrets)+len(c.after.Files) > 0 }) {
		return nil
	}
	known, err := inv.secretsAt(ctx, inv.keys(), 0)
	if err != nil || known == nil {
		return err
	}
	for _, ch := range changes {
		for _, f := range ch.after.Files {
			if f.Secret != "" && known[f.Secret].Key == "" {
				inv.warn("%s: secret %s does not exist yet, and is used in %s: leasehold secret set %s", ch.name, f.Secret, f.Path,
					f.Secret)
			}
		}
		for _, variable := range slices.Sorted(maps.Keys(ch.after.Secrets)) {
			if name := ch.after.Secrets[variable]; known[name].Key == "" {
				inv.warn("%s: there is no secret %s yet, and no workload is started without it: leasehold secret set %s",
					ch.name, name, name)
			}
		}
	}
	return nil
}
