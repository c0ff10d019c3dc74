package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// applyDocument is the JSON form of apply --diff.
type applyDocument struct {
	Revision  store.Revision   `json:"revision"` // for --if-revision
	Settings  []string         `json:"settings,omitempty"`
	Groups    []foreseenChange `json:"groups"` // that would change
	Deleted   []string         `json:"deleted,omitempty"`
	Unchanged int              `json:"unchanged"`
	Apply     string           `json:"apply,omitempty"` // the command that applies exactly this
}

// diff shows everything that would change, and its consequences. It writes nothing.
func (c *Apply) diff(ctx context.Context, inv *Invocation, in intent) error {
	doc := applyDocument{Revision: in.at, Groups: []foreseenChange{}}
	var shown []groupChange
	var pruned []groupChange
	var refused []string
	for _, ch := range in.changes {
		switch {
		case ch.pruning != "":
			doc.Deleted, pruned = append(doc.Deleted, ch.name), append(pruned, ch)
		case ch.unchanged():
			doc.Unchanged++
		default:
			f, err := inv.foreseeChange(ctx, ch)
			if err != nil {
				return err
			}
			if f.Refused != "" {
				refused = append(refused, ch.name)
			}
			doc.Groups, shown = append(doc.Groups, f), append(shown, ch)
		}
	}
	if in.settings != nil {
		doc.Settings = in.settings.lines
	}
	differs := len(doc.Groups)+len(doc.Deleted)+len(doc.Settings) > 0
	if differs && len(refused) == 0 {
		doc.Apply = c.exactly(inv, in)
	}
	done, err := inv.records(doc)
	if err != nil {
		return err
	}
	if !done {
		if err := writeApplyDiff(inv, doc, shown, pruned); err != nil {
			return err
		}
	}
	switch {
	case len(refused) > 0:
		return failure(Failed, "correct the files", "the coordinator would refuse %s", strings.Join(refused, ", "))
	case differs:
		return errDiffers
	default:
		return nil
	}
}

func writeApplyDiff(inv *Invocation, doc applyDocument, shown, pruned []groupChange) error {
	out := inv.env.Stdout
	if len(doc.Settings) > 0 {
		fmt.Fprintf(out, "shard %s\n%s\n", inv.flags.Shard, strings.Join(doc.Settings, "\n"))
	}
	created := 0
	for i, ch := range shown {
		if ch.isNew() {
			created++
		}
		if err := inv.writeDryRun(ch, doc.Groups[i]); err != nil {
			return err
		}
	}
	for _, ch := range pruned {
		fmt.Fprintf(out, "%s %s: spec rev %d: no file has it any longer: %s\n", inv.screen().Alarm("-"), ch.name, ch.rev(),
			ch.pruning)
	}
	fmt.Fprintf(out, "%d would be created, %d changed, %d deleted, %d unchanged", created, len(shown)-created,
		len(pruned), doc.Unchanged)
	if n := len(doc.Settings); n > 0 {
		fmt.Fprintf(out, "; %s would change", counted(n, "setting", "settings"))
	}
	fmt.Fprintln(out, "\nNothing changed.")
	if doc.Apply != "" {
		fmt.Fprintf(out, "apply exactly this: %s\n", doc.Apply)
	}
	return nil
}

// exactly returns the command that applies what was shown, unless something has changed since.
func (c *Apply) exactly(inv *Invocation, in intent) string {
	command := fmt.Sprintf("leasehold apply %s --if-revision %d", c.flags(), in.at)
	if c.TakeOver {
		command += " --take-over"
	}
	if inv.flags.Shard != "default" {
		command += " --shard=" + reason.ShellWord(inv.flags.Shard)
	}
	for _, act := range in.toConfirm() {
		command += " --confirm=" + act.group
	}
	return command
}
