package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/store"
)

// ConfigSet is the command config set (REC-20).
type ConfigSet struct {
	Settings []string `arg:"" help:"Settings of the shard and their values; the value default restores the default. leasehold config show lists them." placeholder:"KEY=VALUE"`
	DryRun   bool     `help:"Show what would change, without changing anything."`
}

// Run changes all named settings or none, if the shard's record is still as it was read.
func (c *ConfigSet) Run(ctx context.Context, inv *Invocation) error {
	shard, err := inv.readShard(ctx)
	if err != nil {
		return err
	}
	before, after := shard.Record.Settings.WithDefaults(), shard.Record.Settings.WithDefaults()
	if err := setAll(&after, c.Settings); err != nil {
		return err
	}
	lines := settingChanges(before, after)
	if len(lines) == 0 {
		fmt.Fprintf(inv.env.Stdout, "%s unchanged rev %d\n", inv.flags.Shard, shard.Modified)
		return nil
	}
	for _, line := range lines {
		fmt.Fprintln(inv.env.Stdout, line)
	}
	if c.DryRun {
		fmt.Fprintln(inv.env.Stdout, "Nothing changed.")
		return nil
	}
	next := shard.Record
	next.Settings = after
	rev, err := inv.writeShard(ctx, shard, next)
	if err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%s changed rev %d\n", inv.flags.Shard, rev)
	return inv.warnOfBudgets(ctx, before, after)
}

// warnOfBudgets warns of shared budgets that were set just now and that no group names. Their
// groups may still come.
func (inv *Invocation) warnOfBudgets(ctx context.Context, before, after store.ShardSettings) error {
	if before.BudgetGroups == after.BudgetGroups {
		return nil
	}
	groups, _, err := inv.groups(ctx, inv.keys(), 0)
	if err != nil {
		return err
	}
	var named []string
	for _, g := range groups {
		if name := g.Spec.BudgetGroup; name != "" && !slices.Contains(named, name) {
			named = append(named, name)
		}
	}
	was := before.BudgetGroups.ByName()
	for _, name := range slices.Sorted(maps.Keys(after.BudgetGroups.ByName())) {
		if _, had := was[name]; !had && !slices.Contains(named, name) {
			inv.warn("budget_groups: no group names the budget_group %s%s", name, suggest.DidYouMean(name, named))
		}
	}
	return nil
}

// setAll applies KEY=VALUE arguments. All problems are reported at once.
func setAll(settings *store.ShardSettings, words []string) error {
	var wrong []string
	var named []string
	add := func(e *store.FieldError) {
		text := e.Error()
		if near := suggest.Nearest(e.Name, e.Known); near != "" {
			text += ": did you mean " + near + "?"
		}
		wrong = append(wrong, text)
	}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return failure(Usage, "leasehold config set --help", "%s: must be KEY=VALUE, for example provider_poll=10s",
				word)
		}
		if slices.Contains(named, name) {
			return failure(Usage, "give each setting once", "%s is set twice", name)
		}
		named = append(named, name)
		var field *store.FieldError
		if err := settings.Set(name, value); errors.As(err, &field) {
			add(field)
		}
	}
	if len(wrong) == 0 {
		for _, e := range settings.Wrong() {
			add(e)
		}
	}
	if len(wrong) > 0 {
		return failure(Usage, "leasehold config show", "%s; nothing was changed", strings.Join(wrong, "; "))
	}
	return nil
}

// settingChanges lists the settings that differ, a line each.
func settingChanges(before, after store.ShardSettings) []string {
	var lines []string
	for _, one := range store.Settings {
		was, now := one.Value(before), one.Value(after)
		i := slices.IndexFunc(before.Refused, func(e store.FieldError) bool { return e.Path == one.Name })
		if still := slices.ContainsFunc(after.Refused,
			func(e store.FieldError) bool { return e.Path == one.Name }); i >= 0 && !still {
			was = before.Refused[i].Value + " (refused)"
		}
		if was != now {
			lines = append(lines, fmt.Sprintf("~ %s  %s -> %s", one.Name, output.OneLine(was), now))
		}
	}
	return lines
}

// noShard returns the error for a missing shard's record: it was never written, or it was lost.
func (inv *Invocation) noShard(ctx context.Context) error {
	waits, err := inv.waits(ctx)
	if err != nil {
		return err
	}
	if waits != nil {
		return failure(NotFound, "leasehold status says how to restore it",
			"shard %s was lost: its coordinators wait for it, with ID %s", inv.flags.Shard, waits.ShardID)
	}
	replicas, err := inv.list(ctx, inv.keys().Of(store.KindReplicas), 0)
	if err != nil {
		return err
	}
	for _, kv := range replicas.KVs {
		if r, err := store.Decode[store.Replica](kv); err == nil && r.Record.Waits != nil && r.Record.Waits.Restore {
			return failure(NotFound, restoreNext, "there is no shard %s: this etcd was made for one from a backup",
				inv.flags.Shard)
		}
	}
	return failure(NotFound, "leasehold status --all-shards", "there is no shard %s: leasehold init creates it",
		inv.flags.Shard)
}

// readShard reads the shard's record, to change it.
func (inv *Invocation) readShard(ctx context.Context) (store.Versioned[store.Shard], error) {
	kv, err := inv.get(ctx, inv.keys().Shard())
	if errors.Is(err, store.ErrNotFound) {
		return store.Versioned[store.Shard]{}, inv.noShard(ctx)
	}
	if err != nil {
		return store.Versioned[store.Shard]{}, err
	}
	v, err := store.Decode[store.Shard](kv)
	if err != nil {
		return v, err
	}
	return v, inv.checkBaseOf("the record of shard "+inv.flags.Shard, v.Modified)
}

// writeShard writes the shard's record, if it is still as it was read.
func (inv *Invocation) writeShard(ctx context.Context, read store.Versioned[store.Shard], next store.Shard) (
	store.Revision, error,
) {
	rev, err := inv.commit(ctx, "write shard", store.Txn{
		Conditions: []store.Condition{read.Unchanged()},
		Writes:     []store.Write{store.Put(read.Key, store.Encode(next))},
	})
	if errors.Is(err, store.ErrConflict) {
		if inv.api != nil {
			inv.api.raced = true
		}
		return 0, failure(Conflict, "check leasehold status, then run the command again",
			"shard %s: its record was changed in the meantime; nothing was written", inv.flags.Shard)
	}
	return rev, err
}
