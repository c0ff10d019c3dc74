package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// secretsAt reads the secrets, without their values; nil if the operator may not.
func (s *Session) secretsAt(ctx context.Context, keys store.Keys, at store.Revision) (map[string]store.Secret, error) {
	var l store.Listing
	denied := false
	err := s.ask(ctx, "list "+keys.Of(store.KindSecrets), s.reading(keys.Of(store.KindSecrets)),
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

// secretProblems reports secrets that workloads wait for, and replicas that cannot read some.
func secretProblems(st shardState) []problem {
	if st.secrets == nil {
		return nil
	}
	var found []problem
	for _, g := range st.groups {
		found = append(found, fileSecretProblems(g, st.secrets)...)
		for _, variable := range slices.Sorted(maps.Keys(g.Spec.Secrets)) {
			name := g.Spec.Secrets[variable]
			if rec, there := st.secrets[name]; there && rec.Key != "" {
				continue
			}
			what := fmt.Sprintf("secrets.%s: there is no secret %s: no workload is started without it", variable, name)
			if _, there := st.secrets[name]; there {
				what = fmt.Sprintf("secrets.%s: the record of secret %s cannot be read: no workload is started without it", variable, name)
			}
			found = append(found, problem{
				About: g.Name, Rule: "SEC-6", What: what,
				Next: "leasehold secret set " + name,
			})
		}
	}
	byKey := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(st.secrets)) {
		if key := st.secrets[name].Key; key != "" {
			byKey[key] = append(byKey[key], name)
		}
	}
	for _, r := range st.replicas {
		for _, key := range slices.Sorted(maps.Keys(byKey)) {
			if slices.ContainsFunc(r.Record.SecretKeys,
				func(has string) bool { return strings.HasPrefix(has, key+":") }) {
				continue
			}
			found = append(found, problem{
				About: r.Record.ID, Rule: "SEC-6",
				What: fmt.Sprintf("does not have key %s, so it cannot deliver %s", key, strings.Join(byKey[key], ", ")),
				Next: "put the key into its --secrets-key file, which is reloaded within a second",
			})
		}
	}
	return found
}

// warnOfSecrets prints which secrets the groups wait for. They may be set afterwards.
func (s *Session) warnOfSecrets(ctx context.Context, changes []change) error {
	if !slices.ContainsFunc(changes, func(c change) bool { return len(c.after.Secrets)+len(c.after.Files) > 0 }) {
		return nil
	}
	known, err := s.secretsAt(ctx, s.keys(), 0)
	if err != nil || known == nil {
		return err
	}
	for _, ch := range changes {
		for _, f := range ch.after.Files {
			if f.Secret != "" && known[f.Secret].Key == "" {
				s.warn("%s: there is no secret %s yet, which is to be in %s: leasehold secret set %s", ch.name, f.Secret, f.Path,
					f.Secret)
			}
		}
		for _, variable := range slices.Sorted(maps.Keys(ch.after.Secrets)) {
			if name := ch.after.Secrets[variable]; known[name].Key == "" {
				s.warn("%s: there is no secret %s yet, and no workload is started without it: leasehold secret set %s",
					ch.name, name, name)
			}
		}
	}
	return nil
}
