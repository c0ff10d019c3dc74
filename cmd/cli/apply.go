package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Apply is the command apply: the groups and settings of a shard, from a directory (REC-7, REC-14).
type Apply struct {
	Files      []string `name:"file" short:"f" required:"" sep:"none" help:"Directory with files of groups and of the shard's settings, or such a file; - is standard input. May be given several times." placeholder:"DIR"`
	Source     string   `help:"Name of the source of the files, such as a repository; recorded with each group." placeholder:"NAME"`
	TakeOver   bool     `help:"Take over groups that were applied from another source."`
	Prune      bool     `help:"Delete the groups that were applied from this source and are no longer in the files, and all their instances."`
	Diff       bool     `help:"Show what would change and what would follow, without changing anything; exit with 6 if there is a difference."`
	Wait       bool     `help:"Wait until the groups match their specs."`
	IfRevision *int64   `help:"Apply only if none of these groups or settings has changed since this revision, which --diff shows." placeholder:"N"`
	Confirm    []string `help:"Confirm a smaller size or, with --prune, a deletion, by naming the group." placeholder:"NAME"`
}

// intent is everything that one apply is about.
type intent struct {
	changes  []groupChange // of the groups in the files, in order, and then of those that are pruned
	settings *settingsChange
	at       store.Revision // everything was read at this revision or later
}

// settingsChange is a change of the shard's settings.
type settingsChange struct {
	shard store.Versioned[store.Shard]
	next  store.Shard
	lines []string // one for each setting that differs
}

// Run applies the files: everything in them, or nothing.
func (c *Apply) Run(ctx context.Context, inv *Invocation) error {
	begun := inv.env.Now()
	if c.Prune && c.Source == "" {
		return failure(Usage, "leasehold apply --help",
			"--prune needs --source: only groups that were applied from the same source are deleted")
	}
	if len(c.Source) > store.MaxSource || strings.ContainsFunc(c.Source, notInSource) {
		return failure(Usage, "leasehold apply --help", "--source: %q: must be at most %d bytes without spaces", c.Source,
			store.MaxSource)
	}
	in, err := c.readIntent(ctx, inv)
	if err != nil {
		return err
	}
	if err := inv.judgeChanges(ctx, in.changes); err != nil {
		return err
	}
	if c.IfRevision != nil {
		if err := c.checkUnchangedSince(ctx, inv, in); err != nil {
			return err
		}
	}
	if c.Diff {
		return c.diff(ctx, inv, in)
	}
	if err := inv.confirmAll(ctx, c.Confirm, in.toConfirm()); err != nil {
		return err
	}
	done, err := inv.writeIntent(ctx, in, "leasehold apply "+c.flags()+" --diff, then leasehold apply again")
	if reported := c.report(inv, in, done); err == nil {
		err = reported
	}
	if err != nil {
		return err
	}
	for _, ch := range in.changes {
		for _, w := range ch.after.Warnings() {
			inv.warn("%s: %s", ch.name, w)
		}
	}
	if err := errors.Join(inv.warnOfProviders(ctx, in.changes), inv.warnOfSecrets(ctx, in.changes)); err != nil {
		return err
	}
	if err := inv.refusedAmong(ctx, in); err != nil || !c.Wait {
		return err
	}
	return inv.waitForAll(ctx, in, done, begun)
}

func notInSource(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// flags returns the command-line arguments that select what is applied.
func (c *Apply) flags() string {
	words := Files{c.Files}.flags()
	if c.Source != "" {
		words += " --source " + reason.ShellWord(c.Source)
	}
	if c.Prune {
		words += " --prune"
	}
	return words
}

// readIntent reads the files, and the records that they are about.
func (c *Apply) readIntent(ctx context.Context, inv *Invocation) (intent, error) {
	var in intent
	files, err := inv.readDirectories(c.Files)
	if err != nil {
		return in, err
	}
	shard, err := inv.readShard(ctx)
	if err != nil {
		return in, err
	}
	listing, err := inv.list(ctx, inv.keys().Of(store.KindGroups), 0)
	if err != nil {
		return in, err
	}
	in.at = listing.Revision
	groups, err := inv.validateDirectories(ctx, c.Files, files)
	if err != nil {
		return in, err
	}
	if in.settings, err = changeOfSettings(files, shard); err != nil {
		return in, err
	}
	if len(groups) == 0 && c.Prune {
		return in, failure(Usage, "leasehold group delete NAME, for a group that is to go",
			"there is no group in %s, and --prune would delete all groups of source %s; nothing was changed",
			strings.Join(c.Files, " and "), c.Source)
	}
	static, err := inv.staticGroups(ctx)
	if err != nil {
		return in, err
	}
	for _, g := range groups {
		if _, ok := static[g.Group.Name]; ok {
			return in, failure(Failed, "leasehold config apply -f FILE, or take it out of the files",
				"group %s is static: leasehold config apply writes it (REC-6); nothing was changed", g.Group.Name)
		}
		ch, err := inv.planChange(ctx, g)
		if err == nil {
			err = inv.refuseIfDeleting(ch, c.Diff)
		}
		if err == nil {
			err = c.setSource(&ch)
		}
		if err != nil {
			return in, err
		}
		in.changes = append(in.changes, ch)
	}
	if !c.Prune {
		return in, nil
	}
	return in, c.prune(ctx, inv, &in, listing)
}

// setSource records the source beside a group. A group of another source is left alone.
func (c *Apply) setSource(ch *groupChange) error {
	had := ch.after.Source
	switch {
	case c.Source == "" && had != "" && !c.TakeOver:
		return failure(Conflict, "run the same command with --source "+reason.ShellWord(had)+", or with --take-over",
			"group %s was applied from source %s; nothing was changed", ch.name, had)
	case had != "" && had != c.Source && !c.TakeOver:
		return failure(Conflict, "take it out of the files, or run the same command with --take-over",
			"group %s was applied from source %s, not %s; nothing was changed", ch.name, had, c.Source)
	}
	ch.after.Source = c.Source
	return nil
}

// prune adds the groups that were applied from the same source and are not in the files.
func (c *Apply) prune(ctx context.Context, inv *Invocation, in *intent, groups store.Listing) error {
	for _, kv := range groups.KVs {
		_, name, _ := inv.keys().Split(kv.Key)
		if slices.ContainsFunc(in.changes, func(ch groupChange) bool { return ch.name == name }) {
			continue
		}
		if state := operatorState(kv); state.Source != c.Source || state.Deleting {
			continue
		}
		d, err := inv.readDoomed(ctx, name)
		if notFound := (*Failure)(nil); errors.As(err, &notFound) && notFound.Code == NotFound {
			continue // it was removed in the meantime
		}
		if err != nil {
			return err
		}
		if d.groupRev != kv.Modified || d.unusable {
			return failure(Conflict, "run the same command again",
				"group %s was changed a moment ago; nothing was changed", name)
		}
		if d.already {
			continue
		}
		d.after.Source, d.after.Deleting, d.pruning = c.Source, true, d.act
		in.changes = append(in.changes, d.groupChange)
	}
	return nil
}

// checkUnchangedSince fails if a group or setting in the files has changed since the revision that
// was given.
func (c *Apply) checkUnchangedSince(ctx context.Context, inv *Invocation, in intent) error {
	again := "leasehold apply " + c.flags() + " --diff"
	at := store.Revision(*c.IfRevision)
	if at <= 0 || at > in.at {
		return failure(Conflict, again, "--if-revision %d: etcd is at revision %d; nothing was changed", at, in.at)
	}
	then := map[string]store.Revision{}
	for _, prefix := range []string{inv.keys().Of(store.KindGroups), inv.keys().Shard()} {
		listing, err := inv.list(ctx, prefix, at)
		if errors.Is(err, store.ErrCompacted) {
			return failure(Conflict, again,
				"revision %d is no longer in etcd's history, so nothing shows what has changed since; nothing was changed", at)
		}
		if err != nil {
			return err
		}
		for _, kv := range listing.KVs {
			then[kv.Key] = kv.Modified
		}
	}
	for _, ch := range in.changes {
		if was := then[inv.keys().Group(ch.name)]; was != ch.groupRev {
			return failure(Conflict, again, "group %s has changed since revision %d: %s; nothing was changed", ch.name, at,
				describeConflict(was, ch.groupRev))
		}
	}
	if set := in.settings; set != nil && then[inv.keys().Shard()] != set.shard.Modified {
		return failure(Conflict, again, "the shard's settings have changed since revision %d; nothing was changed", at)
	}
	return nil
}

// toConfirm returns what an operator must confirm, by group.
func (in intent) toConfirm() (acts []act) {
	for _, ch := range in.changes {
		switch {
		case ch.pruning != "":
			acts = append(acts, act{ch.name, "no file has group " + ch.name + " any more: " + ch.pruning})
		case ch.shrinks():
			acts = append(acts, act{ch.name, ch.describeShrinking()})
		}
	}
	return acts
}

// applied is the JSON form of what an apply has done.
type applied struct {
	Revision  store.Revision `json:"revision,omitempty"` // of the last write; 0: nothing was written
	Settings  []string       `json:"settings,omitempty"`
	Created   []string       `json:"created,omitempty"`
	Changed   []string       `json:"changed,omitempty"`
	Deleting  []string       `json:"deleting,omitempty"`
	Unchanged int            `json:"unchanged"`
}

// report prints what was written. It matters most if only a part was.
func (c *Apply) report(inv *Invocation, in intent, done written) error {
	doc, lines := applied{Revision: done.last()}, []string(nil)
	if in.settings != nil && done.settings != 0 {
		doc.Settings = in.settings.lines
	}
	for _, ch := range in.changes {
		rev, wrote := done.groups[ch.name]
		switch {
		case ch.unchanged():
			doc.Unchanged++
		case !wrote:
		case ch.pruning != "":
			doc.Deleting = append(doc.Deleting, ch.name)
		case ch.isNew():
			doc.Created = append(doc.Created, ch.name)
		default:
			doc.Changed = append(doc.Changed, ch.name)
		}
		if wrote {
			lines = append(lines, fmt.Sprintf("%s %s rev %d", ch.name, ch.did(), rev))
		}
	}
	if shown, err := inv.records(doc); shown {
		return err
	}
	for _, line := range append(lines, doc.Settings...) {
		fmt.Fprintln(inv.env.Stdout, line)
	}
	_, err := fmt.Fprintf(inv.env.Stdout, "%d created, %d changed, %d being deleted, %d unchanged%s\n", len(doc.Created),
		len(doc.Changed), len(doc.Deleting), doc.Unchanged, settingsWords(len(doc.Settings)))
	return err
}

func settingsWords(n int) string {
	if n == 0 {
		return ""
	}
	return "; " + counted(n, "setting", "settings") + " changed"
}

// did says what was done with the group.
func (c groupChange) did() string {
	switch {
	case c.pruning != "":
		return "deleting"
	case c.isNew():
		return "created"
	default:
		return "changed"
	}
}

// refusedAmong fails if the coordinator refuses a spec that is unchanged: applying the same again
// changes nothing.
func (inv *Invocation) refusedAmong(ctx context.Context, in intent) error {
	for _, ch := range in.changes {
		if !ch.unchanged() {
			continue
		}
		status, _, err := findRecord[store.Status](ctx, inv, inv.keys().Status(ch.name))
		if err != nil {
			return err
		}
		if bad := status.Record.Invalid; bad != nil && bad.Revision == ch.rev() {
			return failure(Failed, "correct its file, then run the same command",
				"group %s: the coordinator refuses its spec (revision %d): %s", ch.name, bad.Revision, bad.Why)
		}
	}
	return nil
}

// waitForAll waits for the groups one after the other, within one limit for all. The first group
// that cannot get there ends it.
func (inv *Invocation) waitForAll(ctx context.Context, in intent, done written, begun time.Time) error {
	end := inv.env.Now().Add(inv.waitLimit())
	for _, ch := range in.changes {
		a := awaited{spec: ch.after, since: ch.rev(), begun: begun, limit: max(end.Sub(inv.env.Now()), time.Millisecond)}
		if rev, wrote := done.groups[ch.name]; wrote {
			a.since, a.after = rev, rev
		}
		if err := inv.wait(ctx, a); err != nil {
			return err
		}
	}
	return nil
}
