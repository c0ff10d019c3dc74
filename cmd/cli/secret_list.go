package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/agent/secrets"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// shortSecret is the least length of a value that is redacted from texts.
const shortSecret = secrets.Shortest

// SecretList is the command secret list.
type SecretList struct{}

// secretShown is everything that is ever shown about a secret.
type secretShown struct {
	Name     string         `json:"name"`
	Version  int            `json:"version"`
	Key      string         `json:"key"`
	Groups   []string       `json:"groups"` // groups that use it
	By       string         `json:"by"`
	At       time.Time      `json:"at"`
	Revision store.Revision `json:"revision"`
}

// Run lists the secrets.
func (c *SecretList) Run(ctx context.Context, inv *Invocation) error {
	l, err := inv.list(ctx, inv.keys().Of(store.KindSecrets), 0)
	if err != nil {
		return err
	}
	all, unreadable := decodeReadable[store.Secret](l)
	for _, key := range slices.Sorted(maps.Keys(unreadable)) {
		_, name, _ := inv.keys().Split(key)
		inv.warn("the record of secret %.200q cannot be read: leasehold secret set gives it a new value, "+
			"leasehold secret delete removes it", name)
	}
	groups, _, err := inv.groups(ctx, inv.keys(), 0)
	if err != nil {
		return err
	}
	use := users(groups)
	shown := []secretShown{}
	t := output.Table{Columns: []output.Column{
		{Title: "SECRET"},
		{Title: "VERSION", Right: true},
		{Title: "KEY"},
		{Title: "GROUPS", Cut: true},
		{Title: "BY"},
		{Title: "AGE"},
	}}
	for _, v := range all {
		r := v.Record
		_, name, _ := inv.keys().Split(v.Key)
		shown = append(shown, secretShown{
			Name: name, Version: r.Version, Key: r.Key,
			Groups: append([]string{}, use[name]...), By: r.By, At: r.At, Revision: v.Modified,
		})
		t.Add(name, strconv.Itoa(r.Version), r.Key, groupsShown(use[name]), r.By, output.Age(inv.env.Now(), r.At))
	}
	if done, err := inv.records(shown); done {
		return err
	}
	if len(t.Rows) == 0 {
		inv.note("no secrets; set one with: leasehold secret set NAME")
		return nil
	}
	return t.Write(inv.screen(), inv.wide())
}

// SecretDelete is the command secret delete.
type SecretDelete struct {
	Name  string `arg:"" help:"Name of the secret."`
	Force bool   `help:"Delete the secret even if a group uses it: running workloads continue, but cannot be started again."`
}

// Run deletes the secret.
func (c *SecretDelete) Run(ctx context.Context, inv *Invocation) error {
	if !store.IsSecretName(c.Name) {
		return badSecretName(c.Name)
	}
	kv, err := inv.get(ctx, inv.keys().Secret(c.Name))
	if errors.Is(err, store.ErrNotFound) {
		return noSecret(c.Name)
	}
	if err != nil {
		return err
	}
	all, _, err := inv.groups(ctx, inv.keys(), 0)
	if err != nil {
		return err
	}
	use := users(all)[c.Name]
	if len(use) > 0 && !c.Force {
		return failure(Conflict,
			"take it out of secrets with leasehold group edit "+use[0]+
				", or give --force: running workloads continue, new ones wait",
			"secret %s is used by %s; nothing was changed", c.Name, strings.Join(use, ", "))
	}
	rev, err := inv.commit(ctx, "delete secret", store.Txn{
		Conditions: []store.Condition{store.Unchanged(kv)}, Writes: []store.Write{store.Delete(kv.Key)},
	})
	if errors.Is(err, store.ErrConflict) {
		return changedSecret(c.Name, "check leasehold secret list, then run the command again")
	}
	if err != nil {
		return err
	}
	inv.secretLine(c.Name, "deleted", rev)
	if len(use) > 0 {
		inv.warn("%s uses it: running workloads continue, and none is started without it", strings.Join(use, ", "))
	}
	return nil
}
