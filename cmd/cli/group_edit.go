package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// GroupEdit is the command group edit.
type GroupEdit struct {
	Group   string   `arg:"" help:"Name of the group."`
	Confirm []string `help:"Confirm a smaller size by naming the group." placeholder:"NAME"`
}

// Run lets the operator edit the spec, and writes it if the group is still as it was read. If
// anything fails after the edit, the operator's text is kept in a file that the message names.
func (c *GroupEdit) Run(ctx context.Context, inv *Invocation) error {
	ch, err := inv.readExisting(ctx, c.Group)
	if err != nil {
		return err
	}
	text, err := ch.draft()
	if err != nil {
		return err
	}
	file, err := draft(c.Group, text)
	if err != nil {
		return err
	}
	before, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read draft: %w", err)
	}
	if err := inv.env.Edit(ctx, file); err != nil {
		return failure(Failed, "set EDITOR, or edit "+file+" by hand and run leasehold group apply -f "+file,
			"edit %s: %s", file, err)
	}
	after, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read draft: %w", err)
	}
	if bytes.Equal(before, after) {
		fmt.Fprintf(inv.env.Stdout, "%s unchanged rev %d\n", c.Group, ch.rev())
		return removeDraft(file)
	}
	if err := c.apply(ctx, inv, ch, file, after); err != nil {
		inv.note("your text is kept in %s", file)
		return err
	}
	return removeDraft(file)
}

// kept returns how to continue with the text in the file, since the next edit would start over.
func kept(err error, file, confirm string) error {
	apply := "leasehold group apply -f " + reason.ShellWord(file)
	var text *misspelt
	var problems yamlfile.Problems
	var f *Failure
	switch {
	case errors.As(err, &text):
		return &misspelt{Problems: text.Problems, next: text.next + ", then " + apply, code: text.code}
	case errors.As(err, &problems):
		return &misspelt{Problems: problems, next: "correct " + file + ", then " + apply}
	case errors.As(err, &f) && confirm != "":
		return &Failure{Code: f.Code, What: f.What, Remedies: story.Run(apply + " --confirm=" + confirm)}
	default:
		return err
	}
}

func (c *GroupEdit) apply(ctx context.Context, inv *Invocation, ch groupChange, file string, text []byte) error {
	entry, err := c.read(ch, file, text)
	if err != nil {
		return err
	}
	ch.after, ch.file = entry.Group, &entry
	if entry.Override != nil {
		ch.overrideAfter = *entry.Override
	}
	ch.keepState()
	if ch.unchanged() {
		return inv.reportUnchanged(ctx, ch, ch.rev())
	}
	if err := inv.judgeChanges(ctx, []groupChange{ch}); err != nil {
		return kept(err, file, "")
	}
	if ch.shrinks() {
		act := ch.describeShrinking()
		if err := inv.confirm(ctx, c.Confirm, ch.name, act); err != nil {
			return kept(err, file, ch.name)
		}
	}
	rev, err := inv.write(ctx, []groupChange{ch}, "leasehold group diff -f "+file+", then leasehold group apply -f "+file)
	if err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%s changed rev %d\n", c.Group, rev)
	for _, w := range ch.after.Warnings() {
		inv.warn("%s: %s", ch.name, w)
	}
	return nil
}

// read takes the group from the edited text.
func (c *GroupEdit) read(ch groupChange, file string, text []byte) (groupfile.Entry, error) {
	parsed, err := groupfile.Parse(file, bytes.NewReader(text))
	if err != nil {
		return groupfile.Entry{}, err
	}
	static := map[string]store.Group{}
	if ch.static != nil {
		static[c.Group] = *ch.static
	}
	entries, err := parsed.Judge(static)
	if err != nil {
		return groupfile.Entry{}, kept(err, file, "")
	}
	if len(entries) != 1 || entries[0].Group.Name != c.Group {
		return groupfile.Entry{}, failure(Usage, "leasehold group apply -f "+file+", to change other groups",
			"the text must define the group %s and no other", c.Group)
	}
	return entries[0], nil
}

// draft returns the text to edit. For a static group it is the override, with the spec in force as
// a comment.
func (c groupChange) draft() ([]byte, error) {
	const leave = "Save and exit to apply the changes; exit without changes to cancel."
	force, err := groupfile.Write(c.after)
	if err != nil {
		return nil, err
	}
	if c.static == nil {
		return fmt.Appendf(nil, "# Group %s as of revision %d. %s\n%s", c.name, c.groupRev, leave, force), nil
	}
	beside, err := groupfile.WriteOverride(c.overrideAfter)
	if err != nil {
		return nil, err
	}
	text := fmt.Appendf(nil,
		"# Group %s is static: only size, template.instance_type and vars can be overridden, "+
			"here as of revision %d.\n# %s In force now:\n", c.name, c.groupRev, leave)
	for line := range bytes.Lines(force) {
		text = append(append(text, "#   "...), line...)
	}
	return append(text, beside...), nil
}

// draft writes the text to a new file that only its owner can read.
func draft(name string, text []byte) (string, error) {
	f, err := os.CreateTemp("", "leasehold-"+name+"-*.yaml")
	if err != nil {
		return "", fmt.Errorf("make draft: %w", err)
	}
	_, err = f.Write(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return "", fmt.Errorf("write draft %s: %w", f.Name(), err)
	}
	return f.Name(), nil
}

func removeDraft(file string) error {
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("remove draft: %w", err)
	}
	return nil
}
