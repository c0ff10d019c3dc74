package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/groupdiff"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// dryRunDocument is the JSON form of a dry run.
type dryRunDocument struct {
	Groups []foreseenChange `json:"groups"`
	// Apply is the command that applies exactly this.
	Apply string `json:"apply,omitempty"`
}

// dryRun shows each change field by field and what would follow. It writes nothing.
func (inv *Invocation) dryRun(ctx context.Context, changes []groupChange, files Files) error {
	doc := dryRunDocument{Groups: []foreseenChange{}}
	differs, refused := false, false
	for _, ch := range changes {
		f, err := inv.foreseeChange(ctx, ch)
		if err != nil {
			return err
		}
		doc.Groups = append(doc.Groups, f)
		differs = differs || !ch.unchanged()
		refused = refused || f.Refused != ""
	}
	if differs && !refused {
		doc.Apply = inv.applyCommand(changes, files)
	}
	if done, err := inv.records(doc); done {
		return err
	}
	for i, ch := range changes {
		if err := inv.writeDryRun(ch, doc.Groups[i]); err != nil {
			return err
		}
	}
	fmt.Fprintln(inv.env.Stdout, "Nothing changed.")
	switch {
	case doc.Apply == "":
	case len(changes) == 1:
		fmt.Fprintf(inv.env.Stdout, "apply exactly this: %s\n", doc.Apply)
	default:
		fmt.Fprintf(inv.env.Stdout, "apply it: %s\n", doc.Apply)
	}
	return nil
}

// applyCommand returns the command that applies what a dry run has shown: for one group exactly
// that, or nothing.
func (inv *Invocation) applyCommand(changes []groupChange, files Files) string {
	command := "leasehold group apply " + files.flags()
	if len(changes) == 1 {
		command += fmt.Sprintf(" --if-revision %d", changes[0].rev())
	}
	if inv.flags.Shard != "default" {
		command += " --shard=" + reason.ShellWord(inv.flags.Shard)
	}
	if slices.ContainsFunc(changes, func(ch groupChange) bool { return ch.isNew() && ch.after.Unstarted }) {
		command += " --no-start"
	}
	for _, ch := range changes {
		if ch.shrinks() {
			command += " --confirm=" + ch.name
		}
	}
	return command
}

// dryRunOne shows one change, the revision on which it was computed, and what would follow.
func (inv *Invocation) dryRunOne(ctx context.Context, ch groupChange) error {
	f, err := inv.foreseeChange(ctx, ch)
	if err != nil {
		return err
	}
	return inv.writeDryRun(ch, f)
}

func (inv *Invocation) writeDryRun(ch groupChange, f foreseenChange) error {
	head := fmt.Sprintf("%s: spec rev %d, state rev %d", ch.name, ch.rev(), f.Cache)
	switch {
	case ch.isNew():
		head = fmt.Sprintf("%s: new, there is no such group; state rev %d", ch.name, f.Cache)
	case ch.unchanged():
		head = fmt.Sprintf("%s: unchanged, spec rev %d, state rev %d", ch.name, ch.rev(), f.Cache)
	}
	fmt.Fprintln(inv.env.Stdout, head)
	shown := groupdiff.Between(ch.before, ch.after)
	if ch.isNew() && !inv.wide() {
		usual := store.DefaultGroup()
		usual.Complete()
		shown = groupdiff.Between(&usual, ch.after)
		for i := range shown {
			shown[i].Old = "" // no instance exists yet
		}
	}
	if err := writeForced(inv, shown, f.forces()); err != nil {
		return err
	}
	if ch.isNew() && !inv.wide() {
		fmt.Fprintln(inv.env.Stdout,
			inv.screen().Dim("  other fields have their defaults (docs/group-file.md); -o wide shows them"))
	}
	for _, w := range f.Warnings {
		inv.warn("%s: %s", ch.name, w)
	}
	_, err := io.WriteString(inv.env.Stdout, f.text(inv.screen()))
	return err
}

// writeChanges shows the fields that differ, aligned, and what each does to existing instances.
func writeChanges(inv *Invocation, before *store.Group, after store.Group) error {
	changes := groupdiff.Between(before, after)
	forces := map[string]string{}
	for _, c := range changes {
		if before != nil {
			forces[c.Path] = forcedWords(c.Path, forcedBy(c.Path, *before, after))
		}
	}
	return writeForced(inv, changes, forces)
}

// writeForced shows the fields that differ, aligned, and what they force.
func writeForced(inv *Invocation, changes []groupdiff.Change, forces map[string]string) error {
	width := 0
	for _, c := range changes {
		width = max(width, len(c.Path))
	}
	var b strings.Builder
	scr := inv.screen()
	for _, c := range changes {
		sign := c.Sign()
		switch sign {
		case "+":
			sign = scr.Good(sign)
		case "-":
			sign = scr.Alarm(sign)
		default:
			sign = scr.Notice(sign)
		}
		fmt.Fprintf(&b, "%s %-*s  %s", sign, width, c.Path, output.OneLine(c.String()))
		if force := forces[c.Path]; force != "" {
			b.WriteString("   " + force)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(inv.env.Stdout, b.String())
	return err
}

// forcedWords returns what a change of a field does to existing instances; "" if nothing needs to
// be said.
func forcedWords(path, action string) string {
	switch {
	case action != "":
		return "forces " + strings.ReplaceAll(action, "_", " ") + " (ROLL-2)"
	case store.ReachOf(path) == store.ReachLater:
		return "new or updated instances only"
	default:
		return ""
	}
}

// forcedBy returns what a change of this field alone does to an instance that was up to date
// before, by the planner's own judgement (ROLL-2); "" if nothing.
func forcedBy(path string, before, after store.Group) string {
	one := before
	one.Rollout.MinimalAction = after.Rollout.MinimalAction
	field, key, _ := strings.Cut(path, ".")
	switch field, _, _ = strings.Cut(field, "["); field {
	case "provider":
		one.Provider = after.Provider
	case "template":
		one.Template = after.Template
	case "workload":
		one.Workload = after.Workload
	case "checks":
		one.Checks = after.Checks
	case "busy":
		one.Busy = after.Busy
	case "secrets":
		one.Secrets = after.Secrets
	case "vars":
		one.Vars = map[string]string{}
		for k, v := range before.Vars {
			one.Vars[k] = v
		}
		if v, there := after.Vars[key]; there {
			one.Vars[key] = v
		} else {
			delete(one.Vars, key)
		}
	default:
		return ""
	}
	spec := before.InstanceSpec()
	action, _ := plan.Update(store.Instance{
		Managed: true, Spec: spec, Template: spec.TemplateHash(),
		Relaunch: before.Relaunch.Number,
	}, one)
	return action
}

// about rounds a duration for an estimate, which is never more precise than two digits.
func about(d time.Duration) string {
	switch {
	case d < time.Second:
		return "<1s"
	case d < time.Minute:
		return output.Span(d.Round(time.Second))
	case d < 10*time.Minute:
		return output.Span(d.Round(10 * time.Second))
	default:
		return output.Span(d.Round(time.Minute))
	}
}

// roughly returns about with a tilde.
func roughly(d time.Duration) string {
	if d < time.Second {
		return about(d)
	}
	return "~" + about(d)
}
